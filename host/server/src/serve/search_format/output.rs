//! The text of a search's result, cut to what the model may see.

use portcullis_rpc::FileSearchResponse;
use serde_json::{Map, Value, json};

/// Maximum output of a tool, in bytes.
const MAX_BYTES: usize = 50 * 1024;
/// The same, in pi's format.
const MAX_BYTES_SHOWN: &str = "50.0KB";
/// pi's value for "no line limit": JavaScript's largest safe integer.
const NO_LINE_LIMIT: u64 = (1 << 53) - 1;

/// Returns a result without details.
pub(super) fn plain(text: &str) -> FileSearchResponse {
    FileSearchResponse { text: text.to_owned(), failed: false, details: None }
}

/// The output of a search; only the visible part is kept.
#[derive(Debug, Default)]
pub(super) struct Output {
    /// The visible lines, plus one if there are more.
    pub(super) kept: Vec<String>,
    /// Size of the whole output, in bytes with line ends, and in lines.
    pub(super) bytes: usize,
    pub(super) lines: usize,
}

/// Notices after the output, and the details that pi stores with the result.
#[derive(Debug, Default)]
pub(super) struct Notices {
    pub(super) texts: Vec<String>,
    pub(super) details: Map<String, Value>,
}

impl Notices {
    pub(super) fn add(&mut self, text: String, detail: &str, value: impl Into<Value>) {
        self.texts.push(text);
        self.details.insert(detail.to_owned(), value.into());
    }
}

impl Output {
    pub(super) fn push(&mut self, text: String) {
        let before = self.bytes;
        self.bytes += text.len() + 1;
        self.lines += 1;
        if before <= MAX_BYTES + 1 {
            self.kept.push(text);
        }
    }

    /// Returns the output up to the limit, and adds a notice if it was cut.
    pub(super) fn cut(&self, notices: &mut Notices) -> String {
        let total = self.bytes.saturating_sub(1);
        if total <= MAX_BYTES {
            return self.kept.join("\n");
        }
        let shown = self.fitting();
        let text = self.kept.get(..shown).unwrap_or_default().join("\n");
        let truncation = json!({
            "content": text, "truncated": true, "truncatedBy": "bytes",
            "totalLines": self.lines, "totalBytes": total,
            "outputLines": shown, "outputBytes": text.len(),
            "lastLinePartial": false, "firstLineExceedsLimit": shown == 0,
            "maxLines": NO_LINE_LIMIT, "maxBytes": MAX_BYTES,
        });
        notices.add(format!("{MAX_BYTES_SHOWN} limit reached"), "truncation", truncation);
        text
    }

    /// Returns the number of lines that fit.
    fn fitting(&self) -> usize {
        let mut length = 0;
        let mut shown = 0;
        for text in &self.kept {
            length += text.len() + usize::from(shown > 0);
            if length > MAX_BYTES {
                break;
            }
            shown += 1;
        }
        shown
    }
}

/// Appends the notices to the text.
pub(super) fn with_notices(mut text: String, notices: Notices) -> FileSearchResponse {
    if !notices.texts.is_empty() {
        text.push_str(&format!("\n\n[{}]", notices.texts.join(". ")));
    }
    let details = (!notices.details.is_empty()).then_some(notices.details);
    FileSearchResponse { text, failed: false, details }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_cut_between_lines_and_counted() {
        let mut output = Output::default();
        for _ in 0..2_000 {
            output.push("x".repeat(99));
        }
        let mut notices = Notices::default();
        let text = output.cut(&mut notices);
        assert_eq!(text.len(), 512 * 100 - 1);
        let details = with_notices(text, notices).details.unwrap_or_default();
        let truncation = details.get("truncation").cloned().unwrap_or_default();
        assert_eq!(truncation.get("totalLines"), Some(&json!(2_000)));
        assert_eq!(truncation.get("totalBytes"), Some(&json!(199_999)));
        assert_eq!(truncation.get("outputLines"), Some(&json!(512)));
        assert!(output.kept.len() < 520, "no more is kept than is shown");
    }

    #[test]
    fn a_first_line_that_is_too_long_leaves_nothing() {
        let mut output = Output::default();
        output.push("x".repeat(MAX_BYTES + 1));
        let mut notices = Notices::default();
        assert_eq!(output.cut(&mut notices), "");
        assert_eq!(notices.texts, ["50.0KB limit reached"]);
    }
}
