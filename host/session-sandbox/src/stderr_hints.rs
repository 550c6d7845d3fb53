//! Extracts paths from the error output of a command: those that it could not write, and those that it did not find.
//! Also says whether it could not give a file to another user.
//!
//! No tier reports a look-up in a closed region, and one does not report refused writes.
//!
//! The agent controls a command's output, so these paths are only hints. The caller must look each path up, and decide
//! whether commands may read or write it.

use std::collections::VecDeque;

/// The kernel's message for a write below a read-only mount, without its first letter.
///
/// Programs write that letter in either case. Messages in other languages are not recognized.
const REFUSED: &str = "ead-only file system";
/// The message of macOS for what a profile refuses: a read or a write.
const BY_PROFILE: &str = "peration not permitted";
/// Messages about files that are not there or cannot be opened, in the same way.
const MISSING: [&str; 5] = [
    "o such file or directory",
    "ermission denied",
    "does not exist",
    "does not appear to be a git repository",
    "annot find module",
];
/// The kernel's message for a change of owner to a user that the sandbox does not have, and words of programs beside it.
const NO_SUCH_USER: &str = "nvalid argument";
const OF_OWNERS: [&str; 2] = ["chown", "owner"];
/// Number of bytes to keep of the beginning of an output, and of its end.
const BEGIN: usize = 64 * 1024;
const END: usize = 192 * 1024;
/// Maximum length of a line, in bytes: the longest path and some words around it.
const LONGEST_LINE: usize = 8 * 1024;
/// Maximum number of paths per command: each costs a disk lookup, and only a few lead to questions.
const MOST: usize = 32;
/// Maximum number of quotation marks examined on one line; a line with more does not name a path.
const MOST_QUOTES: usize = 32;
/// Number of earlier lines to examine: some programs print the cause on a line of its own, shortly after the path.
const LINES_BEFORE: usize = 3;

/// Words of programs that change a name, which depends on the directory of the name.
const OF_NAMES: [&str; 5] = ["remove", "rename", "link", "move", "rmdir"];

/// A path that a command named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The path as printed; if relative, the directory is unknown.
    pub path: String,
    /// Whether the command tried to change the name, and not the file's content.
    pub is_for_its_name: bool,
}

/// Keeps the beginning and the end of a command's output, to read its error messages when it has failed. The rest is
/// dropped, so a long output costs little.
#[derive(Debug, Default)]
pub struct StderrHints {
    begin: Vec<u8>,
    end: VecDeque<u8>,
    /// Whether there was something between the two.
    is_cut: bool,
}

/// The paths in a command's error messages, in order, as printed.
#[derive(Debug, Default)]
pub struct Hints {
    /// Paths that the command could not write.
    pub unwritten: Vec<Named>,
    /// Paths that the command did not find, or could not open.
    pub missing: Vec<String>,
    /// Whether the command could not give a file to another user.
    pub is_owner_refused: bool,
}

impl StderrHints {
    /// Keeps the next part of the output.
    pub fn hear(&mut self, output: &[u8]) {
        let room = BEGIN.saturating_sub(self.begin.len()).min(output.len());
        let (first, rest) = output.split_at(room);
        self.begin.extend_from_slice(first);
        self.end.extend(rest);
        let excess = self.end.len().saturating_sub(END);
        self.is_cut |= excess > 0;
        self.end.drain(..excess);
    }

    /// Returns the hints; the last line may be incomplete.
    pub fn into_hints(mut self) -> Hints {
        let mut lines = Lines::default();
        lines.read(&self.begin);
        let mut end: &[u8] = self.end.make_contiguous();
        if self.is_cut {
            lines.end_line();
            lines.before.clear();
            let whole = end.iter().position(|byte| *byte == b'\n').unwrap_or(end.len());
            end = end.get(whole..).unwrap_or_default();
        }
        lines.read(end);
        lines.end_line();
        lines.hints
    }
}

/// Extracts hints from lines of output.
#[derive(Debug, Default)]
struct Lines {
    /// The incomplete line at the end of the output so far.
    line: Vec<u8>,
    /// Whether that line exceeds the maximum length.
    is_too_long: bool,
    /// The quoted texts of the last lines.
    before: VecDeque<Vec<String>>,
    hints: Hints,
}

