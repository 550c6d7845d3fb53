//! A quick look at two bytes, which shows for most places of an answer that no credential begins there.

use super::escapes::{Spelling, begins_escape};
use super::references::second_bytes;

/// How many values a byte has.
const BYTES: usize = 256;

/// What may begin with each byte, and with each pair of bytes.
pub(super) struct Beginnings {
    first: [u8; BYTES],
    pairs: Vec<u8>,
}

impl Default for Beginnings {
    fn default() -> Self {
        Self { first: [0; BYTES], pairs: vec![0; BYTES * BYTES] }
    }
}

impl Beginnings {
    /// Adds a form.
    pub(super) fn add(&mut self, form: &[u8], spelling: Spelling) {
        let &[first, second, ..] = form else { return };
        let every = || 0..=u8::MAX;
        // The second character can be escaped as well, or stand behind something that does not count.
        let follows = |byte: u8| {
            spelling.is_same(second, byte)
                || begins_escape(byte)
                || spelling.separator(&[byte]).is_some()
                || second == b' ' && byte == b'+'
        };
        for one in every().filter(|byte| spelling.is_same(first, *byte)) {
            every().filter(|byte| follows(*byte)).for_each(|other| self.add_pair(one, other, spelling));
        }
        if may_be_escaped(first, spelling) {
            every().filter(u8::is_ascii_hexdigit).for_each(|digit| self.add_pair(b'%', digit, spelling));
            let letters =
                b"ux\\".iter().copied().chain(every().filter(|byte| spelling.is_same(first, *byte)));
            letters.for_each(|letter| self.add_pair(b'\\', letter, spelling));
            second_bytes(first).for_each(|letter| self.add_pair(b'&', letter, spelling));
        }
    }

    fn add_pair(&mut self, one: u8, other: u8, spelling: Spelling) {
        let known = self.first.get_mut(usize::from(one));
        let pair = self.pairs.get_mut(usize::from(one) * BYTES + usize::from(other));
        known.into_iter().chain(pair).for_each(|kinds| *kinds |= kind(spelling));
    }

    /// Returns the places at which something may begin, and what.
    pub(super) fn places(&self, bytes: &[u8]) -> impl Iterator<Item = (usize, Kinds)> {
        bytes.windows(2).enumerate().filter_map(|(at, pair)| {
            let &[one, other] = pair else { return None };
            if self.first.get(usize::from(one)).copied().unwrap_or_default() == 0 {
                return None;
            }
            let kinds = self.pairs.get(usize::from(one) * BYTES + usize::from(other)).copied()?;
            (kinds != 0).then_some((at, Kinds(kinds)))
        })
    }
}

/// The kinds of forms that may begin at a place.
#[derive(Clone, Copy)]
pub(super) struct Kinds(u8);

impl Kinds {
    pub(super) fn have(self, spelling: Spelling) -> bool {
        self.0 & kind(spelling) != 0
    }
}

fn kind(spelling: Spelling) -> u8 {
    match spelling {
        Spelling::Text => 1,
        Spelling::Encoded => 2,
    }
}

/// Returns true if a server may escape a character: any of a text, but only the signs of an encoded one.
pub(super) fn may_be_escaped(character: u8, spelling: Spelling) -> bool {
    spelling == Spelling::Text || !character.is_ascii_alphanumeric()
}
