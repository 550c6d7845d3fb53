//! `$'...'`: quoted text with C escapes.

use crate::found::ReadError;
use crate::scan::Reader;
use crate::word::Text;

impl Reader<'_> {
    /// Reads up to the closing quote; the opening one has been skipped.
    pub(crate) fn ansi_quoted(&mut self, text: &mut Text) -> Result<(), ReadError> {
        loop {
            match self.bump_raw() {
                None => return Err(self.error("a quotation is not closed")),
                Some('\'') => return Ok(()),
                Some('\\') => self.escape(text)?,
                Some(other) => text.value.push(other),
            }
        }
    }

    fn escape(&mut self, text: &mut Text) -> Result<(), ReadError> {
        let code = match self.bump_raw() {
            None => return Err(self.error("a quotation is not closed")),
            Some('a') => 0x07,
            Some('b') => 0x08,
            Some('e' | 'E') => 0x1b,
            Some('f') => 0x0c,
            Some('n') => 0x0a,
            Some('r') => 0x0d,
            Some('t') => 0x09,
            Some('v') => 0x0b,
            Some(same @ ('\\' | '\'' | '"' | '?')) => u32::from(same),
            Some(first @ '0'..='7') => {
                let rest = self.digits(8, 2);
                (first.to_digit(8).unwrap_or_default() << (3 * rest.1)) | rest.0
            }
            // Only some versions of bash accept braces around the digits.
            Some('x') if self.peek_raw() == Some('{') => {
                text.literal = false;
                return Ok(());
            }
            Some('x') => match self.digits(16, 2) {
                (_, 0) => return unknown(text, 'x'),
                (code, _) => code,
            },
            Some('u') => match self.digits(16, 4) {
                (_, 0) => return unknown(text, 'u'),
                (code, _) => return unicode(text, code),
            },
            Some('U') => match self.digits(16, 8) {
                (_, 0) => return unknown(text, 'U'),
                (code, _) => return unicode(text, code),
            },
            // The meaning of a control character escape depends on the version of bash.
            Some('c') => {
                self.bump_raw();
                text.literal = false;
                return Ok(());
            }
            Some(other) => return unknown(text, other),
        };
        match u8::try_from(code & 0xff) {
            Ok(byte @ 1..=0x7f) => text.value.push(char::from(byte)),
            // A NUL ends the text early, and single bytes may combine into a character.
            Ok(_) | Err(_) => text.literal = false,
        }
        Ok(())
    }

    /// Reads up to `most` digits; returns their value and their number.
    fn digits(&mut self, radix: u32, most: u32) -> (u32, u32) {
        let (mut value, mut count) = (0_u32, 0);
        while count < most {
            let Some(digit) = self.peek_raw().and_then(|next| next.to_digit(radix)) else { break };
            value = value.wrapping_mul(radix).wrapping_add(digit);
            count += 1;
            self.bump_raw();
        }
        (value, count)
    }
}

/// Keeps an escape that bash does not know as it is.
#[expect(clippy::unnecessary_wraps, reason = "the last step of a reader, which may fail elsewhere")]
fn unknown(text: &mut Text, escape: char) -> Result<(), ReadError> {
    text.value.push('\\');
    text.value.push(escape);
    Ok(())
}

/// Adds a Unicode character. Except for ASCII, its encoding depends on the locale.
#[expect(clippy::unnecessary_wraps, reason = "the last step of a reader, which may fail elsewhere")]
fn unicode(text: &mut Text, code: u32) -> Result<(), ReadError> {
    match char::from_u32(code) {
        Some(character) if character != '\0' => {
            text.value.push(character);
            text.literal &= character.is_ascii();
        }
        Some(_) | None => text.literal = false,
    }
    Ok(())
}
