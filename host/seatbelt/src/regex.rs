//! Regular expressions in the dialect of profiles.
//!
//! Only what all dialects share is used: `^`, `$`, groups, `|`, `*`, `+`, `?`, a backslash before a character with a
//! meaning, and bracket expressions whose characters have no meaning in them. `.` is not used, because dialects differ
//! on line feeds.

use portcullis_decision::pattern::PatternError;
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind, Look};

/// Any text, slashes and line feeds included.
pub(crate) const ANYTHING: &str = "(/|[^/])*";

/// Characters that need a backslash outside of brackets.
const SPECIAL: &str = "\\.^$*+?()[]{}|";

/// How an expression is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Form {
    /// Whether only texts without a slash count.
    pub(crate) within_name: bool,
    /// Whether case counts.
    pub(crate) case: Case,
}

/// Whether case counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    Counts,
    /// Letters of ASCII match in either case.
    Ignored,
}

/// An expression that the dialect cannot say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unprintable;

impl From<PatternError> for Unprintable {
    fn from(_: PatternError) -> Self {
        Self
    }
}

/// Returns an expression of the `regex` crate in the dialect; `None` if it matches nothing.
pub(crate) fn printed(expression: &str, form: Form) -> Result<Option<String>, Unprintable> {
    // As `globset` compiles its expressions.
    let mut parser = ParserBuilder::new().unicode(false).utf8(false).dot_matches_new_line(true).build();
    print(&parser.parse(expression).map_err(|_| Unprintable)?, form)
}

fn print(hir: &Hir, form: Form) -> Result<Option<String>, Unprintable> {
    Ok(Some(match hir.kind() {
        HirKind::Empty => String::new(),
        HirKind::Literal(literal) => {
            let text = std::str::from_utf8(&literal.0).map_err(|_| Unprintable)?;
            if form.within_name && text.contains('/') {
                return Ok(None);
            }
            literal_text(text, form.case)
        }
        HirKind::Class(Class::Bytes(bytes)) => {
            let mut set = [false; 256];
            for byte in bytes.iter().flat_map(|range| range.start()..=range.end()) {
                insert(&mut set, byte, form.case);
            }
            if form.within_name {
                remove(&mut set, b'/');
            }
            return class(&set);
        }
        HirKind::Class(Class::Unicode(unicode)) => {
            let mut set = [false; 256];
            for range in unicode.iter() {
                if !range.end().is_ascii() {
                    return Err(Unprintable);
                }
                let ascii = |character: char| u8::try_from(character).map_err(|_| Unprintable);
                for byte in ascii(range.start())?..=ascii(range.end())? {
                    insert(&mut set, byte, form.case);
                }
            }
            if form.within_name {
                remove(&mut set, b'/');
            }
            return class(&set);
        }
        HirKind::Look(Look::Start) => "^".to_owned(),
        HirKind::Look(Look::End) => "$".to_owned(),
        HirKind::Look(_) => return Err(Unprintable),
        HirKind::Repetition(repetition) => {
            let sign = match (repetition.min, repetition.max) {
                (0, None) => "*",
                (1, None) => "+",
                (0, Some(1)) => "?",
                _ => return Err(Unprintable),
            };
            match print(&repetition.sub, form)? {
                Some(part) => format!("({part}){sign}"),
                None if repetition.min == 0 => String::new(),
                None => return Ok(None),
            }
        }
        HirKind::Capture(capture) => match print(&capture.sub, form)? {
            Some(part) => format!("({part})"),
            None => return Ok(None),
        },
        HirKind::Concat(parts) => {
            let mut text = String::new();
            for part in parts {
                let Some(printed) = print(part, form)? else { return Ok(None) };
                text.push_str(&printed);
            }
            text
        }
        HirKind::Alternation(parts) => {
            let mut choices = Vec::new();
            for part in parts {
                choices.extend(print(part, form)?);
            }
            if choices.is_empty() {
                return Ok(None);
            }
            // An empty choice means different things in different dialects.
            let is_optional = choices.iter().any(String::is_empty);
            choices.retain(|choice| !choice.is_empty());
            match (choices.is_empty(), is_optional) {
                (true, _) => String::new(),
                (false, true) => format!("({})?", choices.join("|")),
                (false, false) => format!("({})", choices.join("|")),
            }
        }
    }))
}

