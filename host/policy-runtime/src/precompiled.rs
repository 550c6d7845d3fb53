//! Turns machine code that this host compiled earlier back into a component.
//!
//! The one place outside `host/sys` with `unsafe`: wasmtime cannot check that
//! such bytes are what its compiler wrote, and would run whatever they hold. The
//! types of the arguments are the proof that they are this user's own.
#![expect(unsafe_code, reason = "wasmtime's loading of precompiled code is an unsafe function")]

use wasmtime::Engine;
use wasmtime::component::Component;

use crate::compile::Artifact;
use crate::embedded::Embedded;
use crate::own_files::OwnFile;

/// Makes a component of cached code of at most `limit` bytes. An error means: compile again.
///
/// The file is mapped, so that only what runs of it is ever read, and all hosts of a user share it in memory. Where its
/// file system lets nobody run anything, as some homes do, it is copied.
pub(crate) fn deserialize(engine: &Engine, code: OwnFile, limit: u64) -> wasmtime::Result<Component> {
    // SAFETY: the bytes must be what `Component::serialize` wrote, and stay so.
    // `OwnFile` is made only by `OwnDirectory::file`, which opens a regular file
    // of this user that nobody else can write and that has no other name, in a
    // directory of which the same holds; `cache`, the only writer there, passes
    // nothing but such bytes, which are on the disk before the file has its name,
    // and no file is written again: another one takes its name. Who changes it all
    // the same is this user, outside of every sandbox, and could as well replace
    // the host. Code of another version or for another processor carries wasmtime's
    // own marks and is refused by it.
    if let Ok(mapped) = unsafe { Component::deserialize_file(engine, code.path()) } {
        return Ok(mapped);
    }
    let bytes = code.content(limit).ok_or_else(|| wasmtime::Error::msg("the file cannot be read"))?;
    // SAFETY: as above, and a copy cannot change any more.
    unsafe { Component::deserialize(engine, bytes) }
}

/// Makes a component of code that was made just now.
pub(crate) fn deserialize_made(engine: &Engine, code: &Artifact) -> wasmtime::Result<Component> {
    // SAFETY: the bytes must be what `Component::serialize` wrote. An `Artifact` is made only in `compile`: of what
    // that function returned in this process, or of what a process of this program, started by this one, wrote to a
    // pipe that no other process has. They lie in this process's own memory and do not change.
    unsafe { Component::deserialize(engine, code.bytes()) }
}

/// Makes a component of code that is part of the program.
pub(crate) fn deserialize_embedded(engine: &Engine, code: &Embedded) -> wasmtime::Result<Component> {
    // SAFETY: the bytes must be what `Component::serialize` wrote. An `Embedded` is made of nothing but files that
    // `precompile` wrote while the program was built; they lie in the program's own read-only memory. Whoever could
    // change them could as well change the rest of the program.
    unsafe { Component::deserialize(engine, code.code()) }
}
