//! The judgement of a text, and the findings behind it.

use std::collections::BTreeSet;

/// The judgement of a file's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// With it, git runs no program that it would not run without it.
    Harmless,
    /// The user is asked about these findings, in the order of the file.
    Asks(Vec<Finding>),
    /// It cannot be parsed, so its effect is unknown.
    Unreadable(String),
}

impl Judgement {
    /// Returns the reason for a question or a refusal, in one sentence; `None` if harmless.
    #[must_use]
    pub fn reason(&self) -> Option<String> {
        match self {
            Self::Harmless => None,
            Self::Unreadable(why) => Some(format!("it cannot be judged: {why}")),
            Self::Asks(findings) => {
                let mut texts: Vec<String> = findings.iter().take(SHOWN).map(ToString::to_string).collect();
                if findings.len() > SHOWN {
                    texts.push(format!("and {} more", findings.len() - SHOWN));
                }
                Some(texts.join("; "))
            }
        }
    }
}

/// The maximum number of findings that a question lists.
const SHOWN: usize = 3;

/// Something that requires the user's approval.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Finding {
    /// The line, counted from 1.
    pub line: usize,
    /// The key, if the file has keys.
    pub key: Option<String>,
    /// Its effect.
    pub why: String,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.key {
            Some(key) => write!(formatter, "`{key}` on line {} {}", self.line, self.why),
            None => write!(formatter, "line {}: {}", self.line, self.why),
        }
    }
}

/// Returns the lines of `new` that `telling` selects and that are not in `previous`, each with the same reason.
/// `telling` returns numbered lines.
pub(crate) fn new_lines<'a, I>(
    previous: Option<&'a [u8]>,
    new: &'a [u8],
    telling: impl Fn(&'a [u8]) -> I,
    why: &str,
) -> Vec<Finding>
where
    I: Iterator<Item = (usize, &'a [u8])>,
{
    let before: BTreeSet<&[u8]> =
        previous.map(|text| telling(text).map(|(_, line)| line).collect()).unwrap_or_default();
    telling(new)
        .filter(|(_, line)| !before.contains(line))
        .map(|(line, _)| Finding { line, key: None, why: why.to_owned() })
        .collect()
}

/// Returns the judgement of a file with these findings.
pub(super) fn asks(findings: Vec<Finding>) -> Judgement {
    if findings.is_empty() { Judgement::Harmless } else { Judgement::Asks(findings) }
}

/// Returns a key in displayable form: short, and without control characters.
pub(super) fn shown(name: &[u8]) -> String {
    const LONGEST: usize = 80;
    let text = String::from_utf8_lossy(name);
    let cut: String = text.chars().take(LONGEST).collect();
    let dots = if cut.len() < text.len() { "…" } else { "" };
    format!("{}{dots}", cut.escape_debug())
}
