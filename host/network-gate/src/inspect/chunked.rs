//! Finds the end of a chunked body, see RFC 9112 7.1.
//!
//! Written by hand: `httparse` accepts extensions of chunks, which servers read differently.

/// The longest accepted line. A chunk size has at most sixteen digits, and trailers are rare and short.
const LINE_MAX: usize = 4096;

/// The position in a chunked body.
#[derive(Debug, Default)]
pub(super) struct Chunked(Part);

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Before the size of a chunk.
    #[default]
    Size,
    /// Inside a chunk, with this many bytes left.
    Data(u64),
    /// After the content of a chunk.
    DataEnd,
    /// After the last chunk.
    Trailer,
    Over,
}

impl Chunked {
    /// Returns true if the body has ended.
    pub(super) fn is_over(&self) -> bool {
        self.0 == Part::Over
    }

    /// Returns how many of the bytes certainly belong to the body; 0 if more bytes are needed.
    ///
    /// # Errors
    /// If servers read the bytes differently.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<usize, &'static str> {
        let mut taken = 0;
        while self.0 != Part::Over {
            let rest = bytes.get(taken..).unwrap_or_default();
            let Some(count) = self.step(rest)? else { break };
            taken += count;
        }
        Ok(taken)
    }

    fn step(&mut self, bytes: &[u8]) -> Result<Option<usize>, &'static str> {
        if let Part::Data(left) = self.0 {
            let count = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
            let left = left - u64::try_from(count).unwrap_or(left);
            self.0 = if left == 0 { Part::DataEnd } else { Part::Data(left) };
            return Ok((count > 0).then_some(count));
        }
        let Some(line) = line(bytes)? else { return Ok(None) };
        self.0 = match self.0 {
            Part::Size => match size(line)? {
                0 => Part::Trailer,
                size => Part::Data(size),
            },
            Part::DataEnd if line.is_empty() => Part::Size,
            Part::DataEnd => return Err("a chunk of the request is longer than it says"),
            Part::Trailer if line.is_empty() => Part::Over,
            part @ (Part::Data(_) | Part::Trailer | Part::Over) => part,
        };
        Ok(Some(line.len() + 2))
    }
}

/// Returns the first line, without its end.
fn line(bytes: &[u8]) -> Result<Option<&[u8]>, &'static str> {
    let Some(end) = bytes.iter().position(|&byte| byte == b'\n') else {
        return if bytes.len() > LINE_MAX { Err("a line of the request is too long") } else { Ok(None) };
    };
    match bytes.get(..end).and_then(|line| line.strip_suffix(b"\r")) {
        Some(line) if !line.contains(&b'\r') => Ok(Some(line)),
        _ => Err("a line of the request does not end with CR and LF"),
    }
}

/// Parses the size of a chunk. Extensions are refused: servers read them differently, and clients do not send them.
fn size(line: &[u8]) -> Result<u64, &'static str> {
    const ODD: &str = "the size of a chunk of the request is malformed";
    let text = std::str::from_utf8(line).map_err(|_no_text| ODD)?;
    if !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(ODD);
    }
    u64::from_str_radix(text, 16).map_err(|_no_number| ODD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_found_however_the_bytes_come() {
        let body = b"5\r\nhello\r\n0A\r\n0123456789\r\n0\r\nX: y\r\n\r\n";
        for step in 1..=body.len() {
            let (mut chunked, mut pending, mut taken) = (Chunked::default(), Vec::new(), 0);
            for piece in body.chunks(step) {
                pending.extend_from_slice(piece);
                let count = chunked.take(&pending).unwrap();
                pending.drain(..count);
                taken += count;
            }
            assert!(chunked.is_over(), "{step}");
            assert_eq!(taken, body.len());
        }
        let mut chunked = Chunked::default();
        assert_eq!(chunked.take(b"0\r\n\r\nGET /"), Ok(5));
    }

    #[test]
    fn oddities_are_refused() {
        for body in
            ["5;x=y\r\n", "+5\r\n", "0x5\r\n", "\r\n", "5\n", "5\r\nhellos\r\n", "ffffffffffffffffff\r\n"]
        {
            assert!(Chunked::default().take(body.as_bytes()).is_err(), "{body:?}");
        }
    }
}
