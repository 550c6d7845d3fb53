//! The search for credentials in a stream that comes in pieces.
//!
//! No byte is compared again when the next piece comes: the search goes on where it stopped. A server that sends many
//! small pieces would otherwise keep the gate busy.

use std::ops::Range;

use super::escapes::begins_escape;
use super::forms::{Form, Forms};
use super::references::ESCAPED_MAX;
#[cfg(test)]
use super::work;

/// Up to which character right and wrong beginnings take the same work. A command that knows as much of a credential has
/// little left to guess, and longer beginnings would make the search slow.
const ALIKE_MAX: usize = 128;

/// Where the search in a stream stands.
#[derive(Default)]
pub(super) struct Search {
    /// Attempts that the next piece can go on with.
    attempts: Vec<Attempt>,
    /// The first place in the stream at which no form has been looked for.
    next: usize,
}

/// The part of a stream that is searched.
pub(super) struct Window<'a> {
    pub(super) bytes: &'a [u8],
    /// Which of these bytes belong to a credential.
    pub(super) covered: &'a mut [bool],
    /// The end of the last part that belongs to a credential, as a place in the stream.
    pub(super) covered_to: &'a mut usize,
    /// The place of the first byte in the stream.
    pub(super) offset: usize,
    /// Whether the stream ends here.
    pub(super) is_last: bool,
}

/// A place in the stream at which a form may begin.
struct Attempt {
    form: usize,
    /// How many characters stand in the stream.
    count: usize,
    /// Whether all of them are those of the form.
    is_right: bool,
    /// The places at which the next character can begin. They are several, since a text can itself have characters that
    /// begin an escape.
    ends: Vec<usize>,
    /// The first place that is not covered yet.
    uncovered: usize,
}

impl Search {
    /// Covers the parts of a stream that belong to a credential. The window begins at or before the last byte that was
    /// searched and may be continued.
    pub(super) fn advance(&mut self, forms: &Forms, window: &mut Window<'_>) {
        self.attempts.retain_mut(|attempt| {
            forms.get(attempt.form).is_some_and(|form| attempt.is_open_after(form, window))
        });
        let (bytes, offset) = (window.bytes, window.offset);
        let start = self.next.saturating_sub(offset);
        for (at, kinds) in forms.places(bytes.get(start..).unwrap_or_default()) {
            let at = start + at;
            for index in forms.that_may_begin(bytes.get(at..).unwrap_or_default(), kinds) {
                let mut attempt = Attempt::new(index, offset + at);
                if forms.get(index).is_some_and(|form| attempt.is_open_after(form, window)) {
                    self.attempts.push(attempt);
                }
            }
        }
        // Two bytes show whether a form may begin, so the last one waits for the next piece.
        self.next = offset + bytes.len().saturating_sub(1);
    }
}

impl Attempt {
    fn new(form: usize, place: usize) -> Self {
        Self { form, count: 0, is_right: true, ends: vec![place], uncovered: place }
    }

    /// Goes on with the form to the end of the window, and covers what belongs to it. Returns true if the next piece can
    /// have more of it.
    fn is_open_after(&mut self, form: &Form, window: &mut Window<'_>) -> bool {
        while self.count < form.text.len() {
            let is_beginning = self.count < form.least;
            if self.count > 0 && self.skips_separators(form, window)
                || self.ends.iter().any(|end| !window.shows_character(*end))
            {
                return true;
            }
            let has_more =
                if is_beginning { self.compares_next(form, window) } else { self.takes_any(form, window) };
            if !has_more {
                return false;
            }
            self.count += 1;
            if self.count >= form.least {
                if !self.is_right {
                    return false;
                }
                let furthest = self.ends.iter().max().copied().unwrap_or_default();
                window.cover(self.uncovered..furthest);
                self.uncovered = furthest.max(self.uncovered);
                self.ends = vec![self.uncovered];
            }
        }
        false
    }

    /// Goes on with the next character, and compares it with the form. Returns false where no character of a credential
    /// of this kind stands.
    ///
    /// After a wrong character the attempt goes on as after a right one. Otherwise the time that an answer takes would
    /// tell a command, which has a server repeat its guesses, how much of a guess is right.
    fn compares_next(&mut self, form: &Form, window: &Window<'_>) -> bool {
        let Some(&wanted) = form.text.get(self.count) else { return false };
        let mut next = Vec::with_capacity(1);
        for &end in &self.ends {
            #[cfg(test)]
            work::add(1);
            for length in form.spelling.lengths(wanted, window.from(end)) {
                if !next.contains(&(end + length)) {
                    next.push(end + length);
                }
            }
        }
        let any = std::hint::black_box(self.end_of_any(form, window));
        if next.is_empty() || !self.is_right {
            self.is_right = false;
            next.clear();
            next.extend(any.filter(|_| self.count < ALIKE_MAX));
        }
        self.ends = next;
        !self.ends.is_empty()
    }

    /// Takes the next character of the stream without comparing it with the form, so that the masking does not show
    /// whether it is right. Returns false at a character that no credential of this kind has.
    fn takes_any(&mut self, form: &Form, window: &Window<'_>) -> bool {
        let Some(end) = self.end_of_any(form, window) else { return false };
        self.ends = vec![end];
        true
    }

    /// Returns the end of the next character, if a credential of this kind can have it.
    fn end_of_any(&self, form: &Form, window: &Window<'_>) -> Option<usize> {
        #[cfg(test)]
        work::add(1);
        let end = self.ends.iter().copied().max()?;
        Some(end + form.spelling.longest(window.from(end), |byte| form.characters.have(byte))?)
    }

    /// Skips what stands between two characters. Returns true if the window ends within it.
    fn skips_separators(&mut self, form: &Form, window: &Window<'_>) -> bool {
        self.ends.iter_mut().any(|end| {
            loop {
                if !window.shows_character(*end) {
                    return true;
                }
                match form.spelling.separator(window.from(*end)) {
                    Some(length) => *end += length,
                    None => return false,
                }
            }
        })
    }
}

impl Window<'_> {
    /// Returns the bytes from a place on.
    fn from(&self, place: usize) -> &[u8] {
        place.checked_sub(self.offset).and_then(|at| self.bytes.get(at..)).unwrap_or_default()
    }

    /// Returns true if the window has the whole character at a place, escaped or not.
    fn shows_character(&self, place: usize) -> bool {
        let rest = self.from(place);
        let Some(first) = rest.first() else { return self.is_last };
        self.is_last
            || !begins_escape(*first)
            || rest.len() >= ESCAPED_MAX
            || !rest.iter().all(u8::is_ascii_graphic)
    }

    fn cover(&mut self, places: Range<usize>) {
        *self.covered_to = places.end.max(*self.covered_to);
        let part = places.start.saturating_sub(self.offset)..places.end.saturating_sub(self.offset);
        self.covered.get_mut(part).into_iter().for_each(|part| part.fill(true));
    }
}
