//! Watches the frames of a client that speaks HTTP/2, for what is cheap to send and costly to receive.
//!
//! The library behind it bounds memory: the number of streams, the length of heads, the tables of HPACK, the data that
//! is under way. This bounds what remains: frames that carry nothing, requests that are withdrawn as soon as they are
//! made (which reach the server, and the log), pieces of bodies that wait to be read, and heads that never end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::unread::Unread;

/// How long a client may take for its greeting, or for the head of a request from its first byte to its last.
const HEAD: Duration = Duration::from_secs(30);

/// The greeting of every client (RFC 9113 3.4).
const PREFACE: usize = 24;
/// The length of the head of a frame (RFC 9113 4.1).
const FRAME_HEAD: usize = 9;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
/// The flag of `DATA` that ends a stream.
const END_STREAM: u8 = 1;
/// The flag of `HEADERS` and `CONTINUATION` that ends a head.
const END_HEADERS: u8 = 4;

/// Withdrawn requests: at first, and for each second. A program that is interrupted withdraws all that it has open.
const RESETS: (u32, u32) = (400, 20);
/// Frames that carry nothing of a request. Clients send some for each request, and to measure the connection.
const EMPTY: (u32, u32) = (4000, 400);

/// Reads the heads of frames in a stream of bytes.
#[derive(Debug)]
pub(super) struct Frames {
    /// The bytes that follow before the next head of a frame.
    skipped: usize,
    head: [u8; FRAME_HEAD],
    filled: usize,
    /// When the greeting or the head of a request began that has not ended.
    head_since: Option<Instant>,
    resets: Allowance,
    empty: Allowance,
    unread: Arc<Unread>,
}

/// A number of frames that grows with time.
#[derive(Debug)]
struct Allowance {
    left: u32,
    most: u32,
    each_second: u32,
    counted: Instant,
}

impl Allowance {
    fn new((most, each_second): (u32, u32), now: Instant) -> Self {
        Self { left: most, most, each_second, counted: now }
    }

    /// Returns false if there is none left.
    fn take(&mut self, now: Instant) -> bool {
        let seconds = now.saturating_duration_since(self.counted).as_secs();
        if seconds > 0 {
            let more = self.each_second.saturating_mul(u32::try_from(seconds).unwrap_or(u32::MAX));
            self.left = self.left.saturating_add(more).min(self.most);
            self.counted = now;
        }
        let left = self.left.checked_sub(1);
        self.left = left.unwrap_or_default();
        left.is_some()
    }
}

impl Frames {
    pub(super) fn new(now: Instant, unread: Arc<Unread>) -> Self {
        Self {
            skipped: PREFACE,
            head: [0; FRAME_HEAD],
            filled: 0,
            head_since: Some(now),
            resets: Allowance::new(RESETS, now),
            empty: Allowance::new(EMPTY, now),
            unread,
        }
    }

    /// Returns when the connection has to end unless more comes: between the first and the last byte of a greeting or
    /// the head of a request.
    pub(super) fn head_until(&self) -> Option<Instant> {
        self.head_since.map(|since| since + HEAD)
    }

    /// Reads the next bytes; the error says why the connection has to end.
    pub(super) fn push(&mut self, mut bytes: &[u8], now: Instant) -> Result<(), &'static str> {
        while !bytes.is_empty() {
            let skipped = self.skipped.min(bytes.len());
            self.skipped -= skipped;
            bytes = bytes.get(skipped..).unwrap_or_default();
            let room = self.head.get_mut(self.filled..).unwrap_or_default();
            let count = room.len().min(bytes.len());
            let (taken, rest) = bytes.split_at(count);
            room.iter_mut().zip(taken).for_each(|(place, byte)| *place = *byte);
            self.filled += count;
            bytes = rest;
            if self.filled == FRAME_HEAD {
                self.filled = 0;
                self.begin(now)?;
            }
        }
        if self.skipped == 0 && self.filled == 0 && self.has_ended_head() {
            self.head_since = None;
        }
        Ok(())
    }

    /// Returns true if the last frame was not one of a head that goes on.
    fn has_ended_head(&self) -> bool {
        let [_, _, _, kind, flags, ..] = self.head;
        !matches!(kind, HEADERS | CONTINUATION) || flags & END_HEADERS != 0
    }

    /// Counts a frame whose head is complete.
    fn begin(&mut self, now: Instant) -> Result<(), &'static str> {
        let [long, middle, short, kind, flags, ..] = self.head;
        let length = u32::from_be_bytes([0, long, middle, short]);
        self.skipped = usize::try_from(length).unwrap_or(usize::MAX);
        self.head_since = match kind {
            HEADERS => Some(now),
            CONTINUATION => self.head_since.or(Some(now)),
            _ => None,
        };
        let carries = match kind {
            RESET if !self.resets.take(now) => {
                return Err("it withdraws requests faster than the gate makes them");
            }
            RESET | HEADERS | WINDOW_UPDATE => true,
            DATA if length > 0 && !self.unread.came() => {
                return Err("too many pieces of its requests wait to be read");
            }
            DATA => length > 0 || flags & END_STREAM != 0,
            _ => false,
        };
        if carries || self.empty.take(now) {
            Ok(())
        } else {
            Err("it sends too many frames that carry nothing")
        }
    }
}

#[cfg(test)]
mod tests;
