//! Encoding and decoding of numbers and byte strings.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// A message that cannot be decoded; the sender is not the same program.
#[derive(Debug)]
pub struct DecodeError;

/// Appends values to a message.
#[derive(Debug, Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// Appends an unsigned number of 32 bits.
    pub fn number(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends a signed number of 32 bits.
    pub fn signed(&mut self, value: i32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends an unsigned number of 64 bits.
    pub fn long(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends the length of a list.
    pub fn count(&mut self, value: usize) {
        // A usize has at most 64 bits on Linux.
        self.long(u64::try_from(value).unwrap_or(u64::MAX));
    }

    /// Appends a byte string.
    pub fn string(&mut self, value: &OsStr) {
        self.count(value.len());
        self.0.extend_from_slice(value.as_bytes());
    }

    /// Returns the message.
    pub fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Takes values from a message.
#[derive(Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Begins at the start of a message.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns true if no bytes are left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes an unsigned number of 32 bits.
    ///
    /// # Errors
    /// If the message does not contain one.
    pub fn number(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_le_bytes)
    }

    /// Takes a signed number of 32 bits.
    ///
    /// # Errors
    /// If the message does not contain one.
    pub fn signed(&mut self) -> Result<i32, DecodeError> {
        self.array().map(i32::from_le_bytes)
    }

    /// Takes an unsigned number of 64 bits.
    ///
    /// # Errors
    /// If the message does not contain one.
    pub fn long(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_le_bytes)
    }

    /// Takes a byte string.
    ///
    /// # Errors
    /// If the message does not contain one.
    pub fn string(&mut self) -> Result<OsString, DecodeError> {
        let length = usize::try_from(self.long()?).map_err(|_too_long| DecodeError)?;
        let (value, rest) = self.0.split_at_checked(length).ok_or(DecodeError)?;
        self.0 = rest;
        Ok(OsString::from_vec(value.to_vec()))
    }

    /// Takes a list, each element with `item`.
    ///
    /// # Errors
    /// If the message does not contain one.
    pub fn list<T>(
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
    ///
    /// # Errors
    /// If some are left.
    pub fn end<T>(self, value: T) -> Result<T, DecodeError> {
        if self.is_empty() { Ok(value) } else { Err(DecodeError) }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (value, rest) = self.0.split_first_chunk::<N>().ok_or(DecodeError)?;
        self.0 = rest;
        Ok(*value)
    }
}
