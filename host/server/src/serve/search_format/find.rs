//! The result of `find`.

use std::path::Path;

use portcullis_decision::request::PathKind;
use portcullis_file_gate::Flow;
use portcullis_file_gate::spelling::PiLine;
use portcullis_rpc::FileSearchResponse;

use super::output::{Notices, Output, plain, with_notices};

/// pi's default for the number of names.
pub(crate) const USUAL_LIMIT: usize = 1_000;

/// Collects names.
#[derive(Debug)]
pub(crate) struct FindText {
    line: PiLine,
    limit: usize,
    output: Output,
    is_more: bool,
}

impl FindText {
    pub(crate) fn new(line: PiLine, limit: usize) -> Self {
        Self { line, limit, output: Output::default(), is_more: false }
    }

    /// Adds a name. pi 0.x reports the limit with the last allowed name, 1.x only with one more.
    pub(crate) fn name(&mut self, relative: &Path, kind: PathKind) -> Flow {
        if self.output.lines == self.limit {
            self.is_more = true;
            return Flow::Stop;
        }
        let mut name = relative.to_string_lossy().into_owned();
        if kind == PathKind::Directory {
            name.push('/');
        }
        let length = name.trim_end_matches(is_space).len();
        name.truncate(length);
        self.output.push(name);
        self.is_more = self.line == PiLine::V0 && self.output.lines == self.limit;
        if self.is_more { Flow::Stop } else { Flow::Continue }
    }

    pub(crate) fn finish(self) -> FileSearchResponse {
        if self.output.lines == 0 {
            return plain("No files found matching pattern");
        }
        let (limit, mut notices) = (self.limit, Notices::default());
        if self.is_more {
            let double = limit.saturating_mul(2);
            let text =
                format!("{limit} results limit reached. Use limit={double} for more, or refine pattern");
            notices.add(text, "resultLimitReached", limit);
        }
        let text = self.output.cut(&mut notices);
        with_notices(text, notices)
    }
}

/// Returns true for characters that JavaScript's `trim` removes.
fn is_space(character: char) -> bool {
    character.is_whitespace() && character != '\u{85}' || character == '\u{FEFF}'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: PiLine, limit: usize, expected: &str) {
        let mut text = FindText::new(line, limit);
        for name in ["a", "b", "c"] {
            if text.name(Path::new(name), PathKind::Directory) == Flow::Stop {
                break;
            }
        }
        assert_eq!(text.finish().text, expected, "{line:?} {limit}");
    }

    #[test]
    fn limits() {
        check(PiLine::V1, 4, "a/\nb/\nc/");
        check(PiLine::V1, 3, "a/\nb/\nc/");
        let notice = "\n\n[3 results limit reached. Use limit=6 for more, or refine pattern]";
        check(PiLine::V0, 3, &format!("a/\nb/\nc/{notice}"));
        check(PiLine::V0, 4, "a/\nb/\nc/");
        let notice = "\n\n[1 results limit reached. Use limit=2 for more, or refine pattern]";
        check(PiLine::V1, 1, &format!("a/{notice}"));
        assert_eq!(FindText::new(PiLine::V1, 1).finish().text, "No files found matching pattern");
    }
}