/// Returns an expression for exactly this text.
pub(crate) fn literal_text(text: &str, case: Case) -> String {
    let mut printed = String::with_capacity(text.len());
    for character in text.chars() {
        if case == Case::Ignored && character.is_ascii_alphabetic() {
            printed.push('[');
            printed.push(character.to_ascii_uppercase());
            printed.push(character.to_ascii_lowercase());
            printed.push(']');
        } else {
            if SPECIAL.contains(character) {
                printed.push('\\');
            }
            printed.push(character);
        }
    }
    printed
}

fn insert(set: &mut [bool; 256], byte: u8, case: Case) {
    let other = match case {
        Case::Counts => byte,
        Case::Ignored if byte.is_ascii_lowercase() => byte.to_ascii_uppercase(),
        Case::Ignored => byte.to_ascii_lowercase(),
    };
    for byte in [byte, other] {
        if let Some(is_in) = set.get_mut(usize::from(byte)) {
            *is_in = true;
        }
    }
}

fn remove(set: &mut [bool; 256], byte: u8) {
    if let Some(is_in) = set.get_mut(usize::from(byte)) {
        *is_in = false;
    }
}

/// Prints a set of bytes: some of ASCII, or all but some of ASCII.
fn class(set: &[bool; 256]) -> Result<Option<String>, Unprintable> {
    let (ascii, others) = set.split_at(128);
    let members = |wanted: bool| -> Vec<char> {
        (0_u8..128)
            .zip(ascii)
            // NUL is in no path.
            .filter(|(byte, is_in)| **is_in == wanted && *byte != 0)
            .map(|(byte, _)| char::from(byte))
            .collect()
    };
    let is_plain = |character: &char| character.is_ascii_alphanumeric() || "/._ ,~@+=".contains(*character);
    if others.iter().all(|is_in| *is_in) {
        let outside = members(false);
        return match outside.as_slice() {
            [] => Ok(Some("(/|[^/])".to_owned())),
            outside if outside.iter().all(is_plain) => {
                Ok(Some(format!("[^{}]", outside.iter().collect::<String>())))
            }
            _ => Err(Unprintable),
        };
    }
    if others.iter().any(|is_in| *is_in) {
        return Err(Unprintable);
    }
    let inside = members(true);
    Ok(match inside.as_slice() {
        [] => None,
        inside if inside.iter().all(is_plain) && inside.len() > 1 => {
            Some(format!("[{}]", inside.iter().collect::<String>()))
        }
        inside => {
            let choices: Vec<String> =
                inside.iter().map(|one| literal_text(&one.to_string(), Case::Counts)).collect();
            Some(format!("({})", choices.join("|")))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_in_the_dialect() {
        let plain = Form { within_name: false, case: Case::Counts };
        for (expression, expected) in [
            (r"(?-u)^/a\.b$", Ok(Some(r"^/a\.b$"))),
            (r"(?-u)^[^/]*\.pem$", Ok(Some(r"^([^/])*\.pem$"))),
            (r"(?-u)^(?:/?|.*/)x$", Ok(Some("^((/)?|((/|[^/]))*/)x$"))),
            (r"(?-u)^[a-c\]]$", Ok(Some(r"^(\]|a|b|c)$"))),
            (r"(?-u)^[^/a]$", Ok(Some("^[^/a]$"))),
            (r"(?-u)^[^/\]]$", Err(Unprintable)),
            (r"(?-u)^\xFF$", Err(Unprintable)),
            (r"(?-u)^\xC3\xA9$", Ok(Some("^é$"))),
        ] {
            assert_eq!(
                printed(expression, plain),
                expected.map(|text| text.map(str::to_owned)),
                "{expression}"
            );
        }
        let name = Form { within_name: true, case: Case::Ignored };
        assert_eq!(printed(r"(?-u)^(?:/?|.*/)x$", name), Ok(Some("^[Xx]$".to_owned())));
        assert_eq!(printed(r"(?-u)^a/b$", name), Ok(None));
        assert_eq!(literal_text("a.b\"\\", Case::Ignored), "[Aa]\\.[Bb]\"\\\\");
    }
}
