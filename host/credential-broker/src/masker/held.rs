//! The end of a stream that is not passed on yet.

use zeroize::{Zeroize as _, Zeroizing};

use super::search::Window;
#[cfg(test)]
use super::work;

/// Bytes of a stream, with a note of which of them belong to a credential.
#[derive(Default)]
pub(super) struct Held {
    bytes: Zeroizing<Vec<u8>>,
    covered: Vec<bool>,
    /// How many of these bytes have been passed on.
    passed: usize,
    /// How many bytes of the stream were here before.
    dropped: usize,
    /// The end of the last part of the stream that belongs to a credential.
    covered_to: usize,
}

impl Held {
    /// Adds the next piece of the stream.
    pub(super) fn push(&mut self, piece: &[u8]) {
        if self.bytes.capacity() - self.bytes.len() < piece.len() {
            // A vector that grows by itself leaves a copy of its bytes in freed memory.
            let mut larger = Zeroizing::new(Vec::with_capacity((self.bytes.len() + piece.len()) * 2));
            larger.extend_from_slice(&self.bytes);
            self.bytes = larger;
        }
        self.bytes.extend_from_slice(piece);
        self.covered.resize(self.bytes.len(), false);
    }

    /// Returns the bytes that are not passed on yet.
    pub(super) fn rest(&self) -> &[u8] {
        self.bytes.get(self.passed..).unwrap_or_default()
    }

    /// Returns these bytes to be searched.
    pub(super) fn window(&mut self, is_last: bool) -> Window<'_> {
        Window {
            bytes: self.bytes.get(self.passed..).unwrap_or_default(),
            covered: self.covered.get_mut(self.passed..).unwrap_or_default(),
            covered_to: &mut self.covered_to,
            offset: self.dropped + self.passed,
            is_last,
        }
    }

    /// Takes bytes out at the beginning, with asterisks for those that belong to a credential.
    pub(super) fn take(&mut self, count: usize) -> Vec<u8> {
        let part = self.passed..self.passed + count;
        let (Some(bytes), Some(covered)) = (self.bytes.get_mut(part.clone()), self.covered.get(part)) else {
            return Vec::new();
        };
        let mut taken = bytes.to_vec();
        if self.covered_to > self.dropped + self.passed {
            overwrite(&mut taken, covered);
            bytes
                .iter_mut()
                .zip(covered)
                .filter(|(_, covered)| **covered)
                .for_each(|(byte, _)| byte.zeroize());
        }
        self.passed += count;
        // Moving the rest only when it is the smaller part costs no more than one copy of each byte.
        if self.passed * 2 >= self.bytes.len() {
            #[cfg(test)]
            work::add(self.bytes.len() - self.passed);
            self.bytes.drain(..self.passed);
            self.covered.drain(..self.passed);
            self.dropped += std::mem::take(&mut self.passed);
        }
        taken
    }
}

/// Overwrites the covered bytes with asterisks.
pub(super) fn overwrite(bytes: &mut [u8], covered: &[bool]) {
    for (byte, covered) in bytes.iter_mut().zip(covered) {
        if *covered {
            *byte = b'*';
        }
    }
}
