//! The protocol in which clients ask for signatures.

use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// The first word of a request.
const GREETING: &[u8] = b"portcullis-sign/1";
/// The first bytes of answers: with a signature, and with a reason.
pub(super) const SIGNED: u8 = b'S';
pub(super) const REFUSED: u8 = b'R';
/// The longest word of a request, in bytes.
const WORD_MAX: u64 = 32;
/// The longest commit or tag, in bytes.
const OBJECT_MAX: usize = 256 * 1024;
/// How much of a longer one is read.
const DRAINED_MAX: u64 = 16 << 20;
/// How long a client may take for its request.
const REQUEST: Duration = Duration::from_secs(15);

/// A stream that is read until a time.
struct Timed {
    stream: UnixStream,
    until: Instant,
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(buffer)
    }
}

/// A request: the form of the key, and the object.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) form: String,
    pub(super) object: Vec<u8>,
}

/// Reads a request: greeting, form, length and object. Nothing may come after it.
pub(super) fn read(stream: &UnixStream) -> io::Result<Wanted> {
    let timed = Timed { stream: stream.try_clone()?, until: Instant::now() + REQUEST };
    let mut reader = BufReader::new(timed);
    let wanted = wanted(&mut reader)?;
    if !reader.buffer().is_empty() {
        return Err(io::Error::other("it is followed by another one"));
    }
    stream.set_read_timeout(None)?;
    Ok(wanted)
}

fn wanted(reader: &mut BufReader<Timed>) -> io::Result<Wanted> {
    let mut word = || {
        let mut word = Vec::new();
        reader.by_ref().take(WORD_MAX).read_until(0, &mut word)?;
        match word.pop() {
            Some(0) => Ok(word),
            _ => Err(io::Error::other("a word is missing")),
        }
    };
    if word()? != GREETING {
        return Err(io::Error::other("it is none"));
    }
    let text = |word: Vec<u8>| String::from_utf8(word).map_err(io::Error::other);
    let form = text(word()?)?;
    let length: usize = text(word()?)?.parse().map_err(io::Error::other)?;
    if length > OBJECT_MAX {
        // Unread bytes would reset the connection, and the client would not get the reason.
        let rest = DRAINED_MAX.min(u64::try_from(length).unwrap_or(DRAINED_MAX));
        io::copy(&mut reader.take(rest), &mut io::sink())?;
        return Err(io::Error::other(format!("it is longer than {OBJECT_MAX} bytes")));
    }
    let mut object = vec![0; length];
    reader.read_exact(&mut object)?;
    Ok(Wanted { form, object })
}

/// Sends an answer, and ends the connection.
pub(super) fn say(mut stream: UnixStream, kind: u8, text: &[u8]) -> io::Result<()> {
    stream.write_all(&[kind])?;
    stream.write_all(text)?;
    stream.shutdown(Shutdown::Both)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_of(bytes: &[u8]) -> io::Result<Wanted> {
        let (mut client, host) = UnixStream::pair().unwrap();
        client.write_all(bytes).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        read(&host)
    }

    #[test]
    fn a_request_is_read_as_a_whole_or_not_at_all() {
        let whole = b"portcullis-sign/1\0ssh\x003\0abc";
        let wanted = read_of(whole).unwrap();
        assert_eq!((wanted.form.as_str(), wanted.object.as_slice()), ("ssh", b"abc".as_slice()));
        for length in 0..whole.len() {
            assert!(read_of(&whole[..length]).is_err(), "its first {length} bytes");
        }
        assert!(read_of(&[whole.as_slice(), whole].concat()).is_err(), "two of them");
        assert!(read_of(b"portcullis-sign/2\0ssh\x003\0abc").is_err());
        assert!(read_of(b"portcullis-sign/1\0ssh\0-3\0abc").is_err());
    }

    #[test]
    fn a_client_that_sends_nothing_more_is_not_waited_for() {
        let (_client, stream) = UnixStream::pair().unwrap();
        let mut late = Timed { stream, until: Instant::now() + Duration::from_millis(50) };
        assert!(late.read(&mut [0]).is_err());
        assert_eq!(late.read(&mut [0]).unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
