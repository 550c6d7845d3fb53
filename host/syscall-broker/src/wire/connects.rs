//! The broker's messages to the host about connections that wait inside connect(2).

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use super::codec::{DecodeError, Reader, Writer};

/// A message of the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectMessage {
    /// The first message; carries the seccomp listener on which calls are answered.
    Begins,
    /// A call waits. Carries the pidfd of the calling thread and, if it is unheard, the socket.
    Waits {
        /// Identifies the call.
        id: u64,
        /// The number of its command.
        command: u64,
        /// The inode number of the socket.
        socket: u64,
        /// The target address.
        address: SocketAddr,
        /// Whether the target is on the loopback, and no process in the sandbox listens there.
        is_unheard: bool,
    },
}

impl ConnectMessage {
    /// Returns the message in its encoded form.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        match *self {
            Self::Begins => writer.number(0),
            Self::Waits { id, command, socket, address, is_unheard } => {
                writer.number(1);
                writer.long(id);
                writer.long(command);
                writer.long(socket);
                let bits = match address.ip() {
                    IpAddr::V4(v4) => v4.to_ipv6_mapped(),
                    IpAddr::V6(v6) => v6,
                };
                bits.segments().into_iter().for_each(|part| writer.number(part.into()));
                writer.number(address.port().into());
                writer.number(is_unheard.into());
            }
        }
        writer.finish()
    }

    /// Decodes a message.
    ///
    /// # Errors
    /// If it is malformed.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let told = match reader.number()? {
            0 => Self::Begins,
            1 => {
                let id = reader.long()?;
                let (command, socket) = (reader.long()?, reader.long()?);
                let mut parts = [0; 8];
                for part in &mut parts {
                    *part = half(&mut reader)?;
                }
                let ip = IpAddr::from(Ipv6Addr::from(parts)).to_canonical();
                let address = SocketAddr::new(ip, half(&mut reader)?);
                let is_unheard = match reader.number()? {
                    0 => false,
                    1 => true,
                    _ => return Err(DecodeError),
                };
                Self::Waits { id, command, socket, address, is_unheard }
            }
            _ => return Err(DecodeError),
        };
        reader.end(told)
    }
}

fn half(reader: &mut Reader<'_>) -> Result<u16, DecodeError> {
    u16::try_from(reader.number()?).map_err(|_too_big| DecodeError)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_survives_the_journey() {
        for address in ["192.0.2.1:80", "[2001:db8::1]:65535"] {
            let address = address.parse().expect("an address");
            for is_unheard in [false, true] {
                let told =
                    ConnectMessage::Waits { id: u64::MAX, command: 7, socket: 1 << 40, address, is_unheard };
                assert_eq!(ConnectMessage::decode(&told.encode()).expect("decodes"), told);
                assert!(ConnectMessage::decode(&told.encode()[1..]).is_err());
            }
        }
        assert_eq!(
            ConnectMessage::decode(&ConnectMessage::Begins.encode()).expect("decodes"),
            ConnectMessage::Begins
        );
    }
}
