//! The host's end of the line on which its broker tells of connections that wait inside connect(2).

use std::net::SocketAddr;

#[cfg(target_os = "linux")]
pub use here::Calls;

/// Connections that wait inside connect(2); there are none on this system.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
pub enum Calls {}

/// What is heard of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// One waits; it goes on by [`Calls::release`].
    Waits {
        /// Names the call.
        id: u64,
        /// The calling process.
        process: u32,
        /// The init of the command that it belongs to; 0 where it is not known.
        command: u32,
        /// The number of the socket, as in `/proc/N/net/tcp`.
        socket: u64,
        /// Where it wants to connect to, as it was when it was read. What counts is what the kernel reads later.
        address: SocketAddr,
    },
    /// One does not wait any more, because its process has given up or ended.
    Gone {
        /// Names the call.
        id: u64,
    },
}

#[cfg(not(target_os = "linux"))]
impl Calls {
    /// Waits for a call.
    pub fn next(&self) -> Option<Call> {
        match *self {}
    }

    /// Lets a call go on.
    pub fn release(&self, _id: u64) {
        match *self {}
    }
}

#[cfg(target_os = "linux")]
mod here {
    use std::os::fd::OwnedFd;
    use std::sync::Arc;

    use super::Call;
    use crate::confinement::process_number;
    use crate::link::Link;
    use crate::transport;
    use crate::wire::calls::{Told, encode_release};

    /// Connections that wait inside connect(2).
    #[derive(Debug)]
    pub struct Calls {
        line: OwnedFd,
        link: Arc<Link>,
    }

    impl Calls {
        pub(crate) fn new(line: OwnedFd, link: Arc<Link>) -> Self {
            Self { line, link }
        }

        /// Waits for what is next; nothing when the sandbox has ended.
        pub fn next(&self) -> Option<Call> {
            loop {
                let message = transport::receive(&self.line).ok()??;
                match Told::decode(&message.bytes).ok()? {
                    Told::Gone { id } => return Some(Call::Gone { id }),
                    Told::Waits { id, command, socket, address } => {
                        let caller = message.descriptors.first();
                        match caller.and_then(process_number) {
                            Some(process) => {
                                let command = self.link.init_of(command);
                                return Some(Call::Waits { id, process, command, socket, address });
                            }
                            // It has ended since, or cannot be known: whoever accepts the connection finds out.
                            None => self.release(id),
                        }
                    }
                }
            }
        }

        /// Lets a call go on: the kernel makes the connection as if nobody had held it.
        pub fn release(&self, id: u64) {
            // When the broker has gone, so has the caller.
            drop(transport::send(&self.line, &encode_release(id), &[]));
        }
    }
}
