//! The tokens of a GraphQL document (GraphQL, October 2021, 2.1).

/// A token. What values say does not matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Name(&'a str),
    /// One of `! $ & ( ) : = @ [ ] { | }`.
    Punctuation(u8),
    /// `...`.
    Spread,
    /// A number or a text.
    Value,
}

/// Splits a document into tokens.
///
/// Commas, spaces, line ends, comments and a byte order mark at the beginning are no tokens.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, String> {
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut found = Vec::new();
    while let Some(first) = rest.bytes().next() {
        let length = match first {
            b' ' | b'\t' | b'\r' | b'\n' | b',' => 1,
            b'#' => rest.find(['\n', '\r']).unwrap_or(rest.len()),
            b'A'..=b'Z' | b'a'..=b'z' | b'_' => {
                let length = length_of(rest, |byte| byte.is_ascii_alphanumeric() || byte == b'_');
                found.push(Token::Name(rest.get(..length).unwrap_or_default()));
                length
            }
            b'0'..=b'9' | b'-' => {
                found.push(Token::Value);
                length_of(rest, |byte| {
                    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.' | b'_')
                })
            }
            b'!' | b'$' | b'&' | b'(' | b')' | b':' | b'=' | b'@' | b'[' | b']' | b'{' | b'|' | b'}' => {
                found.push(Token::Punctuation(first));
                1
            }
            b'.' if rest.starts_with("...") => {
                found.push(Token::Spread);
                3
            }
            b'"' => {
                found.push(Token::Value);
                length_of_text(rest)?
            }
            _ => return Err("its document has a character that GraphQL does not have".to_owned()),
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    Ok(found)
}

fn length_of(text: &str, belongs: impl Fn(u8) -> bool) -> usize {
    text.bytes().take_while(|byte| belongs(*byte)).count()
}

/// Returns the length of the text at the beginning, with its quotes.
fn length_of_text(text: &str) -> Result<usize, String> {
    const BLOCK: &str = "\"\"\"";
    let open = || "its document has a text without an end".to_owned();
    if text.starts_with(BLOCK) {
        let mut at = BLOCK.len();
        loop {
            let rest = text.get(at..).unwrap_or_default();
            let quotes = rest.find(BLOCK).ok_or_else(open)?;
            if !rest.get(..quotes).is_some_and(|before| before.ends_with('\\')) {
                return Ok(at + quotes + BLOCK.len());
            }
            at += quotes + BLOCK.len();
        }
    }
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            b'\n' | b'\r' => break,
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return Ok(at + 1),
            _ => {}
        }
    }
    Err(open())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_comments_hide_what_is_in_them() {
        for text in [
            "a \"}{\" b",
            "a \"\\\"}{\" b",
            "a \"\\\\\" b",
            "a \"\"\"}\"{\\\"\"\"\n\"\"\" b",
            "a \"\" b",
            "a \"\"\"\"\"\" b",
        ] {
            let wanted = [Token::Name("a"), Token::Value, Token::Name("b")];
            assert_eq!(tokens(text).unwrap(), wanted, "{text}");
        }
        assert_eq!(tokens("\u{feff}a # } \" \r b,-1.5e+3").unwrap().len(), 3);
        for text in ["\"", "\"a\n\"", "\"\"\"a\\\"\"\"", "a;", "é", "..", "a \u{feff}", "a\0", "\"\\"] {
            tokens(text).unwrap_err();
        }
    }
}
