//! Watches a stream that seems to be neither TLS nor HTTP for hidden HTTP requests, until its server has answered.
//!
//! HTTP servers differ in what they accept as a request: some do not require letters in the method, some require no
//! version, some end lines at CR and LF only. Each byte is checked once and forwarded at once, because servers answer a
//! request only after its lines are complete. The byte that would complete such a line stops the stream.

use super::opening::{VERSIONS, is_space, names_a_target};

/// The longest accepted name of a server, with all white space before it.
const FIELD_MAX: usize = 1024;
/// How much of a word is kept: enough to tell whether it is a request target.
const WORD_MAX: usize = 32;
const NAME: &[u8] = b"host";
/// The ways in which servers separate words.
const SEPARATORS: [fn(u8) -> bool; 4] =
    [|byte| byte == b' ', |byte| b" \t".contains(&byte), |byte| b"\t\n\x0b\x0c\r ".contains(&byte), is_space];

/// A finding in the stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// The first line is a request to some servers.
    Request,
    /// A line that names a server, with its value.
    Host(Vec<u8>),
}

/// The state of the stream so far.
#[derive(Debug)]
pub(super) struct Watch {
    /// `None` after the first line has ended for every server.
    first_line: Option<FirstLine>,
    /// The current line, while it may name a server.
    field: Option<Vec<u8>>,
}

impl Default for Watch {
    fn default() -> Self {
        Self { first_line: Some(FirstLine::default()), field: Some(Vec::new()) }
    }
}

impl Watch {
    /// Takes the next byte.
    pub(super) fn take(&mut self, byte: u8) -> Option<Finding> {
        if let Some(line) = &mut self.first_line {
            if line.take(byte) {
                return Some(Finding::Request);
            }
            if line.has_ended {
                self.first_line = None;
            }
        }
        if b"\r\n".contains(&byte) {
            return self.field.replace(Vec::new()).and_then(|line| host(&line)).map(Finding::Host);
        }
        let line = self.field.as_mut()?;
        line.push(byte);
        if !may_be_host(line) {
            self.field = None;
        } else if line.len() > FIELD_MAX {
            return self.field.take().map(Finding::Host);
        }
        None
    }
}

fn may_be_host(line: &[u8]) -> bool {
    match line.split_at_checked(NAME.len()) {
        None => NAME.get(..line.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(line)),
        Some((name, rest)) => {
            let next = rest.iter().find(|byte| !is_space(**byte));
            name.eq_ignore_ascii_case(NAME) && next.is_none_or(|byte| *byte == b':')
        }
    }
}

/// Returns the value of a line `Host:`.
fn host(line: &[u8]) -> Option<Vec<u8>> {
    let (name, rest) = line.split_at_checked(NAME.len())?;
    let colon = rest.iter().position(|byte| !is_space(*byte))?;
    let value = rest.get(colon..)?.strip_prefix(b":")?;
    name.eq_ignore_ascii_case(NAME).then(|| value.trim_ascii().to_vec())
}

#[derive(Debug)]
struct FirstLine {
    words: [Words; 4],
    /// The last bytes, in lower case.
    tail: [u8; 6],
    /// The line contains something other than white space.
    is_there: bool,
    /// The line has ended for servers that end it at LF.
    has_ended_early: bool,
    has_ended: bool,
}

impl Default for FirstLine {
    fn default() -> Self {
        let words = SEPARATORS.map(Words::new);
        Self { words, tail: [0; 6], is_there: false, has_ended_early: false, has_ended: false }
    }
}

impl FirstLine {
    /// Takes the next byte; returns true if some server could take the line for the first line of a request.
    fn take(&mut self, byte: u8) -> bool {
        let mut is_request = false;
        for words in &mut self.words {
            is_request |= words.take(byte);
        }
        is_request |= !self.has_ended_early && byte.is_ascii_digit() && self.has_version();
        let last = self.tail[5];
        self.tail.rotate_left(1);
        self.tail[5] = byte.to_ascii_lowercase();
        self.is_there |= !is_space(byte);
        if byte == b'\n' && self.is_there {
            self.has_ended_early = true;
            self.has_ended = last == b'\r';
        } else if byte == b'\n' && last == b'\r' {
            // Some servers skip blank lines.
            self.words = SEPARATORS.map(Words::new);
        }
        is_request
    }

    fn has_version(&self) -> bool {
        VERSIONS.iter().any(|version| {
            let before = self.tail.strip_suffix(*version).and_then(|before| before.last());
            before.is_some_and(|byte| is_space(*byte))
        })
    }
}

/// The words of a line, for a server with one kind of separators.
#[derive(Debug)]
struct Words {
    parts: fn(u8) -> bool,
    /// White space precedes the first word; for some servers this is an empty first word.
    is_indented: bool,
    ended: u8,
    /// The beginning of the current word.
    word: Vec<u8>,
    /// The current word contains bytes that a request target cannot contain.
    has_controls: bool,
}

