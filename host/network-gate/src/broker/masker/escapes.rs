//! The ways in which servers escape a character.

use super::references::references;

/// The most bytes that stand for one character: `&amp;DiacriticalGrave;`.
pub(super) const ESCAPED_MAX: usize = 22;
/// The most backslashes in front of a character: those of JSON in JSON in JSON.
const BACKSLASHES_MAX: usize = 7;

/// Returns true for a byte with which an escape can begin.
pub(super) fn begins_escape(byte: u8) -> bool {
    matches!(byte, b'%' | b'\\' | b'&' | b'+')
}

/// Returns the end of a text that begins at a place, in whatever way its characters are escaped. Of a text that goes on
/// in another way, its first characters count if there are at least so many.
pub(super) fn end_of(text: &[u8], least: usize, bytes: &[u8], at: usize) -> Option<usize> {
    // Most places are no beginning, so a look at the first two characters comes first.
    let may_be = |offset: usize| {
        let byte = bytes.get(at + offset)?;
        Some(begins_escape(*byte) || byte.eq_ignore_ascii_case(text.get(offset)?))
    };
    if may_be(0) != Some(true)
        || !bytes.get(at).copied().is_some_and(begins_escape) && may_be(1) != Some(true)
    {
        return None;
    }
    // Several, since a text may itself have characters that begin an escape.
    let mut ends = vec![at];
    for (count, &wanted) in text.iter().enumerate() {
        let mut next = Vec::new();
        for &at in &ends {
            for length in lengths(wanted, bytes.get(at..).unwrap_or_default()) {
                if !next.contains(&(at + length)) {
                    next.push(at + length);
                }
            }
        }
        if next.is_empty() {
            return ends.into_iter().max().filter(|_| count >= least);
        }
        ends = next;
    }
    ends.into_iter().max()
}

/// Returns the lengths of the texts at the beginning of `bytes` that stand for a character.
fn lengths(wanted: u8, bytes: &[u8]) -> impl Iterator<Item = usize> {
    let is_itself = |byte: &&u8| byte.eq_ignore_ascii_case(&wanted) || wanted == b' ' && **byte == b'+';
    let itself = bytes.first().filter(is_itself).map(|_| 1);
    let is_wanted = move |found: u8| found.eq_ignore_ascii_case(&wanted);
    let referred = references(bytes).filter(move |(found, _)| is_wanted(*found)).map(|(_, length)| length);
    itself.into_iter().chain(escape(wanted, bytes)).chain(referred)
}

/// Returns the length of the escape at the beginning of `bytes` if it stands for this character.
fn escape(wanted: u8, bytes: &[u8]) -> Option<usize> {
    let is_wanted = |byte: u8| byte.eq_ignore_ascii_case(&wanted);
    let coded =
        |digits: &[u8], length: usize| hexadecimal(digits).filter(|byte| is_wanted(*byte)).map(|_| length);
    match bytes {
        [b'%', b'2', b'5', high, low, ..] if coded(&[*high, *low], 5).is_some() => Some(5),
        [b'%', high, low, ..] => coded(&[*high, *low], 3),
        [b'\\', b'\\', ..] if wanted == b'\\' => Some(2),
        [b'\\', ..] => {
            // JSON in a string of JSON escapes each backslash once more.
            let run = bytes.iter().take(BACKSLASHES_MAX).take_while(|byte| **byte == b'\\').count();
            match bytes.get(run..)? {
                [b'u', b'0', b'0', high, low, ..] if coded(&[*high, *low], 5).is_some() => Some(run + 5),
                [b'x', high, low, ..] if coded(&[*high, *low], 3).is_some() => Some(run + 3),
                [byte, ..] => is_wanted(*byte).then_some(run + 1),
                [] => None,
            }
        }
        _ => None,
    }
}

pub(super) fn hexadecimal(digits: &[u8]) -> Option<u8> {
    let text = std::str::from_utf8(digits).ok()?;
    u8::from_str_radix(text, 16).ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Returns true for what stands between the pieces of encoded texts.
pub(super) fn is_between(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b':')
}
