//! Turns machine code that this host compiled earlier back into a component.
//!
//! The one place outside `host/sys` with `unsafe`: wasmtime cannot check that
//! such bytes are what its compiler wrote, and would run whatever they hold. The
//! type of the argument is the proof that they are this user's own.
#![expect(unsafe_code, reason = "wasmtime's loading of precompiled code is an unsafe function")]

use wasmtime::Engine;
use wasmtime::component::Component;

use crate::own_files::OwnBytes;

/// Makes a component of cached code. An error means: compile again.
pub(crate) fn deserialize(engine: &Engine, code: &OwnBytes) -> wasmtime::Result<Component> {
    // SAFETY: the bytes must be what `Component::serialize` wrote. `OwnBytes` are
    // made only by `OwnDirectory::read`, which reads them through a descriptor
    // of a regular file of this user that nobody else can write, out of a
    // directory of which the same holds, and only when their digest is the one
    // that `OwnDirectory::write` put before them; and `cache`, the only writer,
    // passes nothing but that. They are a private copy, so they cannot change
    // any more. Code of another version or for another processor carries
    // wasmtime's own marks and is refused by it.
    unsafe { Component::deserialize(engine, code.as_slice()) }
}
