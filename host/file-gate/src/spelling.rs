//! Resolves a written path to an absolute path, by the rules of pi.
//!
//! pi 0.x and 1.x differ in two points only: 1.x understands `file://` URLs, and removes `..` as text in absolute paths
//! as well, where 0.x leaves it to the kernel. A path that pi has resolved itself goes through [`absolute`], which does
//! not change it.

use std::path::{Path, PathBuf};

use portcullis_decision::path_text;

/// The longest path in bytes; PATH_MAX of Linux.
const PATH_MAX: usize = 4096;

/// The reason why a text is not a valid path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum SpellingError {
    /// It contains a NUL character.
    #[error("the path holds a NUL character; leave it out")]
    Nul,
    /// It exceeds the length limit.
    #[error("the path has {length} bytes, more than the {PATH_MAX} of the longest path")]
    TooLong { length: usize },
    /// It does not start at the root.
    #[error("`{path}` is not an absolute path")]
    NotAbsolute { path: String },
    /// It is a `file://` URL that does not name a file of this machine.
    #[error("`{address}` names no local file: {problem}; write the path instead")]
    Address { address: String, problem: &'static str },
}

/// A release line of pi, whose rules apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PiLine {
    /// 0.x.
    V0,
    /// 1.x and later.
    V1,
}

impl PiLine {
    /// Returns the release line of a version.
    #[must_use]
    pub fn from_version(version: &str) -> Self {
        if version.starts_with("0.") { Self::V0 } else { Self::V1 }
    }
}

/// Resolves a path that the user wrote, by the rules of the current pi.
///
/// # Errors
/// If it is not a valid path, or `cwd` or `home` is needed and not absolute.
pub fn resolve(given: &str, cwd: &Path, home: &Path) -> Result<PathBuf, SpellingError> {
    resolve_as(PiLine::V1, given, cwd, home)
}

/// Resolves a path that the model wrote, as the pi of `line` does.
///
/// # Errors
/// As for [`resolve`].
pub fn resolve_as(line: PiLine, given: &str, cwd: &Path, home: &Path) -> Result<PathBuf, SpellingError> {
    checked(given)?;
    let spaced: String = given.chars().map(plain_space).collect();
    let written = spaced.strip_prefix('@').unwrap_or(&spaced);
    let path = if written == "~" {
        home.to_owned()
    } else if let Some(below) = written.strip_prefix("~/") {
        // Without the leading slashes: joined with them, the path would start at the root again.
        home.join(below.trim_start_matches('/'))
    } else if line == PiLine::V1 && written.starts_with("file://") {
        local_file(written).map_err(|problem| SpellingError::Address { address: shown(written), problem })?
    } else {
        cwd.join(written)
    };
    if !path.is_absolute() {
        return Err(SpellingError::NotAbsolute { path: path_text::encode(&path) });
    }
    let is_taken_over = line == PiLine::V0 && (written.starts_with('/') || written.starts_with('~'));
    let path = if is_taken_over { path } else { path_text::normalize(&path) };
    match path.as_os_str().len() {
        length if length > PATH_MAX => Err(SpellingError::TooLong { length }),
        _ => Ok(path),
    }
}

/// Returns a path that pi has resolved, unchanged.
///
/// # Errors
/// If it is not absolute or not a valid path.
pub fn absolute(path: &str) -> Result<PathBuf, SpellingError> {
    checked(path)?;
    if path.starts_with('/') {
        Ok(PathBuf::from(path))
    } else {
        Err(SpellingError::NotAbsolute { path: shown(path) })
    }
}

fn checked(text: &str) -> Result<(), SpellingError> {
    match text.len() {
        length if length > PATH_MAX => Err(SpellingError::TooLong { length }),
        _ if text.contains('\0') => Err(SpellingError::Nul),
        _ => Ok(()),
    }
}

fn shown(text: &str) -> String {
    path_text::encode(Path::new(text))
}

/// Replaces the kinds of space that pi treats as an ordinary space.
fn plain_space(character: char) -> char {
    match character {
        '\u{00A0}' | '\u{2000}'..='\u{200A}' | '\u{202F}' | '\u{205F}' | '\u{3000}' => ' ',
        other => other,
    }
}

/// Returns the path in a `file://` URL.
///
/// It follows the URL standard and Node's `fileURLToPath`, but is stricter where they guess.
fn local_file(address: &str) -> Result<PathBuf, &'static str> {
    let is_edge = |character: char| character <= ' ';
    let address: String =
        address.trim_matches(is_edge).chars().filter(|character| !"\t\n\r".contains(*character)).collect();
    let rest = address.strip_prefix("file://").ok_or("it does not start with `file://`")?;
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let rest = rest.get(..end).unwrap_or_default().replace('\\', "/");
    let slash = rest.find('/').unwrap_or(rest.len());
    let (host, path) = rest.split_at_checked(slash).unwrap_or_default();
    if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
        return Err("it names another machine");
    }
    let first = path.trim_start_matches('/').as_bytes();
    if matches!(first, [letter, b':' | b'|', ..] if letter.is_ascii_alphabetic()) {
        return Err("it names a drive");
    }
    let path = percent_decoded(path)?;
    Ok(PathBuf::from(if path.is_empty() { "/".to_owned() } else { path }))
}

