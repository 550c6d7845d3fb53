//! The bytes of a client that speaks HTTP/2, watched as they come.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use portcullis_decision::ConnectionRefusal;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep_until};

use super::exchange::Exchange;
use super::frames::Frames;
use super::handshakes::ClientTls;
use crate::judge::Ending;

/// A client's bytes, which end with an error when its frames break a bound.
pub(super) struct Watched {
    client: ClientTls,
    exchange: Arc<Exchange>,
    frames: Frames,
    /// Wakes the reader when a head has taken too long.
    late: Pin<Box<Sleep>>,
}

impl Watched {
    pub(super) fn new(client: ClientTls, exchange: Arc<Exchange>) -> Self {
        let now = Instant::now();
        let frames = Frames::new(now, Arc::clone(&exchange.unread));
        Self { client, exchange, frames, late: Box::pin(sleep_until(now.into())) }
    }

    fn broken(&self, why: &str) -> io::Error {
        let reason = format!("the program's HTTP/2 breaks a bound of the gate: {why}");
        self.exchange.outcome.note(Ending::Refused(ConnectionRefusal::by_host("host.malformed", reason)));
        io::Error::new(io::ErrorKind::InvalidData, why)
    }

    /// Completes when the head that is being read has taken too long.
    fn poll_late(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(until) = self.frames.head_until() else { return Poll::Pending };
        let until = tokio::time::Instant::from_std(until);
        if self.late.deadline() != until {
            self.late.as_mut().reset(until);
        }
        self.late.as_mut().poll(context)
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        match Pin::new(&mut self.client).poll_read(context, buffer) {
            Poll::Ready(Ok(())) => {
                let read = buffer.filled().get(before..).unwrap_or_default();
                let watched = self.frames.push(read, Instant::now());
                Poll::Ready(watched.map_err(|why| self.broken(why)))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending if self.poll_late(context).is_ready() => {
                Poll::Ready(Err(self.broken("the head of a request does not end")))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.client).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.client).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.client).poll_shutdown(context)
    }
}
