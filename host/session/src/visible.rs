//! Text from outside made safe to show: nothing in it can move the cursor, hide or reorder characters.

/// Longest text that is shown in one place, in characters.
const SHOWN_MAX: usize = 300;

/// Writes `text` so that every character is visible and none acts on a terminal; cuts it when long.
///
/// ```
/// assert_eq!(portcullis_session::visible("a\u{202e}b\n"), "a\\u{202e}b\\n");
/// ```
#[must_use]
pub fn visible(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN_MAX).flat_map(Escaped::new).collect();
    if text.chars().nth(SHOWN_MAX).is_some() {
        shown.push('…');
    }
    shown
}

/// A character as itself, or escaped.
enum Escaped {
    Plain(std::iter::Once<char>),
    Code(std::char::EscapeDefault),
}

impl Escaped {
    fn new(character: char) -> Self {
        if character.is_control() || acts_invisibly(character) {
            Self::Code(character.escape_default())
        } else {
            Self::Plain(std::iter::once(character))
        }
    }
}

impl Iterator for Escaped {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        match self {
            Self::Plain(one) => one.next(),
            Self::Code(code) => code.next(),
        }
    }
}

/// Characters that take no space, change the direction of the text, or look like a plain space.
fn acts_invisibly(character: char) -> bool {
    matches!(character,
        '\u{00a0}' | '\u{00ad}' | '\u{034f}' | '\u{061c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{206f}'
        | '\u{3000}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_what_acts() {
        for (text, shown) in [
            ("plain ü 日", "plain ü 日"),
            ("\x1b[2J", "\\u{1b}[2J"),
            ("a\u{200b}b", "a\\u{200b}b"),
            ("x\r\ny", "x\\r\\ny"),
            ("\u{e0041}", "\\u{e0041}"),
        ] {
            assert_eq!(visible(text), shown);
        }
    }

    #[test]
    fn long_text_is_cut() {
        assert_eq!(visible(&"x".repeat(5_000)).chars().count(), SHOWN_MAX + 1);
    }
}
