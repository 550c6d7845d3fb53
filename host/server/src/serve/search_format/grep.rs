//! The result of `grep`.

use std::path::{Path, PathBuf};

use portcullis_file_gate::spelling::PiLine;
use portcullis_file_gate::{Flow, Line};
use portcullis_rpc::FileSearchResponse;

use super::output::{Notices, Output, plain, with_notices};

/// pi's default for the number of matches.
pub(crate) const USUAL_LIMIT: usize = 100;
/// Maximum length of a line, in UTF-16 code units as in JavaScript.
const LONGEST_LINE: usize = 500;

/// Collects lines.
#[derive(Debug)]
pub(crate) struct GrepText {
    line: PiLine,
    limit: usize,
    context: usize,
    /// The name to show if the search starts at a file.
    file_name: String,
    output: Output,
    matches: usize,
    lines_cut: bool,
    is_more: bool,
    /// The file of the last shown match, and the last line of its context.
    last: Option<(PathBuf, u64)>,
}

impl GrepText {
    pub(crate) fn new(line: PiLine, limit: usize, context: usize, file_name: String) -> Self {
        Self {
            line,
            limit,
            context,
            file_name,
            output: Output::default(),
            matches: 0,
            lines_cut: false,
            is_more: false,
            last: None,
        }
    }

    /// Adds a line, which is a match or context.
    pub(crate) fn take(&mut self, line: &Line<'_>) -> Flow {
        match self.line {
            PiLine::V0 => self.take_v0(line),
            PiLine::V1 => self.take_v1(line),
        }
    }

    /// pi 0.x shows each match with its own context, and stops at the last allowed one.
    fn take_v0(&mut self, line: &Line<'_>) -> Flow {
        if !line.is_match {
            return Flow::Continue;
        }
        self.matches += 1;
        self.is_more = self.matches == self.limit;
        // pi 0.x cannot parse ripgrep's output for names or lines that are not UTF-8.
        if line.relative.to_str().is_some() {
            match std::str::from_utf8(line.bytes) {
                Ok(text) if self.context == 0 => {
                    let text = text.strip_suffix('\n').unwrap_or(text).replace('\r', "");
                    self.show(line.relative, line.number, &text, true);
                }
                _ => self.block(line),
            }
        }
        if self.is_more { Flow::Stop } else { Flow::Continue }
    }

    /// Adds a match with context lines from the whole file, in which any kind of line end counts.
    fn block(&mut self, line: &Line<'_>) {
        let Some(file) = line.file else {
            let name = self.name(line.relative);
            return self.output.push(format!("{name}:{}: (unable to read file)", line.number));
        };
        let text = String::from_utf8_lossy(file).replace("\r\n", "\n").replace('\r', "\n");
        let number = usize::try_from(line.number).unwrap_or(usize::MAX);
        let lines: Vec<&str> = text.split('\n').collect();
        let (start, end) = match self.context {
            0 => (number, number),
            context => {
                (number.saturating_sub(context).max(1), number.saturating_add(context).min(lines.len()))
            }
        };
        for current in start..=end {
            let text = current.checked_sub(1).and_then(|index| lines.get(index)).copied().unwrap_or_default();
            let shown = u64::try_from(current).unwrap_or(u64::MAX);
            self.show(line.relative, shown, text, current == number);
        }
    }

    /// pi 1.x shows each line once, and continues until one more match proves that the limit was exceeded.
    fn take_v1(&mut self, line: &Line<'_>) -> Flow {
        let text = String::from_utf8_lossy(line.bytes);
        let text = text.strip_suffix('\n').unwrap_or(&text);
        let text = text.strip_suffix('\r').unwrap_or(text).to_owned();
        let Some((path, end)) = self.last.clone() else {
            self.show(line.relative, line.number, &text, line.is_match);
            if line.is_match {
                self.matches += 1;
                if self.matches == self.limit {
                    let context = u64::try_from(self.context).unwrap_or(u64::MAX);
                    self.last = Some((line.relative.to_owned(), line.number.saturating_add(context)));
                }
            }
            return Flow::Continue;
        };
        let is_near = line.relative == path && line.number <= end;
        if is_near {
            self.show(line.relative, line.number, &text, false);
        }
        self.is_more |= line.is_match;
        let is_last = !(is_near && line.number < end);
        if self.is_more && is_last { Flow::Stop } else { Flow::Continue }
    }

    fn show(&mut self, relative: &Path, number: u64, text: &str, is_match: bool) {
        let name = self.name(relative);
        let text = match cut(text, self.line) {
            Some(beginning) => {
                self.lines_cut = true;
                format!("{beginning}... [truncated]")
            }
            None => text.to_owned(),
        };
        self.output.push(if is_match {
            format!("{name}:{number}: {text}")
        } else {
            format!("{name}-{number}- {text}")
        });
    }

