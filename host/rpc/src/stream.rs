//! The side channel: raw bytes on descriptor 3, so that output needs no escaping and does not wait for
//! messages.
//!
//! A frame has a header of two little-endian `u32`s, the number of the stream and the length of the payload,
//! and then the payload. A frame of length zero ends its stream.

use std::io::{Read, Write};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

use crate::RpcError;

/// Largest payload of one frame. It is small so that commands that run at the same time take turns.
pub const MAX_FRAME_BYTES: u32 = 64 * 1024;

/// The number of one command's output, chosen by the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(type = "number"))]
#[serde(transparent)]
pub struct StreamId(pub u32);

/// One frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// Output of a command.
    Data(StreamId, Vec<u8>),
    /// The end of a stream.
    End(StreamId),
}

/// Writes frames. Clones write to the same channel, one frame at a time.
#[derive(Debug)]
pub struct StreamWriter<W> {
    output: Arc<Mutex<W>>,
}

impl<W> Clone for StreamWriter<W> {
    fn clone(&self) -> Self {
        Self { output: Arc::clone(&self.output) }
    }
}

impl<W: Write> StreamWriter<W> {
    /// Returns a writer on `output`.
    pub fn new(output: W) -> Self {
        Self { output: Arc::new(Mutex::new(output)) }
    }

    /// Writes the output of a stream in one or more frames. Blocks while the client does not read.
    ///
    /// # Errors
    /// [`RpcError::Write`] when the client is gone.
    pub fn write(&self, stream: StreamId, bytes: &[u8]) -> Result<(), RpcError> {
        bytes.chunks(MAX_FRAME_BYTES as usize).try_for_each(|chunk| self.frame(stream, chunk))
    }

    /// Ends a stream.
    ///
    /// # Errors
    /// [`RpcError::Write`] when the client is gone.
    pub fn end(&self, stream: StreamId) -> Result<(), RpcError> {
        self.frame(stream, &[])
    }

    fn frame(&self, stream: StreamId, payload: &[u8]) -> Result<(), RpcError> {
        let length = u32::try_from(payload.len())
            .map_err(|_| RpcError::FrameTooLong { length: u32::MAX, limit: MAX_FRAME_BYTES })?;
        let mut frame = Vec::with_capacity(payload.len() + 8);
        frame.extend_from_slice(&stream.0.to_le_bytes());
        frame.extend_from_slice(&length.to_le_bytes());
        frame.extend_from_slice(payload);
        let mut output = self.output.lock().map_err(|_| RpcError::Poisoned)?;
        output.write_all(&frame).and_then(|()| output.flush()).map_err(RpcError::Write)
    }
}

/// Reads one frame. Returns `None` if the channel ended between two frames.
///
/// # Errors
/// [`RpcError::FrameTooLong`] before any of the payload is read, [`RpcError::Truncated`] when the channel
/// ends inside a frame.
pub fn read_frame(input: &mut impl Read) -> Result<Option<Frame>, RpcError> {
    let mut first = [0_u8; 1];
    if read_some(input, &mut first)? == 0 {
        return Ok(None);
    }
    let mut rest = [0_u8; 7];
    input.read_exact(&mut rest).map_err(broken)?;
    let [a] = first;
    let [b, c, d, e, f, g, h] = rest;
    let stream = StreamId(u32::from_le_bytes([a, b, c, d]));
    let length = u32::from_le_bytes([e, f, g, h]);
    if length == 0 {
        return Ok(Some(Frame::End(stream)));
    }
    if length > MAX_FRAME_BYTES {
        return Err(RpcError::FrameTooLong { length, limit: MAX_FRAME_BYTES });
    }
    let mut payload = vec![0; length as usize];
    input.read_exact(&mut payload).map_err(broken)?;
    Ok(Some(Frame::Data(stream, payload)))
}

fn read_some(input: &mut impl Read, buffer: &mut [u8]) -> Result<usize, RpcError> {
    loop {
        match input.read(buffer) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            outcome => return outcome.map_err(RpcError::Read),
        }
    }
}

fn broken(error: std::io::Error) -> RpcError {
    if error.kind() == std::io::ErrorKind::UnexpectedEof {
        RpcError::Truncated
    } else {
        RpcError::Read(error)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(act: impl Fn(&StreamWriter<Vec<u8>>)) -> Vec<u8> {
        let writer = StreamWriter::new(Vec::new());
        act(&writer);
        writer.output.lock().expect("poisoned").clone()
    }

    #[test]
    fn a_frame_is_number_length_bytes() {
        let bytes = written(|writer| {
            writer.write(StreamId(7), b"hi").expect("written");
            writer.end(StreamId(0x0102_0304)).expect("written");
        });
        assert_eq!(bytes, [7, 0, 0, 0, 2, 0, 0, 0, b'h', b'i', 4, 3, 2, 1, 0, 0, 0, 0]);
    }

    #[test]
    fn long_output_is_cut_and_nothing_is_lost() {
        let output = vec![9_u8; MAX_FRAME_BYTES as usize * 2 + 5];
        let bytes = written(|writer| writer.write(StreamId(1), &output).expect("written"));
        let mut input = bytes.as_slice();
        let mut read = Vec::new();
        while let Some(frame) = read_frame(&mut input).expect("frame") {
            let Frame::Data(StreamId(1), payload) = frame else { panic!("{frame:?}") };
            read.extend(payload);
        }
        assert_eq!(read, output);
    }

    #[test]
    fn empty_output_is_no_end() {
        assert_eq!(written(|writer| writer.write(StreamId(1), b"").expect("written")), b"");
    }

    #[test]
    fn broken_frames_are_errors() {
        assert!(matches!(read_frame(&mut [1_u8, 0].as_slice()), Err(RpcError::Truncated)));
        assert!(matches!(
            read_frame(&mut [1_u8, 0, 0, 0, 3, 0, 0, 0, 1].as_slice()),
            Err(RpcError::Truncated)
        ));
        let huge = [1_u8, 0, 0, 0, 255, 255, 255, 255];
        assert!(matches!(
            read_frame(&mut huge.as_slice()),
            Err(RpcError::FrameTooLong { length: u32::MAX, .. })
        ));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let mut input = bytes.as_slice();
            while let Ok(Some(_)) = read_frame(&mut input) {}
        }
    }
}