impl Lines {
    fn read(&mut self, output: &[u8]) {
        let mut rest = output;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, after) = rest.split_at(end);
            self.push(line);
            self.end_line();
            rest = after.get(1..).unwrap_or_default();
        }
        self.push(rest);
    }

    fn push(&mut self, part: &[u8]) {
        if self.line.len() + part.len() > LONGEST_LINE {
            self.is_too_long = true;
            self.line.clear();
        }
        if !self.is_too_long {
            self.line.extend_from_slice(part);
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_too_long) {
            return self.before.clear();
        }
        // Programs print paths that are not UTF-8 in different ways; these are skipped.
        let line = String::from_utf8(line).unwrap_or_default();
        self.hints.is_owner_refused |=
            line.contains(NO_SUCH_USER) && OF_OWNERS.iter().any(|word| line.contains(word));
        let refused = line.find(REFUSED);
        let by_profile = line.find(BY_PROFILE);
        let missing = || MISSING.iter().find_map(|message| line.find(message));
        let end = refused.or(by_profile).or_else(missing);
        let named = match end {
            Some(end) => named(&line, end),
            None => quoted(&line),
        };
        if end.is_some() {
            let before = || self.before.iter().flatten().cloned().collect();
            let found: Vec<String> = if named.is_empty() { before() } else { named.clone() };
            for path in found {
                if refused.is_none() {
                    self.keep_missing(path.clone());
                }
                if refused.or(by_profile).is_some() {
                    self.keep_unwritten(path, &line);
                }
            }
        }
        self.before.push_back(named);
        if self.before.len() > LINES_BEFORE {
            self.before.pop_front();
        }
    }
}

impl Lines {
    fn keep_missing(&mut self, path: String) {
        if self.hints.missing.len() < MOST && !self.hints.missing.contains(&path) {
            self.hints.missing.push(path);
        }
    }

    fn keep_unwritten(&mut self, path: String, line: &str) {
        let words = line.replace(&path, "");
        let is_for_its_name = OF_NAMES.iter().any(|word| words.contains(word));
        let named = Named { path, is_for_its_name };
        if self.hints.unwritten.len() < MOST && !self.hints.unwritten.contains(&named) {
            self.hints.unwritten.push(named);
        }
    }
}

/// Returns the paths that a line may refer to, where the kernel's message starts at `end`.
///
/// These are quoted texts, else the text before the message as in `cat: /a b: Read-only file system` and `open /a:
/// read-only file system`.
fn named(line: &str, end: usize) -> Vec<String> {
    let in_quotes = quoted(line);
    if !in_quotes.is_empty() {
        return in_quotes;
    }
    let before = line.get(..end).unwrap_or_default();
    let before = before.get(..before.len().saturating_sub(1)).unwrap_or_default().trim_end();
    let Some(before) = before.strip_suffix(':') else { return Vec::new() };
    let last = before.rsplit(": ").next().unwrap_or_default().trim();
    let spelled = if last.starts_with(['/', '.']) {
        [Some(last), None]
    } else {
        [last.find(" /").and_then(|at| last.get(at + 1..)), last.rsplit(' ').next()]
    };
    let mut paths: Vec<String> = Vec::new();
    for path in spelled.into_iter().flatten() {
        if is_path(path) && !paths.iter().any(|known| known == path) {
            paths.push(path.to_owned());
        }
    }
    paths
}

/// Returns the quoted texts on a line that can be paths.
fn quoted(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = line;
    let mut previous = None;
    let mut quotes = 0;
    while let Some((opening, after)) = split_first(rest).filter(|_| quotes < MOST_QUOTES) {
        let ends: &[char] = match opening {
            '\'' => &['\''],
            '"' => &['"'],
            '`' => &['`', '\''],
            '\u{2018}' => &['\u{2019}'],
            '\u{201c}' => &['\u{201d}'],
            _ => &[],
        };
        // An apostrophe inside a word (`can't`) does not open a quotation.
        let begins = !ends.is_empty() && !previous.is_some_and(char::is_alphanumeric);
        rest = after;
        previous = Some(opening);
        quotes += usize::from(begins);
        let Some(length) = begins.then(|| after.find(ends)).flatten() else { continue };
        let (text, closing) = after.split_at(length);
        if is_path(text) {
            found.push(text.to_owned());
        }
        previous = closing.chars().next();
        rest = closing.get(previous.map_or(0, char::len_utf8)..).unwrap_or_default();
    }
    found
}

