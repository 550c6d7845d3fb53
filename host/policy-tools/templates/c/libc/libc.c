// A C library of nine functions. Memory grows by pages and is never given back.
#include "stdlib.h"
#include "string.h"
#include <stdint.h>

#define PAGE ((uintptr_t)65536)
#define ALIGNMENT ((uintptr_t)16)

extern unsigned char __heap_base;
static uintptr_t next;

// The size of each piece stands before it, for `realloc`.
void *malloc(size_t size) {
    if (next == 0) next = (uintptr_t)&__heap_base;
    uintptr_t start = (next + sizeof(size_t) + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
    if (size > UINT32_MAX - PAGE - start) abort();
    uintptr_t end = start + size;
    uintptr_t have = (uintptr_t)__builtin_wasm_memory_size(0) * PAGE;
    if (end > have && __builtin_wasm_memory_grow(0, (end - have + PAGE - 1) / PAGE) == (size_t)-1) abort();
    *(size_t *)(start - sizeof(size_t)) = size;
    next = end;
    return (void *)start;
}

void *realloc(void *old, size_t size) {
    void *made = malloc(size);
    if (old) {
        size_t before = *(size_t *)((uintptr_t)old - sizeof(size_t));
        memcpy(made, old, before < size ? before : size);
    }
    return made;
}

void free(void *memory) { (void)memory; }

void abort(void) { __builtin_trap(); }

void *memcpy(void *to, const void *from, size_t size) {
    unsigned char *target = to;
    const unsigned char *source = from;
    for (size_t index = 0; index < size; index++) target[index] = source[index];
    return to;
}

void *memmove(void *to, const void *from, size_t size) {
    unsigned char *target = to;
    const unsigned char *source = from;
    if (target <= source) return memcpy(to, from, size);
    while (size-- > 0) target[size] = source[size];
    return to;
}

void *memset(void *to, int byte, size_t size) {
    unsigned char *target = to;
    for (size_t index = 0; index < size; index++) target[index] = (unsigned char)byte;
    return to;
}

int memcmp(const void *one, const void *other, size_t size) {
    const unsigned char *left = one, *right = other;
    for (size_t index = 0; index < size; index++) {
        if (left[index] != right[index]) return left[index] < right[index] ? -1 : 1;
    }
    return 0;
}

size_t strlen(const char *text) {
    size_t length = 0;
    while (text[length]) length++;
    return length;
}

// The generated code refers to it, so that linkers keep an object with the types of
// the contract. `policy build` puts those into the component itself.
void __component_type_object_force_link_policy(void) {}
