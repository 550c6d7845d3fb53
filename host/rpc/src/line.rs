//! Splits the input into lines and never holds more than one message.

use std::io::{BufRead, BufReader, Read};

use crate::RpcError;

/// The longest message, without its newline.
///
/// It has room for a file of several MiB as JSON text, and bounds the memory that a client can use.
pub const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// One line of the input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A complete line.
    Complete(Vec<u8>),
    /// A line above the limit. The rest of it was read and dropped.
    TooLong,
}

/// Reads lines of at most `limit` bytes.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    input: BufReader<R>,
    limit: usize,
}

impl<R: Read> Lines<R> {
    pub(crate) fn new(input: R, limit: usize) -> Self {
        Self { input: BufReader::new(input), limit }
    }

    /// Returns the next line, or `None` when the input ended after a complete line.
    pub(crate) fn next_line(&mut self) -> Result<Option<Line>, RpcError> {
        let mut line = Vec::new();
        let mut too_long = false;
        loop {
            let available = match self.input.fill_buf() {
                Ok(available) => available,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(RpcError::Read(error)),
            };
            if available.is_empty() {
                // A truncated message is never parsed: the missing part may have changed its meaning.
                return if line.is_empty() && !too_long { Ok(None) } else { Err(RpcError::Truncated) };
            }
            let (part, newline) = split_at_newline(available);
            let used = part.len() + usize::from(newline);
            too_long = too_long || line.len() + part.len() > self.limit;
            if too_long {
                line = Vec::new();
            } else {
                line.extend_from_slice(part);
            }
            self.input.consume(used);
            if newline {
                return Ok(Some(if too_long { Line::TooLong } else { Line::Complete(line) }));
            }
        }
    }
}

/// Returns the bytes before the first newline, and whether there is a newline.
fn split_at_newline(bytes: &[u8]) -> (&[u8], bool) {
    let mut parts = bytes.splitn(2, |byte| *byte == b'\n');
    let part = parts.next().unwrap_or_default();
    (part, parts.next().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(input: &[u8], limit: usize) -> (Vec<Line>, bool) {
        let mut lines = Lines::new(input, limit);
        let mut found = Vec::new();
        loop {
            match lines.next_line() {
                Ok(Some(line)) => found.push(line),
                Ok(None) => return (found, true),
                Err(_) => return (found, false),
            }
        }
    }

    fn complete(text: &str) -> Line {
        Line::Complete(text.as_bytes().to_vec())
    }

    #[test]
    fn lines_are_cut_at_newlines_only() {
        assert_eq!(lines(b"", 8), (vec![], true));
        assert_eq!(lines(b"a\nbc\n", 8), (vec![complete("a"), complete("bc")], true));
        assert_eq!(lines(b"a\r\n\n", 8), (vec![complete("a\r"), complete("")], true));
        assert_eq!(lines("a\u{2028}b\n".as_bytes(), 8), (vec![complete("a\u{2028}b")], true));
    }

    #[test]
    fn a_cut_off_message_is_an_error() {
        assert_eq!(lines(b"a\nb", 8), (vec![complete("a")], false));
        assert_eq!(lines(b"123456789", 8), (vec![], false));
    }

    #[test]
    fn a_long_line_is_dropped_and_the_next_one_read() {
        assert_eq!(
            lines(b"12345678\n123456789\nok\n", 8),
            (vec![complete("12345678"), Line::TooLong, complete("ok")], true)
        );
        let mut long = vec![b'x'; 100_000];
        long.extend_from_slice(b"\nok\n");
        assert_eq!(lines(&long, 8), (vec![Line::TooLong, complete("ok")], true));
    }
}
