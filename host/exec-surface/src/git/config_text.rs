//! The grammar of git's configuration files, parsed exactly as git does.
//!
//! Where git stops with "bad config line" this parser stops too. It is stricter in three ways: a text with a NUL byte,
//! where git's C strings would end, one longer than [`LONGEST`], and one with very many variables are faults. A text
//! that is parsed here yields exactly the entries that `git config --list` shows; the tests compare the two.

/// The longest text that is parsed, in bytes; git's own configuration files have a few hundred.
pub const LONGEST: usize = 1 << 20;

/// The maximum number of variables. Each takes a hundred times the memory of its shortest text.
const MOST: usize = 100_000;

/// The maximum number of bytes of section names, each counted for every variable in the section.
const MOST_OF_SECTIONS: usize = 16 << 20;

/// One variable of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The line of its name, counted from 1.
    pub line: usize,
    /// The name as git compares it: `section.subsection.key`, section and key in lower case.
    pub name: Vec<u8>,
    /// The value; `None` without `=`, which means true.
    pub value: Option<Vec<u8>>,
}

/// Why a text is not a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// It is longer than [`LONGEST`].
    TooLong,
    /// It has more than a hundred thousand variables, or fewer with very long names.
    TooMany,
    /// It contains a NUL byte.
    Nul,
    /// Git would call this line, counted from 1, a bad one.
    Line(usize),
}

impl std::fmt::Display for Fault {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooLong => write!(formatter, "it is longer than {LONGEST} bytes"),
            Self::TooMany => write!(formatter, "it has more than {MOST} variables, or very long names"),
            Self::Nul => formatter.write_str("it holds a NUL byte"),
            Self::Line(line) => write!(formatter, "git cannot parse line {line}"),
        }
    }
}

/// Parses a configuration file.
///
/// ```
/// use portcullis_exec_surface::git::config_text::parse;
/// let entries = parse(b"[remote \"Origin\"]\n\tURL = https://a.test/b.git ; where\n").unwrap();
/// assert_eq!(entries[0].name, b"remote.Origin.url");
/// assert_eq!(entries[0].value.as_deref(), Some(b"https://a.test/b.git".as_slice()));
/// ```
///
/// # Errors
/// If git would refuse it too, and for NUL bytes and very long texts.
pub fn parse(text: &[u8]) -> Result<Vec<Entry>, Fault> {
    if text.len() > LONGEST {
        return Err(Fault::TooLong);
    }
    if text.contains(&0) {
        return Err(Fault::Nul);
    }
    // A complete byte order mark is skipped; a part of one is a fault, because it is not a letter.
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut reader = Reader { text, at: 0, line: 1, ended: false, of_sections: 0 };
    let entries = reader.entries().ok_or(Fault::Line(reader.line))?;
    if reader.has_too_many(&entries) { Err(Fault::TooMany) } else { Ok(entries) }
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    line: usize,
    ended: bool,
    of_sections: usize,
}

impl Reader<'_> {
    /// Returns the next byte: a carriage return before a newline is skipped, and the end is one more newline.
    fn next(&mut self) -> u8 {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let (byte, taken) = match rest {
            [] => {
                self.ended = true;
                return b'\n';
            }
            [b'\r', b'\n', ..] => (b'\n', 2),
            [byte, ..] => (*byte, 1),
        };
        self.at += taken;
        byte
    }

    /// As [`Reader::next`], outside names and values, where newlines are counted.
    fn next_counted(&mut self) -> u8 {
        let byte = self.next();
        if byte == b'\n' && !self.ended {
            self.line += 1;
        }
        byte
    }

    fn has_too_many(&self, entries: &[Entry]) -> bool {
        entries.len() > MOST || self.of_sections > MOST_OF_SECTIONS
    }

    fn entries(&mut self) -> Option<Vec<Entry>> {
        let mut entries = Vec::new();
        let mut section: Vec<u8> = Vec::new();
        loop {
            match self.next_counted() {
                b'\n' if self.ended => return Some(entries),
                b'#' | b';' => while self.next_counted() != b'\n' {},
                byte if is_space(byte) => {}
                b'[' => section = self.section()?,
                byte if byte.is_ascii_alphabetic() => {
                    entries.push(self.entry(&section, byte)?);
                    self.of_sections += section.len();
                    if self.has_too_many(&entries) {
                        return Some(entries);
                    }
                }
                _ => return None,
            }
        }
    }

    /// Parses a section header, and returns it as the prefix of its variables, with a dot.
    fn section(&mut self) -> Option<Vec<u8>> {
        let mut name = Vec::new();
        loop {
            let byte = self.next();
            if self.ended {
                return None;
            }
            match byte {
                b']' => break,
                byte if is_space(byte) => {
                    self.subsection(&mut name, byte)?;
                    break;
                }
                byte if is_key_byte(byte) || byte == b'.' => name.push(byte.to_ascii_lowercase()),
                _ => return None,
            }
        }
        if name.is_empty() {
            return None;
        }
        name.push(b'.');
        Some(name)
    }

    /// Parses `"subsection"]`; `byte` is the white space before it.
    fn subsection(&mut self, name: &mut Vec<u8>, mut byte: u8) -> Option<()> {
        while is_space(byte) {
            if byte == b'\n' {
                return None;
            }
            byte = self.next();
        }
        if byte != b'"' {
            return None;
        }
        name.push(b'.');
        loop {
            let byte = match self.next() {
                b'"' => break,
                b'\\' => self.next(),
                byte => byte,
            };
            if byte == b'\n' {
                return None;
            }
            name.push(byte);
        }
        (self.next() == b']').then_some(())
    }

    /// Parses a variable whose name begins with `first`.
    fn entry(&mut self, section: &[u8], first: u8) -> Option<Entry> {
        let line = self.line;
        let mut name = section.to_vec();
        let mut byte = first;
        while is_key_byte(byte) {
            name.push(byte.to_ascii_lowercase());
            byte = self.next();
        }
        while matches!(byte, b' ' | b'\t') {
            byte = self.next();
        }
        let value = match byte {
            b'\n' => None,
            b'=' => Some(self.value()?),
            _ => return None,
        };
        // The newline at its end; a fault above reports the line of the name.
        self.line += 1;
        Some(Entry { line, name, value })
    }

    fn value(&mut self) -> Option<Vec<u8>> {
        let mut value = Vec::new();
        // The length of the value without white space that may turn out to be trailing.
        let mut trimmed = None;
        let (mut quoted, mut continued) = (false, 0);
        loop {
            let byte = self.next();
            match byte {
                b'\n' if quoted => return None,
                b'\n' => break,
                byte if is_space(byte) && !quoted => {
                    if !value.is_empty() {
                        trimmed.get_or_insert(value.len());
                        value.push(byte);
                    }
                    continue;
                }
                b';' | b'#' if !quoted => {
                    while self.next() != b'\n' {}
                    break;
                }
                b'"' => quoted = !quoted,
                b'\\' => match self.next() {
                    b'\n' => continued += 1,
                    b't' => value.push(b'\t'),
                    b'b' => value.push(8),
                    b'n' => value.push(b'\n'),
                    byte @ (b'\\' | b'"') => value.push(byte),
                    _ => return None,
                },
                byte => value.push(byte),
            }
            trimmed = None;
        }
        self.line += continued;
        if let Some(length) = trimmed {
            value.truncate(length);
        }
        Some(value)
    }
}

/// Returns true for white space as git defines it: without vertical tab and form feed.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

fn is_key_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}