fn split_first(text: &str) -> Option<(char, &str)> {
    let mut characters = text.chars();
    characters.next().map(|first| (first, characters.as_str()))
}

/// Programs escape names with control characters, so the text would not be the path.
fn is_path(text: &str) -> bool {
    !text.trim().is_empty() && !text.contains(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(output: &str) -> Vec<String> {
        let mut heard = StderrHints::default();
        heard.hear(output.as_bytes());
        paths(heard)
    }

    fn paths(heard: StderrHints) -> Vec<String> {
        heard.into_hints().unwritten.into_iter().map(|named| named.path).collect()
    }

    #[test]
    fn programs_name_paths_in_many_ways() {
        for (line, path) in [
            ("touch: cannot touch '/o/x': Read-only file system", "/o/x"),
            ("mkdir: cannot create directory \u{2018}/o/a b\u{2019}: Read-only file system", "/o/a b"),
            ("bash: line 1: /o/x: Read-only file system", "/o/x"),
            ("bash: line 1: /o/a b: Read-only file system", "/o/a b"),
            ("sh: 1: cannot create ../x: Read-only file system", "../x"),
            ("OSError: [Errno 30] Read-only file system: '/o/x'", "/o/x"),
            ("Error: EROFS: read-only file system, open '/o/x'", "/o/x"),
            ("open /o/x: read-only file system", "/o/x"),
            ("Can't open '/o/x': Read-only file system at -e line 1.", "/o/x"),
            ("fatal: could not create work tree dir 'r': Read-only file system", "r"),
            ("\u{1b}[31mrm: cannot remove '/o/x': Read-only file system\u{1b}[0m", "/o/x"),
        ] {
            assert_eq!(heard(line), [path], "{line}");
        }
        let both = "mv: cannot move '/w/a' to '/o/b': Read-only file system";
        assert_eq!(heard(both), ["/w/a", "/o/b"]);
        assert_eq!(heard("rename /w/a /o/b: read-only file system"), ["/w/a /o/b", "/o/b"]);
    }

    #[test]
    fn what_a_profile_refuses_may_be_a_read_or_a_write() {
        for line in [
            "cat: /o/x: Operation not permitted",
            "touch: /o/x: Operation not permitted",
            "bash: /o/x: Operation not permitted",
            "Error: EPERM: operation not permitted, open '/o/x'",
            "PermissionError: [Errno 1] Operation not permitted: '/o/x'",
        ] {
            let mut heard = StderrHints::default();
            heard.hear(line.as_bytes());
            let hints = heard.into_hints();
            let unwritten: Vec<_> = hints.unwritten.iter().map(|named| named.path.as_str()).collect();
            assert_eq!((hints.missing, unwritten), (vec!["/o/x".to_owned()], vec!["/o/x"]), "{line}");
        }
    }

    #[test]
    fn a_refused_change_of_owner_is_recognized() {
        let is_owner_refused = |output: &str| {
            let mut heard = StderrHints::default();
            heard.hear(output.as_bytes());
            heard.into_hints().is_owner_refused
        };
        for line in [
            "chown: changing ownership of 'f': Invalid argument",
            "tar: f: Cannot change ownership to uid 1000, gid 1000: Invalid argument",
            "nginx: [emerg] chown(\"/w/logs\", 65534) failed (22: Invalid argument)",
            "rsync: [generator] chown \"/w/f\" failed: Invalid argument (22)",
        ] {
            assert!(is_owner_refused(line), "{line}");
        }
        assert!(!is_owner_refused("mount: Invalid argument\nthe owner is asleep"));
    }

    #[test]
    fn programs_say_what_they_do_not_find() {
        for (line, path) in [
            ("cat: /o/x: No such file or directory", "/o/x"),
            ("ls: cannot access '../lib': No such file or directory", "../lib"),
            ("FileNotFoundError: [Errno 2] No such file or directory: '/o/x.csv'", "/o/x.csv"),
            ("Error: ENOENT: no such file or directory, open '/o/x'", "/o/x"),
            ("open /o/x: no such file or directory", "/o/x"),
            ("a.c:1:10: fatal error: ../lib/x.h: No such file or directory", "../lib/x.h"),
            ("fatal: repository '/o/r' does not exist", "/o/r"),
            ("fatal: '/o/r' does not appear to be a git repository", "/o/r"),
            ("Error: Cannot find module '../lib'", "../lib"),
            ("cat: /o/x: Permission denied", "/o/x"),
            ("touch: cannot touch '/o/x': Permission denied", "/o/x"),
        ] {
            let mut heard = StderrHints::default();
            heard.hear(line.as_bytes());
            let hints = heard.into_hints();
            assert_eq!(
                (hints.missing.as_slice(), hints.unwritten.len()),
                ([path.to_owned()].as_slice(), 0),
                "{line}"
            );
        }
    }

    #[test]
    fn names_are_told_from_what_is_in_a_file() {
        for (line, is_for_its_name) in [
            ("rm: cannot remove '/o/x': Read-only file system", true),
            ("Error: EROFS: read-only file system, unlink '/o/x'", true),
            ("bash: line 1: /o/link: Read-only file system", false),
            ("touch: cannot touch '/o/rename': Read-only file system", false),
        ] {
            let mut heard = StderrHints::default();
            heard.hear(line.as_bytes());
            let named = heard.into_hints().unwritten;
            assert!(named.iter().all(|named| named.is_for_its_name == is_for_its_name), "{line}: {named:?}");
        }
    }

    #[test]
    fn a_cause_on_a_line_of_its_own_speaks_of_the_lines_before() {
        let cargo = "error: failed to create directory `/o/target`\n\nCaused by:\n  Read-only file system (os error 30)\n";
        assert_eq!(heard(cargo), ["/o/target"]);
        let far = cargo.replace("\n\n", "\n1\n2\n3\n");
        assert_eq!(heard(&far), [""; 0]);
    }

    #[test]
    fn nothing_else_is_heard() {
        for line in [
            "touch: cannot touch '/o/x': Permission is granted",
            "'/o/x' is there",
            "cannot touch '/o/\u{1b}[2Jx': Read-only file system",
            "cannot touch '/o/a\rb': Read-only file system",
            "Read-only file system",
            "",
        ] {
            assert_eq!(heard(line), [""; 0], "{line}");
        }
        assert_eq!(heard(&format!("'/{}': Read-only file system", "x".repeat(LONGEST_LINE))), [""; 0]);
        let mut heard = StderrHints::default();
        heard.hear(b"'/o/\xff': Read-only file system\n");
        assert_eq!(paths(heard), [""; 0]);
    }

    #[test]
    fn it_does_not_matter_in_which_parts_it_comes() {
        let output =
            "a\ntouch: cannot touch '/o/x': Read-only file system\nb\nopen /o/y: read-only file system";
        for size in [1, 7, 100] {
            let mut heard = StderrHints::default();
            output.as_bytes().chunks(size).for_each(|part| heard.hear(part));
            assert_eq!(paths(heard), ["/o/x", "/o/y"], "{size}");
        }
    }

    #[test]
    fn the_beginning_and_the_end_of_a_long_output_count() {
        let line = |name: &str| format!("open /o/{name}: read-only file system\n");
        let filler = "x\n".repeat(END);
        let output = [line("first"), filler.clone(), line("middle"), filler, line("last")].concat();
        for size in [1000, output.len()] {
            let mut heard = StderrHints::default();
            output.as_bytes().chunks(size).for_each(|part| heard.hear(part));
            assert!(heard.begin.len() + heard.end.len() <= BEGIN + END, "{size}");
            assert_eq!(paths(heard), ["/o/first", "/o/last"], "{size}");
        }
    }

    #[test]
    fn there_is_an_end_to_it() {
        let many: String =
            (0..1000).map(|number| format!("open /o/{number}: read-only file system\n")).collect();
        assert_eq!(heard(&many).len(), MOST);
        assert_eq!(heard(&"open /o/x: read-only file system\n".repeat(9)), ["/o/x"]);
        let quotes = "\u{2018} ".repeat(MOST_QUOTES);
        assert!(!heard(&format!("{quotes}'/o/x': Read-only file system")).contains(&"/o/x".to_owned()));
    }
}