impl Words {
    fn new(parts: fn(u8) -> bool) -> Self {
        Self { parts, is_indented: false, ended: 0, word: Vec::new(), has_controls: false }
    }

    /// Takes the next byte; returns true if it ends the target of a request.
    fn take(&mut self, byte: u8) -> bool {
        let may_be_target = self.ended == 1 || self.ended == 0 && self.is_indented;
        let is_line_end = b"\r\n".contains(&byte);
        let is_end = (self.parts)(byte) || is_line_end && (may_be_target || self.word.is_empty());
        if !is_end {
            self.has_controls |= byte.is_ascii_control();
            if self.word.len() < WORD_MAX {
                self.word.push(byte);
            }
            return false;
        }
        if self.word.is_empty() {
            self.is_indented |= self.ended == 0 && !is_line_end;
            return false;
        }
        let is_target = may_be_target && !self.has_controls && names_a_target(&self.word);
        self.word.clear();
        self.has_controls = false;
        self.ended = self.ended.saturating_add(1);
        is_target
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(bytes: &[u8]) -> Option<Finding> {
        let mut watch = Watch::default();
        bytes.iter().find_map(|&byte| watch.take(byte))
    }

    #[test]
    fn any_word_is_a_method_to_somebody() {
        for line in [
            b"!X / HTTP/1.1\r\n".as_slice(),
            b"1 / HTTP/1.1\r\n",
            b"\0GET / HTTP/1.1\n",
            b"GE\x01T\t/\thttp/1.0\n",
            b"A /\0 HTTP/1.1\r\n",
            b"A b HTTP/1.1\r\n",
            b"{ /\n",
            b"1 http://a/\r",
            b"(X /x y\r\n",
            b"(X /x HTTP/+1.1\r\n",
            b"PUBLISH /x y z\r\n",
            b"\0\0\0\0 / z\r\n",
            b"X\nGET / y\r\n",
            b"{\nGET / HTTP/1.1\r\n",
            b"\n / y\r\n",
            b" /x y\r\n",
            b" \r\n(X *\r\n",
            b"A\x1cB\x0c/\x0cy\r\n",
            b"\x0f\n*\r\n",
        ] {
            assert_eq!(found(line), Some(Finding::Request), "{}", line.escape_ascii());
        }
        let long = [b"(X /".as_slice(), &[b'a'; 70_000], b" HTTP/1.1"].concat();
        assert_eq!(found(&long), Some(Finding::Request));
    }

    #[test]
    fn other_protocols_are_not_stopped() {
        for bytes in [
            b"*1\r\n$4\r\nPING\r\n*3\r\n$9\r\n/ HTTP/1.1\r\n".as_slice(),
            b"{\"url\": \"http://a/\"}\r\n",
            b"{\"version\":\"HTTP/1.1\"}\r\n",
            b"0032git-upload-pack /a.git\0host=a.test\0",
            b"0032git-upload-pack /a.git\0host=a.test\x000098want 0123 multi_ack\n",
            b"\x13BitTorrent protocol",
            b"<?xml version='1.0'?>\r\n",
            b"SSH-2.0-OpenSSH_9.2\r\n\0\0\0 / x ",
            b"EHLO me\r\nMAIL FROM:<a>\r\n",
            b"NICK me\nUSER me 0 * :me\n",
            b"set key 0 0 5\r\nhello\r\n",
            b"\0\0\0\x08\x04\xd2\x16/psql",
            b"hosts: a\r\nhostname: b\r\nghost: c\r\n  host: d\r\nX Host: e\r\n",
        ] {
            assert_eq!(found(bytes), None, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn a_line_that_names_a_server_is_found_wherever_lines_end() {
        for (bytes, name) in [
            (b"FOO a:b y\r\nHost: evil.test\r\n".as_slice(), b"evil.test".as_slice()),
            (b"FOO x\nhOsT \t: evil.test \n", b"evil.test"),
            (b"FOO x\rHOST:evil.test\r", b"evil.test"),
            (b"FOO x\r\nHost:\r\n evil.test\r\n", b""),
            (b"FOO x\r\n\r\nrest\r\nHost: a:1\r\n", b"a:1"),
        ] {
            assert_eq!(found(bytes), Some(Finding::Host(name.to_vec())), "{}", bytes.escape_ascii());
        }
        assert_eq!(found(b"FOO x\r\nHost: evil.test"), None, "it has not ended");
        let long = [b"FOO x\r\nHost:".as_slice(), &[b' '; 2000]].concat();
        assert!(matches!(found(&long), Some(Finding::Host(_))));
    }
}
