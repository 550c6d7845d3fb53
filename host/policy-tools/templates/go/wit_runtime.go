// Package wit_runtime gives memory to the host and to the bindings.
//
// Every call runs in a fresh copy of the policy, so memory is kept and never given back. Go's collector does not move
// what it has handed out.
package wit_runtime

import (
	"runtime"
	"unsafe"
)

// Memory that only the host knows.
var kept [][]uint64

func allocate(size uintptr) unsafe.Pointer {
	if size == 0 {
		return nil
	}
	// Words of eight bytes have the alignment of every type of the contract.
	memory := make([]uint64, (size+7)/8)
	kept = append(kept, memory)
	return unsafe.Pointer(unsafe.SliceData(memory))
}

// Allocate returns memory for an answer.
func Allocate(_ *runtime.Pinner, size, _ uintptr) unsafe.Pointer { return allocate(size) }

// Unpin does nothing: the memory is kept.
func Unpin() {}

//go:wasmexport cabi_realloc
func cabiRealloc(old unsafe.Pointer, oldSize, _, size uintptr) unsafe.Pointer {
	memory := allocate(size)
	if old != nil {
		copy(unsafe.Slice((*byte)(memory), size), unsafe.Slice((*byte)(old), oldSize))
	}
	return memory
}
