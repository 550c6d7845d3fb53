//! Encoding and decoding of numbers and byte strings.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use super::DecodeError;

/// Appends values to a message.
#[derive(Debug, Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn number(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn signed(&mut self, value: i32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn long(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn count(&mut self, value: usize) {
        // A usize has at most 64 bits on Linux.
        self.long(u64::try_from(value).unwrap_or(u64::MAX));
    }

    pub(crate) fn string(&mut self, value: &OsStr) {
        self.count(value.len());
        self.0.extend_from_slice(value.as_bytes());
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Takes values from a message.
#[derive(Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn number(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn signed(&mut self) -> Result<i32, DecodeError> {
        self.array().map(i32::from_le_bytes)
    }

    pub(crate) fn long(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn string(&mut self) -> Result<OsString, DecodeError> {
        let length = usize::try_from(self.long()?).map_err(|_too_long| DecodeError)?;
        let (value, rest) = self.0.split_at_checked(length).ok_or(DecodeError)?;
        self.0 = rest;
        Ok(OsString::from_vec(value.to_vec()))
    }

    pub(crate) fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        let count = self.long()?;
        // Not allocated with a capacity: a wrong count must not become a large allocation.
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Returns the value if no bytes are left.
    pub(crate) fn end<T>(self, value: T) -> Result<T, DecodeError> {
        if self.is_empty() { Ok(value) } else { Err(DecodeError) }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (value, rest) = self.0.split_first_chunk::<N>().ok_or(DecodeError)?;
        self.0 = rest;
        Ok(*value)
    }
}
