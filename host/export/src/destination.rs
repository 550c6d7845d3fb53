//! The file that names collectors.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::address::Address;
use crate::format::Format;

/// The socket of journald.
const JOURNALD: &str = "/run/systemd/journal/socket";
/// The longest name of a destination, in bytes.
const NAME_MAX: usize = 64;
/// The largest file that a header comes from, in bytes.
const HEADER_MAX: u64 = 8 << 10;

/// A collector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// Its name, which names its cursor as well.
    pub name: String,
    /// How records are written for it.
    pub format: Format,
    /// Where it is.
    pub address: Address,
    /// Headers of its requests.
    pub headers: BTreeMap<String, HeaderValue>,
    /// A file with certificates that it is trusted by, in place of those of the system.
    pub ca: Option<PathBuf>,
}

/// The value of a header.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum HeaderValue {
    /// The text itself.
    Text(String),
    /// The first line of a file, read for each batch.
    File(HeaderFile),
}

/// A file with the value of a header.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeaderFile {
    /// Its absolute path.
    pub file: PathBuf,
}

/// Why a file with destinations cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It is not TOML, or has other keys.
    #[error("it cannot be read as TOML")]
    Toml(#[from] toml::de::Error),
    /// A destination means nothing.
    #[error("the destination `{name}`: {reason}")]
    Destination {
        /// Its name.
        name: String,
        /// The mistake.
        reason: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    destination: Vec<Written>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    format: Format,
    to: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, HeaderValue>,
    ca: Option<PathBuf>,
}

/// Parses the text of a file with destinations.
///
/// # Errors
/// At the first mistake.
pub fn parse(text: &str) -> Result<Vec<Destination>, ConfigError> {
    let document: Document = toml::from_str(text)?;
    let mut destinations: Vec<Destination> = Vec::new();
    for written in document.destination {
        let name = written.name.clone();
        let wrong = |reason| ConfigError::Destination { name: name.escape_debug().to_string(), reason };
        let destination = written.checked().map_err(wrong)?;
        if destinations.iter().any(|other| other.name == destination.name) {
            return Err(wrong("another one has this name".to_owned()));
        }
        destinations.push(destination);
    }
    Ok(destinations)
}

impl Written {
    fn checked(self) -> Result<Destination, String> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        if self.name.is_empty() || self.name.len() > NAME_MAX || !self.name.bytes().all(fits) {
            return Err("a name has letters, digits, `-` and `_`, at most 64 of them".to_owned());
        }
        let address = match (&self.to, self.format) {
            (Some(text), _) => Address::parse(text)?,
            (None, Format::Journald) => Address::Unix(JOURNALD.into()),
            (None, _) => return Err("`to` is missing, the address of the collector".to_owned()),
        };
        if !self.format.goes_to(&address) {
            return Err(format!("{} is sent to {}", self.format.name(), self.format.addresses()));
        }
        if !matches!(address, Address::Http(_)) && !self.headers.is_empty() {
            return Err("only `https://` has `headers`".to_owned());
        }
        for (name, value) in &self.headers {
            if ureq::http::HeaderName::from_bytes(name.as_bytes()).is_err() {
                return Err(format!("`{}` is no name of a header", name.escape_debug()));
            }
            value.check().map_err(|reason| format!("the header `{name}`: {reason}"))?;
        }
        if self.ca.as_ref().is_some_and(|path| !path.is_absolute()) {
            return Err("`ca` is not an absolute path".to_owned());
        }
        let Self { name, format, headers, ca, .. } = self;
        Ok(Destination { name, format, address, headers, ca })
    }
}

impl HeaderValue {
    fn check(&self) -> Result<(), &'static str> {
        match self {
            Self::Text(text) => is_header_value(text).then_some(()).ok_or("it has control characters"),
            Self::File(HeaderFile { file }) => {
                file.is_absolute().then_some(()).ok_or("`file` is not an absolute path")
            }
        }
    }

    /// Returns the value, which may be in a file.
    ///
    /// # Errors
    /// When the file cannot be read, or its first line is no value of a header.
    pub fn read(&self) -> Result<String, String> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::File(HeaderFile { file }) => first_line(file),
        }
    }
}