    fn name(&self, relative: &Path) -> String {
        if relative.as_os_str().is_empty() {
            return self.file_name.clone();
        }
        // pi takes a backslash for another system's separator.
        relative.to_string_lossy().replace('\\', "/")
    }

    /// Returns true if more was found than is shown; unreadable files do not matter in that case.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_more
    }

    pub(crate) fn finish(self) -> FileSearchResponse {
        if self.matches == 0 {
            return plain("No matches found");
        }
        let (limit, mut notices) = (self.limit, Notices::default());
        if self.is_more {
            let double = limit.saturating_mul(2);
            let text =
                format!("{limit} matches limit reached. Use limit={double} for more, or refine pattern");
            notices.add(text, "matchLimitReached", limit);
        }
        let text = self.output.cut(&mut notices);
        if self.lines_cut {
            let text =
                format!("Some lines truncated to {LONGEST_LINE} chars. Use read tool to see full lines");
            notices.add(text, "linesTruncated", true);
        }
        with_notices(text, notices)
    }
}

/// Returns the beginning of a line that is too long.
///
/// If the limit splits a character, 1.x omits it; 0.x keeps half of a surrogate pair, which no encoding can represent,
/// so here it is the replacement character.
fn cut(text: &str, line: PiLine) -> Option<String> {
    let mut units = 0;
    for (at, character) in text.char_indices() {
        let after = units + character.len_utf16();
        if after > LONGEST_LINE {
            let mut beginning = text.get(..at).unwrap_or_default().to_owned();
            if units < LONGEST_LINE && line == PiLine::V0 {
                beginning.push(char::REPLACEMENT_CHARACTER);
            }
            return Some(beginning);
        }
        units = after;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &[u8] = b"one\r\ntwo x\nthree\rx four\nx five\n";

    fn line(number: u64, bytes: &[u8], is_match: bool) -> Line<'_> {
        Line { relative: Path::new("d/f"), number, bytes, is_match, file: Some(FILE) }
    }

    fn check(version: PiLine, limit: usize, context: usize, lines: &[(u64, &[u8], bool)], expected: &str) {
        let mut text = GrepText::new(version, limit, context, "f".to_owned());
        for (number, bytes, is_match) in lines {
            if text.take(&line(*number, bytes, *is_match)) == Flow::Stop {
                break;
            }
        }
        assert_eq!(text.finish().text, expected);
    }

    const MATCHES: &[(u64, &[u8], bool)] =
        &[(2, b"two x\n", true), (3, b"three\rx four\n", true), (4, b"x five\n", true)];

    #[test]
    fn matches_and_their_limit() {
        check(PiLine::V0, 9, 0, MATCHES, "d/f:2: two x\nd/f:3: threex four\nd/f:4: x five");
        check(PiLine::V1, 9, 0, MATCHES, "d/f:2: two x\nd/f:3: three\rx four\nd/f:4: x five");
        let notice = "\n\n[3 matches limit reached. Use limit=6 for more, or refine pattern]";
        let all = "d/f:2: two x\nd/f:3: threex four\nd/f:4: x five";
        check(PiLine::V0, 3, 0, MATCHES, &format!("{all}{notice}"));
        check(PiLine::V1, 3, 0, MATCHES, "d/f:2: two x\nd/f:3: three\rx four\nd/f:4: x five");
        let notice = "\n\n[1 matches limit reached. Use limit=2 for more, or refine pattern]";
        check(PiLine::V1, 1, 0, MATCHES, &format!("d/f:2: two x{notice}"));
        check(PiLine::V1, 1, 0, &[], "No matches found");
    }

    #[test]
    fn lines_around_a_match() {
        // In 0.x a lone carriage return ends a line, so its numbers differ from ripgrep's.
        check(
            PiLine::V0,
            9,
            1,
            MATCHES.get(..1).unwrap_or_default(),
            "d/f-1- one\nd/f:2: two x\nd/f-3- three",
        );
        let around: &[(u64, &[u8], bool)] = &[
            (1, b"one\r\n", false),
            (2, b"two x\n", true),
            (3, b"three\rx four\n", true),
            (4, b"x five\n", true),
        ];
        let notice = "\n\n[1 matches limit reached. Use limit=2 for more, or refine pattern]";
        let shown = format!("d/f-1- one\nd/f:2: two x\nd/f-3- three\rx four{notice}");
        check(PiLine::V1, 1, 1, around, &shown);
    }

    #[test]
    fn long_lines_are_cut_between_characters() {
        let long = format!("{}\u{1F600}x", "a".repeat(499));
        assert_eq!(cut(&long, PiLine::V1), Some("a".repeat(499)));
        assert_eq!(cut(&long, PiLine::V0), Some(format!("{}\u{FFFD}", "a".repeat(499))));
        assert_eq!(cut(&"a".repeat(500), PiLine::V1), None);
        assert_eq!(cut(&"a".repeat(501), PiLine::V1), Some("a".repeat(500)));
    }
}
