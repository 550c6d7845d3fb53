//! What the broker and the host say to each other about connections that wait inside connect(2).

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use super::{Garbled, Reader, Writer};

/// What the host is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// A call waits. Comes with the calling thread's pidfd.
    Waits {
        /// Names the call.
        id: u64,
        /// The number of its command.
        command: u64,
        /// The number of the socket.
        socket: u64,
        address: SocketAddr,
    },
    /// It does not wait any more.
    Gone { id: u64 },
}

impl Told {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        match *self {
            Self::Waits { id, command, socket, address } => {
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
            }
            Self::Gone { id } => {
                writer.number(2);
                writer.long(id);
            }
        }
        writer.finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Garbled> {
        let mut reader = Reader::new(bytes);
        let (kind, id) = (reader.number()?, reader.long()?);
        let told = match kind {
            1 => {
                let (command, socket) = (reader.long()?, reader.long()?);
                let mut parts = [0; 8];
                for part in &mut parts {
                    *part = half(&mut reader)?;
                }
                let ip = IpAddr::from(Ipv6Addr::from(parts)).to_canonical();
                Self::Waits { id, command, socket, address: SocketAddr::new(ip, half(&mut reader)?) }
            }
            2 => Self::Gone { id },
            _ => return Err(Garbled),
        };
        reader.end(told)
    }
}

fn half(reader: &mut Reader<'_>) -> Result<u16, Garbled> {
    u16::try_from(reader.number()?).map_err(|_too_big| Garbled)
}

/// Lets a call go on.
pub(crate) fn encode_release(id: u64) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.long(id);
    writer.finish()
}

/// Returns the call that goes on.
pub(crate) fn decode_release(bytes: &[u8]) -> Result<u64, Garbled> {
    let mut reader = Reader::new(bytes);
    let id = reader.long()?;
    reader.end(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_survives_the_journey() {
        for address in ["192.0.2.1:80", "[2001:db8::1]:65535"] {
            let address = address.parse().expect("an address");
            let told = Told::Waits { id: u64::MAX, command: 7, socket: 1 << 40, address };
            assert_eq!(Told::decode(&told.encode()).expect("decodes"), told);
            assert!(Told::decode(&told.encode()[1..]).is_err());
        }
        assert_eq!(Told::decode(&Told::Gone { id: 3 }.encode()).expect("decodes"), Told::Gone { id: 3 });
        assert_eq!(decode_release(&encode_release(5)).expect("decodes"), 5);
    }
}
