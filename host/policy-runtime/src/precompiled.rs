//! Loads machine code that this host compiled earlier.
//!
//! This is the only place outside `host/sys` with `unsafe`: wasmtime cannot check that the bytes come from
//! its compiler, and runs whatever they contain. The argument types prove that the bytes are this user's own.
#![expect(unsafe_code, reason = "wasmtime's loading of precompiled code is an unsafe function")]

use wasmtime::Engine;
use wasmtime::component::Component;

use crate::compile::Artifact;
use crate::embedded::Embedded;
use crate::own_files::OwnFile;

/// Loads cached machine code of at most `limit` bytes. On an error the caller compiles again.
///
/// The file is mapped, so only the parts that run are read, and all hosts of a user share them in memory. On
/// a `noexec` file system, as some home directories are, it is copied instead.
pub(crate) fn deserialize(engine: &Engine, code: OwnFile, limit: u64) -> wasmtime::Result<Component> {
    // SAFETY: the bytes must come from `Component::serialize` and must not change. An `OwnFile` is made only
    // by `OwnDirectory::file`. That opens a regular file that belongs to this user, that other users cannot
    // write, and that has no other name, in a directory with the same properties. `cache` is the only writer
    // there and writes only such bytes. They are on disk before the file gets its name, and a file is never
    // written again: a new file replaces it. Only this user, outside of every sandbox, could change it, and
    // could replace the host as well. Wasmtime marks its output and rejects code of another version or for
    // another processor.
    if let Ok(mapped) = unsafe { Component::deserialize_file(engine, code.path()) } {
        return Ok(mapped);
    }
    let bytes = code.content(limit).ok_or_else(|| wasmtime::Error::msg("the file cannot be read"))?;
    // SAFETY: as above. The copy in memory cannot change.
    unsafe { Component::deserialize(engine, bytes) }
}

/// Loads machine code that was just compiled.
pub(crate) fn deserialize_made(engine: &Engine, code: &Artifact) -> wasmtime::Result<Component> {
    // SAFETY: the bytes must come from `Component::serialize`. An `Artifact` is made only in `compile`, from
    // the result of that function in this process, or from the output of a child process of this program on a
    // pipe that no other process has. The bytes are in this process's own memory and do not change.
    unsafe { Component::deserialize(engine, code.bytes()) }
}

/// Loads machine code that is embedded in the program.
pub(crate) fn deserialize_embedded(engine: &Engine, code: &Embedded) -> wasmtime::Result<Component> {
    // SAFETY: the bytes must come from `Component::serialize`. An `Embedded` is made only of files that
    // `precompile` wrote while the program was built. They are in the program's read-only memory. An attacker
    // who could change them could change the rest of the program as well.
    unsafe { Component::deserialize(engine, code.code()) }
}
