//! References to artifacts: `oci://HOST[:PORT]/PATH[:TAG][@sha256:...]`.

use std::fmt;

/// The location of an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The host, with an optional port.
    pub host: String,
    /// The path of the repository.
    pub repository: String,
    /// The tag, if one is given.
    pub tag: Option<String>,
    /// The digest of the manifest, `sha256:...`, if one is given.
    pub digest: Option<String>,
}

/// The reason why a text is not a reference.
#[derive(Debug, thiserror::Error)]
#[error("`{text}` names nothing in a registry: {reason}; write `oci://HOST/PATH:VERSION`")]
pub struct ReferenceError {
    text: String,
    reason: &'static str,
}

impl Reference {
    /// Parses a reference.
    ///
    /// # Errors
    /// Fails when the text is not a reference.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        let wrong = |reason| ReferenceError { text: text.to_owned(), reason };
        let rest = text.strip_prefix("oci://").unwrap_or(text);
        let (rest, digest) = match rest.split_once('@') {
            Some((rest, digest)) if crate::lock::is_digest(digest) => (rest, Some(digest.to_owned())),
            Some(_) => return Err(wrong("the text after `@` is not a digest")),
            None => (rest, None),
        };
        let (host, path) = rest.split_once('/').ok_or_else(|| wrong("there is no path behind the host"))?;
        let (repository, tag) = match path.split_once(':') {
            Some((repository, tag)) => (repository, Some(tag.to_owned())),
            None => (path, None),
        };
        if !is_host(host) {
            return Err(wrong("the host cannot be one"));
        }
        if repository.len() > 255 || !repository.split('/').all(is_component) {
            return Err(wrong("a path has lower-case letters, digits, `.`, `_`, `-` and `/`"));
        }
        if !tag.as_deref().is_none_or(is_tag) {
            return Err(wrong("the tag cannot be one"));
        }
        Ok(Self { host: host.to_owned(), repository: repository.to_owned(), tag, digest })
    }

    /// Returns this repository without tag and digest.
    #[must_use]
    pub fn place(&self) -> String {
        format!("oci://{}/{}", self.host, self.repository)
    }

    /// Returns this repository with a tag.
    #[must_use]
    pub fn tagged(&self, tag: &str) -> Self {
        Self { tag: Some(tag.to_owned()), digest: None, ..self.clone() }
    }

    /// Returns true if the host is this machine, so that traffic never leaves it.
    #[must_use]
    pub fn is_local(&self) -> bool {
        is_loopback(&self.host)
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.place())?;
        if let Some(tag) = &self.tag {
            write!(formatter, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(formatter, "@{digest}")?;
        }
        Ok(())
    }
}

/// Returns the tag of a version. Tags cannot contain `+`.
#[must_use]
pub fn tag_of(version: &semver::Version) -> String {
    version.to_string().replace('+', "_")
}

/// Returns the version of a tag, or `None` if the tag is not a version.
#[must_use]
pub fn version_of(tag: &str) -> Option<semver::Version> {
    semver::Version::parse(&tag.replace('_', "+")).ok()
}

pub(super) fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn is_host(host: &str) -> bool {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, port)) if address.parse::<std::net::Ipv6Addr>().is_ok() => {
                ("v6", port.strip_prefix(':').or(port.is_empty().then_some("1")))
            }
            Some(_) | None => return false,
        },
        None => match host.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (host, Some("1")),
        },
    };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-';
    let is_port = port.is_some_and(|port| port.parse::<u16>().is_ok_and(|port| port != 0));
    !name.is_empty()
        && name.len() <= 253
        && name.bytes().all(plain)
        && !name.starts_with(['-', '.'])
        && is_port
}

fn is_component(part: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
    let ends = |character: char| character.is_ascii_alphanumeric();
    part.bytes().all(plain) && part.starts_with(ends) && part.ends_with(ends)
}

fn is_tag(tag: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=128).contains(&tag.len()) && tag.bytes().all(plain) && !tag.starts_with(['.', '-'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let digest = format!("sha256:{}", "0".repeat(64));
        for (text, expected) in [
            ("ghcr.io/acme/guard:1.0.0", Some(("ghcr.io", "acme/guard", Some("1.0.0")))),
            ("oci://localhost:5000/a/b/c", Some(("localhost:5000", "a/b/c", None))),
            ("oci://[::1]:5000/a:x", Some(("[::1]:5000", "a", Some("x")))),
            ("guard", None),
            ("host/../x", None),
            ("host/a//b", None),
            ("host/A", None),
            ("host/a:", None),
            ("host/a:b:c", None),
            ("user@host/a", None),
            ("host:0/a", None),
            ("host:x/a", None),
            ("-host/a", None),
            ("host\r\nx/a", None),
            ("host/a@sha256:12", None),
        ] {
            let found = Reference::parse(text).ok();
            let found =
                found.as_ref().map(|it| (it.host.as_str(), it.repository.as_str(), it.tag.as_deref()));
            assert_eq!(found, expected, "{text}");
        }
        let exact = Reference::parse(&format!("h/a:1@{digest}")).unwrap();
        assert_eq!(exact.to_string(), format!("oci://h/a:1@{digest}"));
    }

    #[test]
    fn only_this_machine_is_local() {
        for (host, local) in [
            ("localhost:5000", true),
            ("127.0.0.9", true),
            ("[::1]:80", true),
            ("localhost.evil.test", false),
            ("127.0.0.1.evil.test", false),
            ("10.0.0.1:5000", false),
        ] {
            assert_eq!(is_loopback(host), local, "{host}");
        }
    }

    #[test]
    fn versions_and_tags() {
        let version = semver::Version::parse("1.2.0-rc.1+x").unwrap();
        assert_eq!(version_of(&tag_of(&version)), Some(version));
        assert_eq!(version_of("latest"), None);
    }
}