fn percent_decoded(text: &str) -> Result<String, &'static str> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16));
        let value = digit().zip(digit()).and_then(|(high, low)| u8::try_from(high * 16 + low).ok());
        match value {
            Some(b'/') => return Err("it holds an escaped slash"),
            Some(0) => return Err("it holds an escaped NUL"),
            Some(value) => bytes.push(value),
            None => return Err("it holds a `%` without two hexadecimal digits"),
        }
    }
    String::from_utf8(bytes).map_err(|_| "its escapes are not UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(given: &str, expected: &str) {
        let resolved = resolve(given, Path::new("/w/p"), Path::new("/home/u"));
        assert_eq!(resolved, Ok(PathBuf::from(expected)), "{given:?}");
    }

    #[test]
    fn spellings_that_pi_understands() {
        check("a/b", "/w/p/a/b");
        check("/a/b", "/a/b");
        check("", "/w/p");
        check(".", "/w/p");
        check("../x", "/w/x");
        check("../../../../x", "/x");
        check("/a/./b//c/../d/", "/a/b/d");
        check("//a", "/a");
        check("@a", "/w/p/a");
        check("@@a", "/w/p/@a");
        check("@/a", "/a");
        check("@", "/w/p");
        check("~", "/home/u");
        check("@~", "/home/u");
        check("~/x/../y", "/home/u/y");
        check("~//etc/passwd", "/home/u/etc/passwd");
        check("@~/x", "/home/u/x");
        check("~root/x", "/w/p/~root/x");
        check("x/~/y", "/w/p/x/~/y");
        check(" a ", "/w/p/ a ");
        check("a\u{00A0}b\u{2003}c\u{202F}d\u{3000}e\u{205F}f", "/w/p/a b c d e f");
        check("\u{00A0}@a", "/w/p/ @a");
        check("a\u{200B}b", "/w/p/a\u{200B}b");
        check("a\\b", "/w/p/a\\b");
        check("a\nb", "/w/p/a\nb");
        check("FILE:///etc/x", "/w/p/FILE:/etc/x");
        check("file:/etc/x", "/w/p/file:/etc/x");
        check("x file:///etc/x", "/w/p/x file:/etc/x");
    }

    #[test]
    fn addresses() {
        check("file:///etc/x", "/etc/x");
        check("@file:///etc/x", "/etc/x");
        check("file://localhost/etc/x", "/etc/x");
        check("file://LocalHost/etc/x", "/etc/x");
        check("file:///a%20b/%C3%BC", "/a b/ü");
        check("file:///a/%2e%2E/b", "/b");
        check("file:///a/../../b", "/b");
        check("file:///a?b#c", "/a");
        check("file:///a#b?c", "/a");
        check("file:///a%3Fb%23c", "/a?b#c");
        check("file:////etc/x", "/etc/x");
        check("file://\\etc\\x", "/etc/x");
        check("file:///e\ttc\n/x ", "/etc/x");
        check("file://", "/");
        check("file:///", "/");
    }

    #[test]
    fn addresses_that_are_refused() {
        for given in [
            "file://server/x",
            "file://etc/x",
            "file://u@localhost/x",
            "file://localhost:80/x",
            "file:///a%2Fb",
            "file:///a%2fb",
            "file:///a%00b",
            "file:///a%",
            "file:///a%2",
            "file:///a%zz",
            "file:///a%+1",
            "file:///%FF",
            "file:///C:/x",
            "file:///c|/x",
        ] {
            let resolved = resolve(given, Path::new("/w"), Path::new("/h"));
            assert!(matches!(resolved, Err(SpellingError::Address { .. })), "{given}: {resolved:?}");
        }
    }

    #[test]
    fn what_cannot_be_a_path() {
        let resolve = |given: &str| resolve(given, Path::new("/w"), Path::new("/h"));
        assert_eq!(resolve("a\0b"), Err(SpellingError::Nul));
        assert_eq!(resolve(&"a".repeat(4097)), Err(SpellingError::TooLong { length: 4097 }));
        assert_eq!(resolve(&"a".repeat(4096)), Err(SpellingError::TooLong { length: 4099 }));
        assert!(resolve(&format!("/{}", "a".repeat(4095))).is_ok());
        assert_eq!(absolute("a"), Err(SpellingError::NotAbsolute { path: "a".into() }));
        assert_eq!(absolute(""), Err(SpellingError::NotAbsolute { path: String::new() }));
        assert_eq!(absolute("/a\0"), Err(SpellingError::Nul));
    }

    #[test]
    fn what_the_older_pi_reads_otherwise() {
        let check = |given: &str, expected: &str| {
            let resolved =
                resolve_as(PiLine::from_version("0.74.2"), given, Path::new("/w/p"), Path::new("/home/u"));
            assert_eq!(resolved.map(PathBuf::into_os_string), Ok(expected.into()), "{given:?}");
        };
        check("file:///etc/x", "/w/p/file:/etc/x");
        check("/a/l/../b", "/a/l/../b");
        check("~/l/../b", "/home/u/l/../b");
        check("l/../b", "/w/p/b");
        check("@/a", "/a");
        assert_eq!(PiLine::from_version("1.5.2"), PiLine::V1);
    }

    #[test]
    fn relative_homes_and_working_directories_are_refused() {
        let empty = Path::new("");
        assert!(matches!(
            resolve("~/x", Path::new("/w"), Path::new("h")),
            Err(SpellingError::NotAbsolute { .. })
        ));
        assert!(matches!(resolve("x", empty, Path::new("/h")), Err(SpellingError::NotAbsolute { .. })));
        assert!(matches!(resolve("~/x", Path::new("/w"), empty), Err(SpellingError::NotAbsolute { .. })));
    }

    #[test]
    fn what_pi_resolved_is_not_changed() {
        for path in ["/a/../b", "/a\u{202F}PM.png", "/@x", "/~", "/a//b/"] {
            assert_eq!(absolute(path).map(PathBuf::into_os_string), Ok(path.into()));
        }
    }
}
