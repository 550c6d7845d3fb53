//! The address that git pushes to. It is read from files of a repository, which commands can write: it is only shown
//! and proposed, and no program of the repository runs.

use std::path::{Path, PathBuf};

use crate::git_config::{Config, small_text};

/// The most directories above that are looked into.
const LEVELS: usize = 64;
/// The remote of a branch that has none.
const USUAL: &str = "origin";

/// An address of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) transport: Transport,
    pub(crate) user: Option<String>,
    pub(crate) host: String,
    pub(crate) port: Option<u16>,
    /// The path without `/` at the beginning and `.git` at the end.
    pub(crate) path: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Ssh,
    Https,
}

/// Returns the address that `git push` uses in a directory, for a remote that is named or the usual one.
pub(crate) fn push_address(directory: &Path, remote: Option<&str>) -> Option<Address> {
    if let Some(address) = remote.and_then(Address::parse) {
        return Some(address);
    }
    let git = directory.ancestors().take(LEVELS).map(|at| at.join(".git")).find(|git| git.is_dir())?;
    let config = Config::parse(&small_text(&git.join("config"))?);
    let usual = || {
        let head = small_text(&git.join("HEAD"))?;
        let branch = head.trim().strip_prefix("ref: refs/heads/")?.to_owned();
        let of_branch = |key| config.value("branch", &branch, key);
        of_branch("pushremote")
            .or_else(|| config.value("remote", "", "pushdefault"))
            .or_else(|| of_branch("remote"))
    };
    let remote = remote.map(str::to_owned).or_else(usual).unwrap_or_else(|| USUAL.to_owned());
    let url = config.value("remote", &remote, "pushurl").or_else(|| config.value("remote", &remote, "url"));
    Address::parse(&url.unwrap_or(remote))
}

/// Returns the closest directory above that has a file of this name, or the directory itself.
pub(crate) fn holder_of(directory: &Path, name: &str) -> Option<PathBuf> {
    directory.ancestors().take(LEVELS).find(|at| at.join(name).is_file()).map(Path::to_owned)
}

impl Address {
    /// Parses `https://host/path`, `ssh://user@host:port/path` and `user@host:path`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (transport, rest) = match text.split_once("://") {
            Some(("https", rest)) => (Transport::Https, rest),
            Some(("ssh" | "git+ssh" | "ssh+git", rest)) => (Transport::Ssh, rest),
            Some(_) => return None,
            None => {
                let (place, path) = text.split_once(':').filter(|(place, _)| !place.contains('/'))?;
                return Self::of_parts(Transport::Ssh, place, None, path);
            }
        };
        let (place, path) = rest.split_once('/')?;
        let port_at = place.rfind(':').filter(|at| place.rfind('@').is_none_or(|user| user < *at));
        let (place, port) = match port_at.and_then(|at| place.split_at_checked(at)) {
            Some((before, port)) => (before, Some(port.strip_prefix(':')?.parse().ok()?)),
            None => (place, None),
        };
        Self::of_parts(transport, place, port, path)
    }

    fn of_parts(transport: Transport, place: &str, port: Option<u16>, path: &str) -> Option<Self> {
        let (user, host) = match place.rsplit_once('@') {
            // A password in an address is none of ours.
            Some((user, host)) => (Some(user).filter(|user| !user.contains(':')), host),
            None => (None, place),
        };
        let fits = |text: &str, more: &[u8]| {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || more.contains(&byte);
            !text.is_empty() && !text.starts_with(['-', '.']) && text.bytes().all(is_plain)
        };
        let path = path.trim_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path);
        let is_clear =
            fits(host, b"-.") && fits(path, b"-._/") && !path.contains("//") && !path.contains("..");
        let is_clear = is_clear && user.is_none_or(|user| fits(user, b"-._"));
        is_clear.then(|| Self {
            transport,
            user: user.map(str::to_owned),
            host: host.to_ascii_lowercase(),
            port,
            path: path.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed_as_git_writes_them() {
        let ssh = |user: Option<&str>, port| {
            Some(Address {
                transport: Transport::Ssh,
                user: user.map(str::to_owned),
                host: "forge.test".to_owned(),
                port,
                path: "me/proj".to_owned(),
            })
        };
        assert_eq!(Address::parse("git@forge.test:me/proj.git"), ssh(Some("git"), None));
        assert_eq!(Address::parse("forge.test:/me/proj"), ssh(None, None));
        assert_eq!(Address::parse("ssh://git@Forge.test:2222/me/proj.git/"), ssh(Some("git"), Some(2222)));
        assert_eq!(Address::parse("ssh://forge.test/me/proj"), ssh(None, None));
        let https = Address::parse("https://me:secret@forge.test/me/proj.git").unwrap();
        assert_eq!((https.transport, https.user, https.path.as_str()), (Transport::Https, None, "me/proj"));
        for text in [
            "origin",
            "/srv/repo.git",
            "../other",
            "http://forge.test/a/b",
            "file:///srv/x",
            "ext::sh -c x",
            "ssh://-oProxyCommand=x/a/b",
            "git@forge.test:../a",
            "git@forge.test:a b",
            "https://forge.test",
            "git@forge.test:",
            "https://forge.test:x/a/b",
            "git@for\u{441}ge.test:a/b",
        ] {
            assert_eq!(Address::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_remote_is_that_of_the_branch() {
        let directory = tempfile::tempdir().unwrap();
        let git = directory.path().join(".git");
        std::fs::create_dir_all(directory.path().join("below")).unwrap();
        std::fs::create_dir(&git).unwrap();
        std::fs::write(git.join("HEAD"), "ref: refs/heads/topic\n").unwrap();
        std::fs::write(
            git.join("config"),
            "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://forge.test/me/proj\n\
             [remote \"up\"]\n\turl = https://forge.test/up/proj\n\tpushurl = git@forge.test:up/pushed.git\n\
             [branch \"topic\"]\n\tremote = up\n",
        )
        .unwrap();
        let path = |remote| push_address(&directory.path().join("below"), remote).map(|address| address.path);
        assert_eq!(path(None).as_deref(), Some("up/pushed"));
        assert_eq!(path(Some("origin")).as_deref(), Some("me/proj"));
        assert_eq!(path(Some("git@forge.test:a/b")).as_deref(), Some("a/b"));
        assert_eq!(path(Some("none")), None);
        std::fs::write(git.join("HEAD"), "4b825dc642cb6eb9a060e54bf8d69288fbee4904\n").unwrap();
        assert_eq!(path(None).as_deref(), Some("me/proj"));
    }
}
