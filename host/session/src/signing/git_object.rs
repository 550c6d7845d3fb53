//! Commits and tags of git, as they are given to a program that signs.

use portcullis_settings_format::SignedObject;

/// The longest line of the front, in bytes.
const LINE_MAX: usize = 1024;
/// The most parents of a commit.
const PARENTS_MAX: usize = 256;

/// The facts about a commit or a tag that a person decides on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct GitObject {
    pub(crate) kind: SignedObject,
    /// The committer or tagger, with the address.
    pub(crate) by: String,
    /// The first line of the message; of a tag, its name before it.
    pub(crate) summary: String,
}

impl GitObject {
    /// Parses an object. Returns `None` for everything else, also for an object that has a signature.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))?;
        let (front, message) = text.split_once("\n\n")?;
        let mut lines = Lines(front.split('\n').collect());
        if lines.0.iter().any(|line| line.len() > LINE_MAX) {
            return None;
        }
        let summary = message.lines().next().unwrap_or_default();
        let object = match lines.id("tree") {
            Some(()) => Self { by: lines.commit()?, summary: summary.to_owned(), kind: SignedObject::Commit },
            None => {
                let (name, by) = lines.tag()?;
                Self { by, summary: format!("{name}: {summary}"), kind: SignedObject::Tag }
            }
        };
        Some(object)
    }
}

/// The lines of the front that are left.
struct Lines<'a>(std::collections::VecDeque<&'a str>);

impl<'a> Lines<'a> {
    /// Takes the next line if it has this key, and returns its value.
    fn next(&mut self, key: &str) -> Option<&'a str> {
        let value = self.0.front()?.strip_prefix(key)?.strip_prefix(' ')?;
        self.0.pop_front();
        Some(value)
    }

    /// Takes the next line if it is the id of an object.
    fn id(&mut self, key: &str) -> Option<()> {
        let value = self.0.front()?.strip_prefix(key)?.strip_prefix(' ')?;
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let is_id = matches!(value.len(), 40 | 64) && value.bytes().all(is_digit);
        if is_id { self.0.pop_front().map(|_line| ()) } else { None }
    }

    /// Reads a commit after its tree, and returns the committer.
    fn commit(&mut self) -> Option<String> {
        let parents = std::iter::from_fn(|| self.id("parent")).take(PARENTS_MAX).count();
        if parents == PARENTS_MAX {
            return None;
        }
        person(self.next("author")?)?;
        let committer = person(self.next("committer")?)?;
        // Merged tags are written over several lines, which begin with a space.
        while let Some(line) = self.0.pop_front() {
            let is_known = ["encoding ", "mergetag ", " "].iter().any(|begin| line.starts_with(begin));
            if !is_known {
                return None;
            }
        }
        Some(committer)
    }

    /// Reads a tag, and returns its name and the tagger.
    fn tag(&mut self) -> Option<(&'a str, String)> {
        self.id("object")?;
        let kind = self.next("type")?;
        let name = self.next("tag")?;
        let tagger = person(self.next("tagger")?)?;
        let is_known = ["commit", "tree", "blob", "tag"].contains(&kind) && !name.is_empty();
        (is_known && self.0.is_empty()).then_some((name, tagger))
    }
}

/// Parses `Name <address> 1700000000 +0100`, and returns name and address.
fn person(text: &str) -> Option<String> {
    let (who, when) = text.rsplit_once("> ")?;
    let (name, address) = who.split_once('<')?;
    let (seconds, zone) = when.split_once(' ')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let zone = zone.strip_prefix(['+', '-'])?;
    let is_one = is_number(seconds) && is_number(zone) && zone.len() == 4 && !address.contains(['<', '>']);
    is_one.then(|| format!("{name}<{address}>"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
    const NAMED: &str = "N <n@x.test> 1700000000 +0100";

    fn commit() -> String {
        format!("tree {ID}\nparent {ID}\nauthor {NAMED}\ncommitter {NAMED}\n\nOne line\n\nmore\n")
    }

    fn tag() -> String {
        format!("object {ID}\ntype commit\ntag v1\ntagger {NAMED}\n\nRelease\n")
    }

    #[test]
    fn commits_and_tags_are_read() {
        let read = GitObject::parse(commit().as_bytes()).unwrap();
        assert_eq!(
            (read.kind, &*read.by, &*read.summary),
            (SignedObject::Commit, "N <n@x.test>", "One line")
        );
        let read = GitObject::parse(tag().as_bytes()).unwrap();
        assert_eq!(
            (read.kind, &*read.by, &*read.summary),
            (SignedObject::Tag, "N <n@x.test>", "v1: Release")
        );
        let first = commit().replace(&format!("parent {ID}\n"), "");
        assert!(GitObject::parse(first.as_bytes()).is_some());
        let merge =
            commit().replace("\n\nOne", &format!("\nmergetag object {ID}\n type commit\n tag v1\n\nOne"));
        assert!(GitObject::parse(merge.as_bytes()).is_some());
        let long = commit().replace(ID, ID.repeat(2).get(..64).unwrap());
        assert!(GitObject::parse(long.as_bytes()).is_some());
    }

    #[test]
    fn everything_else_is_refused() {
        let others = [
            String::new(),
            "tree".to_owned(),
            "certificate version 0.1\npusher N <n@x.test> 1700000000 +0100\n\n0 0 refs/heads/main\n"
                .to_owned(),
            "SSHSIG\0\0\0\x04file".to_owned(),
            "any text\n\nof a person".to_owned(),
            commit().replace("tree 4", "tree g"),
            commit().replace("tree 4", "tree 44"),
            commit().replace("committer", "signer"),
            commit().replace("> 17", "> -17"),
            commit().replace("\n\nOne", "\ngpgsig x\n\nOne"),
            commit().replace("\n\nOne", "\nnamespace file\n\nOne"),
            commit().replace("One", "O\0ne"),
            commit().replace(&format!("parent {ID}\n"), &format!("parent {ID}\n").repeat(300)),
            commit().replace("N <", &"N".repeat(2000)),
            tag().replace("type commit", "type key"),
            tag().replace("\ntagger", "\nparent x\ntagger"),
            tag().replace("tag v1\n", "tag \n"),
        ];
        for other in others {
            assert_eq!(GitObject::parse(other.as_bytes()), None, "{other}");
        }
    }
}
