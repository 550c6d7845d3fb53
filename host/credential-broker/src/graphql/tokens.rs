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
/// Commas, spaces, line ends, comments and a byte order mark at the beginning are no tokens. What servers divide in
/// different ways is an error.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, String> {
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    has_usual_lines(rest)?;
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

/// Refuses characters that end a line, and with it a comment, for some servers only.
fn has_usual_lines(text: &str) -> Result<(), String> {
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let is_usual = match character {
            '\r' => characters.peek() == Some(&'\n'),
            '\u{2028}' | '\u{2029}' => false,
            '\t' | '\n' => true,
            other => !other.is_control(),
        };
        if !is_usual {
            return Err("its document has a control character or an unusual end of a line".to_owned());
        }
    }
    Ok(())
}

fn length_of(text: &str, belongs: impl Fn(u8) -> bool) -> usize {
    text.bytes().take_while(|byte| belongs(*byte)).count()
}

/// Returns the length of the text at the beginning, with its quotes. Servers differ in where a text in three quotes ends
/// that has others in it.
fn length_of_text(text: &str) -> Result<usize, String> {
    const BLOCK: &str = "\"\"\"";
    let open = || "its document has a text without an end".to_owned();
    if let Some(rest) = text.strip_prefix(BLOCK) {
        let length = rest.find('"').ok_or_else(open)?;
        let after = rest.get(length..).unwrap_or_default();
        let is_simple = after.starts_with(BLOCK) && !after.starts_with("\"\"\"\"") && length > 0;
        if !is_simple || rest.get(..length).is_some_and(|inner| inner.ends_with('\\')) {
            return Err("its document has quotes in a text in three quotes; send it as a variable".to_owned());
        }
        return Ok(length + 2 * BLOCK.len());
    }
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            b'\n' | b'\r' => break,
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' if text.get(at..).is_some_and(|rest| rest.starts_with(BLOCK)) => {
                return Err("its document has two texts without a space between them".to_owned());
            }
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
            "a \"\"\"}{\r\n\"\"\" b",
            "a \"\" b",
            "a # \" }\r\n\"\" b # é \u{1f600}",
        ] {
            let wanted = [Token::Name("a"), Token::Value, Token::Name("b")];
            assert_eq!(tokens(text).unwrap(), wanted, "{text}");
        }
        assert_eq!(tokens("\u{feff}a # } \" \n b,-1.5e+3").unwrap().len(), 3);
        for text in ["\"", "\"a\n\"", "\"\"\"a\\\"\"\"", "a;", "é", "..", "a \u{feff}", "a\0", "\"\\"] {
            tokens(text).unwrap_err();
        }
    }

    #[test]
    fn what_servers_divide_in_different_ways_is_refused() {
        for text in [
            "query{a}# \r query Q{ a(x: \"\"\" \n mutation M{ evil } # \r \"\"\") }",
            "query { a(x: [ \"\"\"x\\\"\"\"\" \" ]) {id} } mutation { evil } #\"\"\" ]) { id } }",
            "query { a } # \u{2028} mutation { evil }",
            "query { a } # \u{2029} mutation { evil }",
            "query { a } # \u{85} mutation { evil }",
            "query { a } # \u{b} mutation { evil }",
            "a \"\"\" \" }} mutation { evil } # \" \"\"\"",
            "a \"\"\"\"\"\" b",
            "a \"\"\"b\"\"\"\" b\"",
            "a \"b\"\"\" b \"\"\"",
        ] {
            tokens(text).unwrap_err();
        }
    }
}
