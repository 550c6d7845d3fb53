//! The raw output of commands, as the host sends it beside its messages.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use anyhow::{Context as _, Result};

use crate::Deadline;

/// All output so far, by stream number.
#[derive(Debug)]
pub(crate) struct Outputs {
    frames: Receiver<Frame>,
    streams: BTreeMap<u32, Stream>,
}

#[derive(Debug)]
struct Frame {
    stream: u32,
    payload: Vec<u8>,
}

#[derive(Debug, Default)]
struct Stream {
    bytes: Vec<u8>,
    ended: bool,
}

impl Outputs {
    pub(crate) fn of(channel_end: impl Read + Send + 'static) -> Self {
        Self { frames: frames_of(channel_end), streams: BTreeMap::new() }
    }

    /// Returns all output of `stream`, after its end.
    pub(crate) fn wait(&mut self, stream: u32) -> Result<String> {
        let deadline = Deadline::start();
        while !self.streams.get(&stream).is_some_and(|output| output.ended) {
            let frame = self.frames.recv_timeout(deadline.left());
            let frame = frame.with_context(|| format!("waiting for the end of stream {stream}"))?;
            let output = self.streams.entry(frame.stream).or_default();
            output.ended |= frame.payload.is_empty();
            output.bytes.extend(frame.payload);
        }
        let output = self.streams.remove(&stream).unwrap_or_default();
        Ok(String::from_utf8_lossy(&output.bytes).into_owned())
    }
}

/// Reads frames: the stream's number and the length, four bytes each, little-endian; then the bytes.
fn frames_of(mut channel_end: impl Read + Send + 'static) -> Receiver<Frame> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut word = [0; 4];
        while channel_end.read_exact(&mut word).is_ok() {
            let stream = u32::from_le_bytes(word);
            if channel_end.read_exact(&mut word).is_err() {
                return;
            }
            let mut payload = vec![0; u32::from_le_bytes(word) as usize];
            if channel_end.read_exact(&mut payload).is_err()
                || sender.send(Frame { stream, payload }).is_err()
            {
                return;
            }
        }
    });
    receiver
}
