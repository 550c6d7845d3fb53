//! Commits and tags of git, as they are given to a program that signs.

use portcullis_settings_format::SignedObject;

/// The longest line of the front, and the longest subject, in bytes.
const LINE_MAX: usize = 1024;
/// The most parents of a commit.
const PARENTS_MAX: usize = 256;
/// The beginnings of signatures (`git help config`, `gpg.format`). Git takes the last one in a tag for its own.
const SIGNATURES: [&str; 4] = [
    "-----BEGIN PGP SIGNATURE-----",
    "-----BEGIN PGP MESSAGE-----",
    "-----BEGIN SIGNED MESSAGE-----",
    "-----BEGIN SSH SIGNATURE-----",
];

/// Why other texts are not signed.
const OTHER: &str = "only commits and tags of git without a signature are signed";
const LONG: &str = "the first paragraph of its message is too long to be shown";
const ENCODED: &str =
    "it has another encoding than UTF-8, so git shows another message than the one in the question";

/// The facts about a commit or a tag that a person decides on.
#[derive(Debug, PartialEq, Eq)]
pub struct GitObject {
    /// Which of both it is.
    pub kind: SignedObject,
    /// The committer or tagger, with the address, and the author if it is another person.
    pub by: String,
    /// The subject of the message; of a tag, its name before it.
    pub summary: String,
}

impl GitObject {
    /// Parses an object.
    ///
    /// # Errors
    /// The reason why it is not signed. That applies to everything but commits and tags, to objects that have a
    /// signature, and to objects that git shows in another way than a question can.
    pub fn parse(bytes: &[u8]) -> Result<Self, &'static str> {
        let text = std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0')).ok_or(OTHER)?;
        let (front, message) = text.split_once("\n\n").ok_or(OTHER)?;
        let mut lines = Lines(front.split('\n').collect());
        if lines.0.iter().any(|line| line.len() > LINE_MAX) {
            return Err(OTHER);
        }
        let subject = subject(message);
        if subject.len() > LINE_MAX {
            return Err(LONG);
        }
        match lines.id("tree") {
            Some(()) => {
                let Commit { by, merged } = lines.commit()?;
                let merged = merged.iter().map(|name| format!(" (merges the tag {name})"));
                let summary = std::iter::once(subject).chain(merged).collect();
                Ok(Self { kind: SignedObject::Commit, by, summary })
            }
            None => {
                let Tag { name, kind, by } = lines.tag().ok_or(OTHER)?;
                if message.lines().any(|line| SIGNATURES.contains(&line)) {
                    return Err(OTHER);
                }
                let of = if kind == "commit" { String::new() } else { format!(" (of a {kind})") };
                Ok(Self { kind: SignedObject::Tag, by, summary: format!("{name}{of}: {subject}") })
            }
        }
    }
}

/// Returns the first paragraph of a message, as git shows it in one line. Only these characters are blank for git.
fn subject(message: &str) -> String {
    let lines = message
        .split('\n')
        .map(|line| line.trim_end_matches([' ', '\t', '\r']))
        .skip_while(|line| line.is_empty());
    lines.take_while(|line| !line.is_empty()).collect::<Vec<&str>>().join(" ")
}

/// A commit behind its tree.
struct Commit<'a> {
    by: String,
    /// The names of the signed tags that it merges.
    merged: Vec<&'a str>,
}

/// A tag.
struct Tag<'a> {
    name: &'a str,
    /// The kind of the object that it names.
    kind: &'a str,
    by: String,
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

    /// Reads a commit after its tree.
    fn commit(&mut self) -> Result<Commit<'a>, &'static str> {
        let parents = std::iter::from_fn(|| self.id("parent")).take(PARENTS_MAX).count();
        if parents == PARENTS_MAX {
            return Err(OTHER);
        }
        let author = self.next("author").and_then(person).ok_or(OTHER)?;
        let committer = self.next("committer").and_then(person).ok_or(OTHER)?;
        let by = if author == committer { author } else { format!("{committer}, written by {author}") };
        if self.next("encoding").is_some_and(|encoding| !encoding.eq_ignore_ascii_case("utf-8")) {
            return Err(ENCODED);
        }
        let mut merged = Vec::new();
        while let Some(first) = self.next("mergetag") {
            merged.push(self.merged_tag(first).ok_or(OTHER)?);
        }
        if self.0.is_empty() { Ok(Commit { by, merged }) } else { Err(OTHER) }
    }

    /// Reads a signed tag in a commit that merges it, after its first line: each line has a space before it. Returns its
    /// name.
    fn merged_tag(&mut self, first: &'a str) -> Option<&'a str> {
        let mut lines = Self(std::iter::once(first).collect());
        while let Some(line) = self.0.front().and_then(|line| line.strip_prefix(' ')) {
            lines.0.push_back(line);
            self.0.pop_front();
        }
        // An empty line ends its front; the message is of another person.
        let front = lines.0.iter().position(|line| line.is_empty())?;
        lines.0.truncate(front);
        lines.tag().map(|tag| tag.name)
    }

    /// Reads a tag.
    fn tag(&mut self) -> Option<Tag<'a>> {
        self.id("object")?;
        let kind = self.next("type")?;
        let name = self.next("tag")?;
        let by = person(self.next("tagger")?)?;
        let is_known = ["commit", "tree", "blob", "tag"].contains(&kind) && is_name(name);
        (is_known && self.0.is_empty()).then_some(Tag { name, kind, by })
    }
}

