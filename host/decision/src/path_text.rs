//! Lossless conversion of paths to text, without two paths that look alike.
//!
//! A byte that is not UTF-8 is written `\xHH` and a backslash `\\`, as the contract says.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Encodes `path` as text.
///
/// ```
/// use std::path::Path;
/// assert_eq!(portcullis_decision::path_text::encode(Path::new("/a\\b")), "/a\\\\b");
/// ```
#[must_use]
pub fn encode(path: &Path) -> String {
    let mut text = String::with_capacity(path.as_os_str().len());
    for chunk in path.as_os_str().as_encoded_bytes().utf8_chunks() {
        for character in chunk.valid().chars() {
            if character == '\\' {
                text.push('\\');
            }
            text.push(character);
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02X}"));
        }
    }
    text
}

/// Decodes the output of [`encode`]; `None` if the text is malformed.
#[cfg(unix)]
#[must_use]
pub fn decode(text: &str) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt as _;

    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next()? {
            b'\\' => bytes.push(b'\\'),
            b'x' => {
                let high = char::from(rest.next()?).to_digit(16)?;
                let low = char::from(rest.next()?).to_digit(16)?;
                bytes.push(u8::try_from(high * 16 + low).ok()?);
            }
            _ => return None,
        }
    }
    Some(PathBuf::from(OsString::from_vec(bytes)))
}

/// Decodes the output of [`encode`]; `None` if the text is malformed.
#[cfg(not(unix))]
#[must_use]
pub fn decode(text: &str) -> Option<PathBuf> {
    (!text.contains("\\x")).then(|| PathBuf::from(text.replace("\\\\", "\\")))
}

/// Removes `.`, `..` and doubled slashes from an absolute path, without file system access.
#[must_use]
pub fn normalize(path: &Path) -> PathBuf {
    let mut clean = PathBuf::from("/");
    for component in path.components() {
        match component {
            std::path::Component::Normal(name) => clean.push(name),
            std::path::Component::ParentDir => {
                clean.pop();
            }
            std::path::Component::CurDir
            | std::path::Component::RootDir
            | std::path::Component::Prefix(_) => {}
        }
    }
    clean
}

/// Returns the names of an absolute path, top first.
pub fn names(path: &Path) -> impl Iterator<Item = &OsStr> {
    path.components().filter_map(|component| match component {
        std::path::Component::Normal(name) => Some(name),
        std::path::Component::ParentDir
        | std::path::Component::CurDir
        | std::path::Component::RootDir
        | std::path::Component::Prefix(_) => None,
    })
}

/// Serde adapter for `#[serde(with = "path_text::as_text")]`.
pub mod as_text {
    use std::path::{Path, PathBuf};

    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    /// Writes a path as text.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&crate::path_text::encode(path))
    }

    /// Reads a path from text.
    ///
    /// # Errors
    /// If the text is not the output of [`serialize`].
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
        let text = String::deserialize(deserializer)?;
        crate::path_text::decode(&text).ok_or_else(|| D::Error::custom(format!("`{text}` is not path text")))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    #[test]
    fn round_trips() {
        for bytes in [&b"/a/b"[..], b"/a\\b", b"/\xff\xfe x\n", "/ü/日".as_bytes(), b"/\\xFF"] {
            let path = Path::new(OsStr::from_bytes(bytes));
            assert_eq!(decode(&encode(path)).as_deref(), Some(path));
        }
    }

    #[test]
    fn different_paths_have_different_texts() {
        let real = encode(Path::new(OsStr::from_bytes(b"/\xff")));
        let look_alike = encode(Path::new("/\\xFF"));
        assert_ne!(real, look_alike);
    }

    #[test]
    fn refuses_text_it_did_not_write() {
        for text in ["/\\", "/\\q", "/\\x1", "/\\xZZ"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }

    #[test]
    fn normalizes() {
        for (given, clean) in [("/a/./b//c", "/a/b/c"), ("/a/../..", "/"), ("/a/b/..", "/a"), ("/", "/")] {
            assert_eq!(normalize(Path::new(given)), Path::new(clean));
        }
    }
}
