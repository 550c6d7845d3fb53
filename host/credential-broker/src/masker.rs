//! Replaces credentials in what servers answer with asterisks.
//!
//! How much of a stream is held back until more of it has come must not depend on the credentials: a program that has a
//! server repeat its guesses, and sees which of them are held back, would learn a credential one character at a time.
//! So every text without spaces at the end of a piece is held back, up to the length of the longest form.

mod beginnings;
mod escapes;
mod forms;
mod held;
mod references;
mod search;
#[cfg(test)]
mod work;

use std::sync::{Arc, PoisonError, RwLock};

use super::secret::Secret;
use forms::Forms;
use held::{Held, overwrite};
use search::{Search, Window};

/// The forms of all credentials that a session has read so far, shared by all streams.
#[derive(Clone, Default)]
pub(super) struct Wanted(Arc<RwLock<Arc<Forms>>>);

impl Wanted {
    /// Sets the credentials, for streams that are open as well.
    pub(super) fn set<'a>(&self, secrets: impl Iterator<Item = &'a Secret>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(Forms::new(secrets));
    }

    fn forms(&self) -> Arc<Forms> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Masks credentials in one stream.
pub struct Masker {
    wanted: Wanted,
    /// The forms that are searched for.
    forms: Arc<Forms>,
    search: Search,
    /// The end of the bytes that came so far, if a credential may have begun in it.
    held: Held,
    /// How many of the last bytes can be part of a credential.
    tail: usize,
}

impl std::fmt::Debug for Masker {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Masker").finish_non_exhaustive()
    }
}

impl Masker {
    /// Makes a masker of credentials.
    pub(super) fn new(wanted: &Wanted) -> Self {
        let forms = wanted.forms();
        Self { wanted: wanted.clone(), forms, search: Search::default(), held: Held::default(), tail: 0 }
    }

    /// Returns the next piece of the stream. It can be shorter or longer than the piece that came in; the whole stream
    /// keeps its length.
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.renew_forms();
        self.held.push(piece);
        self.search.advance(&self.forms, &mut self.held.window(false));
        let tail = self.tail_of(piece);
        self.tail = if tail == piece.len() { self.tail + tail } else { tail };
        let kept = self.tail.min(self.forms.longest().saturating_sub(1));
        self.held.take(self.held.rest().len().saturating_sub(kept))
    }

    /// Returns the rest of the stream.
    pub fn finish(&mut self) -> Vec<u8> {
        self.search.advance(&self.forms, &mut self.held.window(true));
        self.held.take(self.held.rest().len())
    }

    /// Masks a whole text; returns true if there was something to mask.
    pub fn mask(&self, bytes: &mut [u8]) -> bool {
        let mut covered = vec![false; bytes.len()];
        let mut window =
            Window { bytes, covered: &mut covered, covered_to: &mut 0, offset: 0, is_last: true };
        Search::default().advance(&self.wanted.forms(), &mut window);
        overwrite(bytes, &covered);
        covered.contains(&true)
    }

    /// Takes credentials that were read in the meantime. One is read before it is sent, so it is known before a server
    /// can repeat it.
    fn renew_forms(&mut self) {
        let forms = self.wanted.forms();
        if !Arc::ptr_eq(&forms, &self.forms) {
            self.forms = forms;
            self.search = Search::default();
            self.tail = self.tail_of(self.held.rest());
        }
    }

    /// Returns how many bytes at the end can be part of a credential.
    fn tail_of(&self, bytes: &[u8]) -> usize {
        bytes.iter().rev().take_while(|byte| self.forms.may_hold(**byte)).count()
    }
}

#[cfg(test)]
mod tests;
