//! The way to a collector.

use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::address::Address;
use crate::answer::{Accepted, SendError};
use crate::destination::Destination;
use crate::event::Event;
use crate::format::Format;
use crate::http::Http;
use crate::stream::{Security, Stream};

/// How long a datagram waits for space in its receiver's queue.
const QUEUE: Duration = Duration::from_secs(10);

/// The way to a collector.
#[derive(Debug)]
pub(crate) enum Channel {
    Http(Box<Http>),
    Stream(Stream),
    Datagrams(PathBuf),
}

impl Channel {
    /// Prepares the way; connects nowhere.
    pub(crate) fn new(destination: &Destination) -> Result<Self, SendError> {
        let ca = destination.ca.as_deref();
        Ok(match &destination.address {
            Address::Http(url) => Self::Http(Box::new(Http::new(url, &destination.headers, ca)?)),
            Address::Tls { host, port } => Self::Stream(Stream::new(host, *port, Security::tls(host, ca)?)),
            Address::Tcp { host, port } => Self::Stream(Stream::new(host, *port, Security::None)),
            Address::Unix(path) => Self::Datagrams(path.clone()),
        })
    }

    /// Sends a batch, and returns when the collector has accepted it.
    pub(crate) fn send(&self, format: Format, events: &[Event]) -> Result<Accepted, SendError> {
        match self {
            Self::Http(http) => http.send(format, &format.body(events)),
            Self::Stream(stream) => stream.send(&format.frames(events)).map(|()| Accepted::default()),
            Self::Datagrams(path) => datagrams(path, &format.messages(events)).map(|()| Accepted::default()),
        }
    }
}

fn datagrams(path: &Path, messages: &[Vec<u8>]) -> Result<(), SendError> {
    let reason = |error: std::io::Error| format!("sending to `{}`: {error}", path.display());
    let not_sent = |error| SendError::not_sent(reason(error));
    let socket = UnixDatagram::unbound().map_err(not_sent)?;
    socket.set_write_timeout(Some(QUEUE)).map_err(not_sent)?;
    socket.connect(path).map_err(not_sent)?;
    for (index, message) in messages.iter().enumerate() {
        // One is in the receiver's queue whole or not at all.
        socket.send(message).map_err(|error| match index {
            0 => not_sent(error),
            _ => SendError::unclear(reason(error)),
        })?;
    }
    Ok(())
}
