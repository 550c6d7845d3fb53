//! `HEAD` and the reference that it names.

use std::path::Path;

use crate::directory::Directory;
use crate::find::GitDirectory;
use crate::stamp::Stamps;

/// The longest `HEAD` and the longest file of one reference.
const REFERENCE: usize = 4 << 10;
/// The largest file of packed references, which has about 70 bytes for each: beyond it the commit is unknown.
const PACKED: usize = 8 << 20;
/// The branch that `HEAD` names where references are stored in tables.
const NONE: &str = ".invalid";

/// The content of `HEAD`: the branch and the commit that are checked out.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) branch: Option<String>,
    pub(crate) commit: Option<String>,
}

/// Reads `HEAD`, and the commit of its branch if that is wanted.
pub(crate) fn read(git: &GitDirectory, wants_commit: bool, stamps: &mut Stamps) -> Head {
    stamps.note(git.own_path.join("HEAD"));
    let Some(text) = git.own.read("HEAD", REFERENCE) else { return Head::default() };
    let Some(text) = std::str::from_utf8(&text).ok().map(str::trim_end) else { return Head::default() };
    let Some(name) = text.strip_prefix("ref: ") else {
        return Head { branch: None, commit: id(text) };
    };
    let Some(branch) = name.trim_start().strip_prefix("refs/heads/").filter(|name| is_branch(name)) else {
        return Head::default();
    };
    let commit = wants_commit.then(|| commit(git, branch, stamps)).flatten();
    Head { branch: Some(branch.to_owned()), commit }
}

/// Returns the commit of a branch; `None` for one without commits.
fn commit(git: &GitDirectory, branch: &str, stamps: &mut Stamps) -> Option<String> {
    stamps.note(git.common_path.join("refs/heads").join(branch));
    stamps.note(git.common_path.join("packed-refs"));
    loose(&git.common, branch).or_else(|| packed(&git.common, branch))
}

fn loose(common: &Directory, branch: &str) -> Option<String> {
    let directory = common.child("refs")?.child("heads")?;
    let (folders, name) = match branch.rsplit_once('/') {
        Some((folders, name)) => (folders, name),
        None => ("", branch),
    };
    let directory = Path::new(folders).iter().try_fold(directory, |at, part| at.child(part))?;
    id(std::str::from_utf8(&directory.read(name, REFERENCE)?).ok()?.trim_end())
}

fn packed(common: &Directory, branch: &str) -> Option<String> {
    let text = common.read("packed-refs", PACKED)?;
    let wanted = format!("refs/heads/{branch}");
    text.split(|byte| *byte == b'\n').find_map(|line| {
        let (commit, name) = std::str::from_utf8(line).ok()?.split_once(' ')?;
        if name == wanted { id(commit) } else { None }
    })
}

/// Returns the id of a commit: SHA-1 or SHA-256, in hexadecimal.
fn id(text: &str) -> Option<String> {
    let is_id = matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| text.to_ascii_lowercase())
}

/// Returns true for names that git accepts as a branch (git-check-ref-format), and that are plain text.
fn is_branch(name: &str) -> bool {
    let has_forbidden = name.contains(|character: char| {
        character.is_control() || matches!(character, ' ' | '~' | '^' | ':' | '?' | '*' | '[' | '\\')
    });
    let is_part = |part: &str| {
        !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock") && !part.ends_with('.')
    };
    name != NONE
        && !has_forbidden
        && !name.contains("..")
        && !name.contains("@{")
        && name.split('/').all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_branches() {
        for name in ["main", "feature/x", "größe", "a-b_c.d", "@"] {
            assert!(is_branch(name), "{name}");
        }
        for name in
            ["", ".invalid", "../x", "a..b", "a//b", "/a", "a/", "a b", "a\u{1b}", "a.lock", "a@{1}", "x/.y"]
        {
            assert!(!is_branch(name), "{name}");
        }
    }

    #[test]
    fn ids_of_commits() {
        assert_eq!(id(&"A".repeat(40)), Some("a".repeat(40)));
        assert_eq!(id(&"0".repeat(64)), Some("0".repeat(64)));
        assert_eq!(id(&"0".repeat(41)), None);
        assert_eq!(id(&"g".repeat(40)), None);
    }
}
