//! Replaces credentials in what servers answer with asterisks.
//!
//! How much of a stream is held back until more of it has come must not depend on the credentials: a program that has a
//! server repeat its guesses, and sees which of them are held back, would learn a credential one character at a time.
//! So every text without spaces at the end of a piece is held back, up to the length of the longest form.

mod beginnings;
mod escapes;
mod forms;
mod references;

use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

use zeroize::Zeroizing;

use super::secret::Secret;
use forms::Forms;

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
pub(crate) struct Masker {
    wanted: Wanted,
    /// The end of the bytes that came so far, if a credential may have begun in it.
    held: Zeroizing<Vec<u8>>,
    /// The parts of `held` that belong to a credential.
    hidden: Vec<Range<usize>>,
}

impl Masker {
    /// Makes a masker of credentials.
    pub(super) fn new(wanted: &Wanted) -> Self {
        Self { wanted: wanted.clone(), held: Zeroizing::default(), hidden: Vec::new() }
    }

    /// Returns the next piece of the stream. It can be shorter or longer than the piece that came in; the whole stream
    /// keeps its length.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(piece);
        // A credential is read before it is sent, so it is known before a server can repeat it.
        let forms = self.wanted.forms();
        forms.find(&self.held, &mut self.hidden);
        let most = forms.longest().saturating_sub(1);
        let held = self.held.iter().rev().take(most).take_while(|&&byte| forms.may_hold(byte)).count();
        let passed = self.held.len() - held;
        self.take(passed)
    }

    /// Returns the rest of the stream.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        self.take(self.held.len())
    }

    fn take(&mut self, count: usize) -> Vec<u8> {
        let rest = Zeroizing::new(self.held.get(count..).unwrap_or_default().to_vec());
        let mut taken = std::mem::replace(&mut self.held, rest);
        taken.truncate(count);
        overwrite(&mut taken, &self.hidden);
        // A credential that was found in a part is known when the rest of it is passed on.
        self.hidden.retain(|part| part.end > count);
        for part in &mut self.hidden {
            *part = part.start.saturating_sub(count)..part.end - count;
        }
        self.hidden.sort_unstable_by_key(|part| (part.start, part.end));
        self.hidden.dedup();
        std::mem::take(&mut *taken)
    }

    /// Masks a whole text; returns true if there was something to mask.
    pub(crate) fn mask(&self, bytes: &mut [u8]) -> bool {
        let mut hidden = Vec::new();
        self.wanted.forms().find(bytes, &mut hidden);
        overwrite(bytes, &hidden);
        !hidden.is_empty()
    }
}

/// Overwrites parts of a text, as far as it has them.
fn overwrite(bytes: &mut [u8], hidden: &[Range<usize>]) {
    let length = bytes.len();
    for part in hidden {
        if let Some(part) = bytes.get_mut(part.start.min(length)..part.end.min(length)) {
            part.fill(b'*');
        }
    }
}

#[cfg(test)]
mod tests;
