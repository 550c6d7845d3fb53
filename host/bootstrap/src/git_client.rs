//! The program inside that git uses as `ssh`; see the crate `portcullis-git-client`.

/// The bytes of the program; empty on systems without sandboxed commands.
pub(crate) const GIT_CLIENT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/git-client"));
