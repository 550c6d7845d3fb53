//! A stub of WASI for modules of Go, which import its first version: no files, arguments or variables, a clock that
//! does not advance, and random bytes that are always the same.
//!
//! The stub becomes part of the component, so the component has no imports. A real WASI would not do: the component
//! model forbids calls of the host during `cabi_realloc`, where Go's collector reads the clock.

use wasm_encoder::{
    CodeSection, EntityType, ExportKind, ExportSection, Function, FunctionSection, ImportSection, MemArg,
    MemoryType, Module, TypeSection, ValType,
};

/// The module that the functions belong to.
pub(super) const NAME: &str = "wasi_snapshot_preview1";

/// The error numbers of WASI.
const BAD_FILE: i32 = 8;
const NO_SYSTEM_CALL: i32 = 52;
/// The time, in nanoseconds: Go does not start at zero.
const TIME: i64 = 1_000_000_000;

/// What a function does.
#[derive(Debug, Clone, Copy)]
enum Stub {
    /// Returns this number.
    Returns(i32),
    /// Writes two zeros to its two pointers: there are no arguments and variables.
    NoneGiven,
    /// Writes the time to its last pointer.
    Clock,
    /// Fills the bytes at the first pointer; their number is the second argument.
    Random,
    /// Returns the length of the last vector to write as written, and drops the text.
    Written,
    /// Traps.
    Exit,
}

/// Functions by name, with their parameters: `i` of 32 bits, `l` of 64 bits.
const FUNCTIONS: [(&str, &str, Stub); 46] = [
    ("args_get", "ii", Stub::Returns(0)),
    ("args_sizes_get", "ii", Stub::NoneGiven),
    ("environ_get", "ii", Stub::Returns(0)),
    ("environ_sizes_get", "ii", Stub::NoneGiven),
    ("clock_res_get", "ii", Stub::Returns(NO_SYSTEM_CALL)),
    ("clock_time_get", "ili", Stub::Clock),
    ("fd_advise", "illi", Stub::Returns(BAD_FILE)),
    ("fd_allocate", "ill", Stub::Returns(BAD_FILE)),
    ("fd_close", "i", Stub::Returns(BAD_FILE)),
    ("fd_datasync", "i", Stub::Returns(BAD_FILE)),
    ("fd_fdstat_get", "ii", Stub::Returns(BAD_FILE)),
    ("fd_fdstat_set_flags", "ii", Stub::Returns(BAD_FILE)),
    ("fd_fdstat_set_rights", "ill", Stub::Returns(BAD_FILE)),
    ("fd_filestat_get", "ii", Stub::Returns(BAD_FILE)),
    ("fd_filestat_set_size", "il", Stub::Returns(BAD_FILE)),
    ("fd_filestat_set_times", "illi", Stub::Returns(BAD_FILE)),
    ("fd_pread", "iiili", Stub::Returns(BAD_FILE)),
    ("fd_prestat_get", "ii", Stub::Returns(BAD_FILE)),
    ("fd_prestat_dir_name", "iii", Stub::Returns(BAD_FILE)),
    ("fd_pwrite", "iiili", Stub::Returns(BAD_FILE)),
    ("fd_read", "iiii", Stub::Returns(BAD_FILE)),
    ("fd_readdir", "iiili", Stub::Returns(BAD_FILE)),
    ("fd_renumber", "ii", Stub::Returns(BAD_FILE)),
    ("fd_seek", "ilii", Stub::Returns(BAD_FILE)),
    ("fd_sync", "i", Stub::Returns(BAD_FILE)),
    ("fd_tell", "ii", Stub::Returns(BAD_FILE)),
    ("fd_write", "iiii", Stub::Written),
    ("path_create_directory", "iii", Stub::Returns(BAD_FILE)),
    ("path_filestat_get", "iiiii", Stub::Returns(BAD_FILE)),
    ("path_filestat_set_times", "iiiilli", Stub::Returns(BAD_FILE)),
    ("path_link", "iiiiiii", Stub::Returns(BAD_FILE)),
    ("path_open", "iiiiillii", Stub::Returns(BAD_FILE)),
    ("path_readlink", "iiiiii", Stub::Returns(BAD_FILE)),
    ("path_remove_directory", "iii", Stub::Returns(BAD_FILE)),
    ("path_rename", "iiiiii", Stub::Returns(BAD_FILE)),
    ("path_symlink", "iiiii", Stub::Returns(BAD_FILE)),
    ("path_unlink_file", "iii", Stub::Returns(BAD_FILE)),
    ("poll_oneoff", "iiii", Stub::Returns(0)),
    ("proc_exit", "i", Stub::Exit),
    ("proc_raise", "i", Stub::Returns(NO_SYSTEM_CALL)),
    ("random_get", "ii", Stub::Random),
    ("sched_yield", "", Stub::Returns(0)),
    ("sock_accept", "iii", Stub::Returns(BAD_FILE)),
    ("sock_recv", "iiiiii", Stub::Returns(BAD_FILE)),
    ("sock_send", "iiiii", Stub::Returns(BAD_FILE)),
    ("sock_shutdown", "ii", Stub::Returns(BAD_FILE)),
];

/// Returns the module, which uses the memory of the module that imports it.
pub(super) fn module() -> Vec<u8> {
    let (mut types, mut functions, mut exports) =
        (TypeSection::new(), FunctionSection::new(), ExportSection::new());
    let mut code = CodeSection::new();
    let mut imports = ImportSection::new();
    let memory =
        MemoryType { minimum: 0, maximum: None, memory64: false, shared: false, page_size_log2: None };
    imports.import("env", "memory", EntityType::Memory(memory));
    for (index, (name, parameters, stub)) in (0..).zip(FUNCTIONS) {
        let value = |letter: u8| if letter == b'l' { ValType::I64 } else { ValType::I32 };
        let result: &[ValType] = if matches!(stub, Stub::Exit) { &[] } else { &[ValType::I32] };
        types.ty().function(parameters.bytes().map(value), result.iter().copied());
        functions.function(index);
        exports.export(name, ExportKind::Func, index);
        code.function(&body(stub));
    }
    let mut module = Module::new();
    module.section(&types).section(&imports).section(&functions).section(&exports).section(&code);
    module.finish()
}

fn body(stub: Stub) -> Function {
    let words = MemArg { offset: 0, align: 2, memory_index: 0 };
    let mut function = Function::new([]);
    let mut code = function.instructions();
    match stub {
        Stub::Returns(number) => {
            code.i32_const(number);
        }
        Stub::NoneGiven => {
            code.local_get(0).i32_const(0).i32_store(words);
            code.local_get(1).i32_const(0).i32_store(words).i32_const(0);
        }
        Stub::Clock => {
            code.local_get(2).i64_const(TIME).i64_store(MemArg { align: 3, ..words }).i32_const(0);
        }
        Stub::Random => {
            code.local_get(0).i32_const(0x5a).local_get(1).memory_fill(0).i32_const(0);
        }
        Stub::Written => {
            // Go writes one vector, a pointer and a length.
            code.local_get(3)
                .local_get(1)
                .i32_load(MemArg { offset: 4, ..words })
                .i32_store(words)
                .i32_const(0);
        }
        Stub::Exit => {
            code.unreachable();
        }
    }
    code.end();
    function
}
