//! The entry point of `portcullis serve`.

use crate::{contain, serve};

/// Serves the client that started this process, and returns the exit status when it has disconnected.
///
/// In the sandbox of a contained pi the host outside serves the client, and this process only waits.
///
/// # Errors
/// If the process was not started by pi's extension, or the connection breaks.
pub fn run() -> anyhow::Result<u8> {
    match contain::socket_of_this_process() {
        Some(socket) => contain::hand_over(&socket),
        None => serve::standard_streams().map(|()| 0),
    }
}