fn first_line(file: &Path) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("reading `{}`: {error}", file.display());
    let mut text = String::new();
    let opened = std::fs::File::open(file).map_err(failed)?;
    opened.take(HEADER_MAX).read_to_string(&mut text).map_err(failed)?;
    let line = text.lines().next().unwrap_or_default().trim();
    if line.is_empty() || !is_header_value(line) {
        return Err(format!("the first line of `{}` is no value of a header", file.display()));
    }
    Ok(line.to_owned())
}

fn is_header_value(text: &str) -> bool {
    ureq::http::HeaderValue::from_str(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_parsed() {
        let found = parse(
            "[[destination]]\nname = \"team\"\nformat = \"otlp\"\nto = \"https://c.example/v1/logs\"\n\
             ca = \"/etc/ca.pem\"\n[destination.headers]\nAuthorization = { file = \"/etc/token\" }\nX-Team = \"a\"\n\
             [[destination]]\nname = \"here\"\nformat = \"journald\"\n",
        )
        .unwrap();
        let [team, here] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((team.format, team.ca.as_deref()), (Format::Otlp, Some(Path::new("/etc/ca.pem"))));
        assert_eq!(team.headers["X-Team"], HeaderValue::Text("a".to_owned()));
        assert_eq!(here.address, Address::Unix("/run/systemd/journal/socket".into()));
        assert!(parse("").unwrap().is_empty());
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        let destination = |rest: &str| format!("[[destination]]\nname = \"team\"\n{rest}\n");
        for (text, said) in [
            ("[[destinations]]\n".to_owned(), "unknown field `destinations`"),
            (destination("format = \"gelf\""), "unknown variant `gelf`"),
            (destination("format = \"otlp\""), "`to` is missing"),
            (destination("format = \"otlp\"\nto = \"tls://c.example\""), "OTLP is sent to `https://HOST"),
            (
                destination("format = \"syslog\"\nto = \"https://c.example/\""),
                "syslog is sent to `tls://HOST",
            ),
            (
                destination("format = \"journald\"\nto = \"tls://c.example\""),
                "journald is sent to `unix:///PATH",
            ),
            (
                destination("format = \"syslog\"\nto = \"tls://c\"\nheaders = { A = \"b\" }"),
                "only `https://`",
            ),
            (
                destination("format = \"otlp\"\nto = \"https://c/\"\nheaders = { A = \"b\\nc\" }"),
                "control characters",
            ),
            (
                destination("format = \"otlp\"\nto = \"https://c/\"\nheaders = { \"A b\" = \"c\" }"),
                "no name of a header",
            ),
            (
                destination("format = \"otlp\"\nto = \"https://c/\"\nheaders = { A = { file = \"token\" } }"),
                "not an absolute path",
            ),
            (destination("format = \"otlp\"\nto = \"https://c/\"\nca = \"ca.pem\""), "not an absolute path"),
            ("[[destination]]\nname = \"../x\"\nformat = \"journald\"\n".to_owned(), "a name has letters"),
            (destination("format = \"journald\"").repeat(2), "another one has this name"),
        ] {
            let error = parse(&text).unwrap_err();
            let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
            let whole = format!("{error}: {cause}");
            assert!(whole.contains(said), "{text}: {whole}");
        }
    }

    #[test]
    fn a_header_comes_from_the_first_line_of_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("token");
        let value = HeaderValue::File(HeaderFile { file: file.clone() });
        assert!(value.read().unwrap_err().contains("reading `"));
        std::fs::write(&file, "Bearer abc\nsecond\n").unwrap();
        assert_eq!(value.read().unwrap(), "Bearer abc");
        for text in ["", "\n", "a\u{1}b\n"] {
            std::fs::write(&file, text).unwrap();
            assert!(value.read().unwrap_err().contains("no value of a header"), "{text:?}");
        }
    }
}