/// Returns true for the name of a reference, so that it cannot look like the text around it (`git help
/// check-ref-format`).
fn is_name(name: &str) -> bool {
    let fits = |one: char| !one.is_control() && !one.is_whitespace() && !"~^:?*[\\()".contains(one);
    !name.is_empty() && name.chars().all(fits) && !name.contains("..") && !name.contains("@{")
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
        assert!(GitObject::parse(first.as_bytes()).is_ok());
        let merge = commit().replace("\n\nOne", &format!("\n{}\n{}\n\nOne", merged("v1"), merged("v2")));
        let read = GitObject::parse(merge.as_bytes()).unwrap();
        assert_eq!(read.summary, "One line (merges the tag v1) (merges the tag v2)");
        let long = commit().replace(ID, ID.repeat(2).get(..64).unwrap());
        assert!(GitObject::parse(long.as_bytes()).is_ok());
        let encoded = commit().replace("\n\nOne", "\nencoding UTF-8\n\nOne");
        assert!(GitObject::parse(encoded.as_bytes()).is_ok());
    }

    /// Returns a signed tag in the form that a commit has which merges it.
    fn merged(name: &str) -> String {
        format!(
            "mergetag object {ID}\n type commit\n tag {name}\n tagger {NAMED}\n \n Release\n \
             -----BEGIN SSH SIGNATURE-----\n AAAA\n -----END SSH SIGNATURE-----"
        )
    }

    #[test]
    fn what_is_shown_is_what_git_shows() {
        let shown = |from: &str, to: &str| GitObject::parse(commit().replace(from, to).as_bytes()).unwrap();
        for (message, subject) in [
            ("One line\nthat goes on\n\nmore", "One line that goes on"),
            ("\n \n\nOne line\n\nmore", "One line"),
            ("One \r\nline\n\nmore", "One line"),
            ("One\n\u{a0}\nline\n\nmore", "One \u{a0} line"),
            ("One\n\u{c}\u{b}\nline\n\nmore", "One \u{c}\u{b} line"),
            ("", ""),
        ] {
            assert_eq!(shown("One line\n\nmore\n", message).summary, subject, "{message:?}");
        }
        let other = shown("author N <n@x.test>", "author M <m@x.test>");
        assert_eq!(other.by, "N <n@x.test>, written by M <m@x.test>");
        let nested = GitObject::parse(tag().replace("type commit", "type tag").as_bytes()).unwrap();
        assert_eq!(nested.summary, "v1 (of a tag): Release");
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
            tag().replace("tag v1\n", "tag v1 (of a tag): Fine\n"),
            tag().replace("tag v1\n", "tag v1\u{2028}x\n"),
            tag().replace("tag v1\n", "tag v1\u{1b}[2J\n"),
            tag().replace(
                "Release\n",
                "Release\n-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n",
            ),
            commit().replace("\n\nOne", "\n any line\n\nOne"),
            commit().replace("\n\nOne", "\nmergetag any line\n\nOne"),
            commit().replace("\n\nOne", &format!("\n{}\nnamespace file\n\nOne", merged("v1"))),
            commit().replace("\n\nOne", &format!("\n{}\n\nOne", merged("v1 and more"))),
            commit().replace("\n\nOne", &format!("\n{}\nencoding UTF-8\n\nOne", merged("v1"))),
        ];
        for other in others {
            assert_eq!(GitObject::parse(other.as_bytes()), Err(OTHER), "{other}");
        }
        let long = commit().replace("One line", &"One line\n".repeat(200));
        assert_eq!(GitObject::parse(long.as_bytes()), Err(LONG));
        for encoding in ["ISO-8859-1", "UTF-7", "utf-16", ""] {
            let encoded = commit().replace("\n\nOne", &format!("\nencoding {encoding}\n\nOne"));
            assert_eq!(GitObject::parse(encoded.as_bytes()), Err(ENCODED), "{encoding}");
        }
    }
}
