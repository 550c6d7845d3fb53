//! The client's end of a connection: its socket, and the process that has it open.

use portcullis_decision::request::ProcessInfo;

/// A process and the command it belongs to.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) process: ProcessInfo,
    /// The command's root process; 0 if it is unknown.
    pub(crate) command: u32,
}

/// The state of the client's end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Client {
    /// A process has the socket open; this is its inode number.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux' tables tell it"))]
    Open(u64),
    /// No process has it open.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux' tables tell it"))]
    Gone,
    /// The system does not tell. The token tells that it belongs to a command of the session.
    Untold,
}
