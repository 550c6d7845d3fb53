//! A quick look at two bytes, which shows for most places of an answer that no credential begins there.

use super::escapes::{begins_escape, is_between};
use super::references::second_bytes;

/// A text may begin, each of its characters escaped or not.
const TEXT: u8 = 1;
/// An encoded text may begin.
const ENCODED: u8 = 2;
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
    /// Adds a text whose characters can stand in either case, or be escaped.
    pub(super) fn add_text(&mut self, text: &[u8]) {
        let [first, second, ..] = text else { return };
        let cases = |byte: &u8| [byte.to_ascii_lowercase(), byte.to_ascii_uppercase()];
        let escapes = || (0..=u8::MAX).filter(|byte| begins_escape(*byte));
        for one in cases(first) {
            cases(second).into_iter().chain(escapes()).for_each(|other| self.add(one, other, TEXT));
            self.add(b'\\', one, TEXT);
        }
        let hexadecimal = (0..=u8::MAX).filter(u8::is_ascii_hexdigit);
        hexadecimal.for_each(|digit| self.add(b'%', digit, TEXT));
        b"ux\\".iter().for_each(|letter| self.add(b'\\', *letter, TEXT));
        second_bytes(*first).for_each(|letter| self.add(b'&', letter, TEXT));
    }

    /// Adds an encoded text, which can be broken by spaces and the like.
    pub(super) fn add_encoded(&mut self, form: &[u8]) {
        let [first, second, ..] = form else { return };
        let between = (0..=u8::MAX).filter(|byte| is_between(*byte));
        between.chain([*second]).for_each(|other| self.add(*first, other, ENCODED));
    }

    fn add(&mut self, one: u8, other: u8, kind: u8) {
        let known = self.first.get_mut(usize::from(one));
        let pair = self.pairs.get_mut(usize::from(one) * BYTES + usize::from(other));
        known.into_iter().chain(pair).for_each(|flags| *flags |= kind);
    }

    /// Returns the places at which something may begin: the place, whether a text does, and whether an encoded one does.
    pub(super) fn places(&self, bytes: &[u8]) -> impl Iterator<Item = (usize, bool, bool)> {
        bytes.windows(2).enumerate().filter_map(|(at, pair)| {
            let &[one, other] = pair else { return None };
            if self.first.get(usize::from(one)).copied().unwrap_or_default() == 0 {
                return None;
            }
            let flags = self.pairs.get(usize::from(one) * BYTES + usize::from(other)).copied()?;
            (flags != 0).then_some((at, flags & TEXT != 0, flags & ENCODED != 0))
        })
    }
}
