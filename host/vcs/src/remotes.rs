//! The remotes in a repository's own configuration.

use portcullis_decision::context::Remote;
use portcullis_exec_surface::git::config_text;

use crate::find::GitDirectory;
use crate::stamp::Stamps;

/// The most remotes that are told.
const REMOTES: usize = 32;
/// The longest name and the longest address.
const LENGTH: usize = 1 << 10;

/// Reads the remotes, in the order of the file. A file that git would refuse has none.
pub(crate) fn read(git: &GitDirectory, stamps: &mut Stamps) -> Vec<Remote> {
    stamps.note(git.common_path.join("config"));
    let text = git.common.read("config", config_text::LONGEST).unwrap_or_default();
    remotes(&text)
}

fn remotes(text: &[u8]) -> Vec<Remote> {
    let mut remotes: Vec<Remote> = Vec::new();
    for entry in config_text::parse(text).unwrap_or_default() {
        let name = entry.name.strip_prefix(b"remote.").and_then(|rest| rest.strip_suffix(b".url"));
        let (Some(name), Some(url)) = (name.and_then(plain), entry.value.as_deref().and_then(plain)) else {
            continue;
        };
        // Git fetches from the first address.
        if remotes.len() < REMOTES && !remotes.iter().any(|known| known.name == name) {
            remotes.push(Remote { name: name.to_owned(), url: without_user(url) });
        }
    }
    remotes
}

fn plain(text: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(text).ok()?;
    (!text.is_empty() && text.len() <= LENGTH && !text.contains(char::is_control)).then_some(text)
}

/// Removes the user and the password from `scheme://user:password@host/path`. Tokens stand in either.
fn without_user(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (place, path) = rest.split_at(end);
    let host = place.rsplit_once('@').map_or(place, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, &str)]) {
        let found = remotes(text.as_bytes());
        let found: Vec<_> = found.iter().map(|one| (one.name.as_str(), one.url.as_str())).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn remotes_are_told_without_credentials() {
        check("", &[]);
        check(
            "[remote \"origin\"]\n\turl = https://user:token@a.test/b.git\n",
            &[("origin", "https://a.test/b.git")],
        );
        check("[remote \"a\"]\nurl = git@a.test:b.git\nurl = git@c.test:d\n", &[("a", "git@a.test:b.git")]);
        check("[remote \"a.b\"]\nurl = /srv/x\n[remote \"c\"]\npushurl = x\n", &[("a.b", "/srv/x")]);
        check("[remote \"a\"]\nurl = https://a@b@c.test/x@y\n", &[("a", "https://c.test/x@y")]);
    }

    #[test]
    fn texts_that_git_refuses_have_none() {
        check("[remote \"a\"]\nurl = x\n[broken\n", &[]);
        let many: String = (0..100).map(|number| format!("[remote \"r{number}\"]\nurl = x\n")).collect();
        assert_eq!(remotes(many.as_bytes()).len(), REMOTES);
        check(&format!("[remote \"a\"]\nurl = {}\n", "x".repeat(LENGTH + 1)), &[]);
    }
}
