//! Differences between objects (gitformat-pack(5)).

/// The largest text that is put together, in bytes.
const TEXT_MAX: u64 = 1 << 20;

/// A part of the new text.
enum Part<'a> {
    /// Bytes of the base, from a place on.
    Copied(usize, usize),
    New(&'a [u8]),
}

/// Applies a difference to a text; `None` if it does not fit.
pub(super) fn applied(base: &[u8], delta: &[u8]) -> Option<Vec<u8>> {
    let (from, to, parts) = read(delta)?;
    if from != u64::try_from(base.len()).ok()? || to > TEXT_MAX {
        return None;
    }
    let mut text = Vec::new();
    for part in parts {
        match part {
            Part::Copied(at, length) => text.extend_from_slice(base.get(at..at.checked_add(length)?)?),
            Part::New(bytes) => text.extend_from_slice(bytes),
        }
        if u64::try_from(text.len()).ok()? > to {
            return None;
        }
    }
    (u64::try_from(text.len()).ok()? == to).then_some(text)
}

/// Returns the new bytes of a difference, with a zero byte where bytes of the base stand. Empty if it cannot be read.
pub(super) fn literals(delta: &[u8]) -> Vec<u8> {
    let Some((_, _, parts)) = read(delta) else { return Vec::new() };
    let mut all = Vec::new();
    for part in parts {
        match part {
            Part::Copied(..) => all.push(0),
            Part::New(bytes) => all.extend_from_slice(bytes),
        }
    }
    all
}

/// Returns the lengths of both texts, and the parts.
fn read(mut delta: &[u8]) -> Option<(u64, u64, Vec<Part<'_>>)> {
    let (from, to) = (length(&mut delta)?, length(&mut delta)?);
    let mut parts = Vec::new();
    while let Some(first) = byte(&mut delta) {
        if first & 0x80 == 0 {
            let (bytes, after) = delta.split_at_checked(usize::from(first)).filter(|_| first != 0)?;
            delta = after;
            parts.push(Part::New(bytes));
        } else {
            let at = number(first, 0..4, &mut delta)?;
            let length = number(first, 4..7, &mut delta)?;
            parts.push(Part::Copied(at, if length == 0 { 0x10000 } else { length }));
        }
    }
    Some((from, to, parts))
}

fn byte(rest: &mut &[u8]) -> Option<u8> {
    let (first, after) = rest.split_first()?;
    *rest = after;
    Some(*first)
}

fn length(rest: &mut &[u8]) -> Option<u64> {
    let mut length = 0_u64;
    for shift in (0..56).step_by(7) {
        let byte = byte(rest)?;
        length |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(length);
        }
    }
    None
}

/// Reads the bytes of a number that the bits of an instruction announce.
fn number(instruction: u8, bits: std::ops::Range<u8>, rest: &mut &[u8]) -> Option<usize> {
    let mut number = 0_usize;
    for (index, bit) in bits.enumerate() {
        if instruction >> bit & 1 != 0 {
            number |= usize::from(byte(rest)?) << (8 * index);
        }
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `world` is copied from the base, the rest is new.
    const DELTA: &[u8] = b"\x0b\x0c\x03big\x91\x06\x05\x04 wow";

    #[test]
    fn a_difference_is_applied_and_its_new_bytes_are_found() {
        assert_eq!(applied(b"hello world", DELTA).as_deref(), Some(b"bigworld wow".as_slice()));
        assert_eq!(literals(DELTA), b"big\0 wow");
    }

    #[test]
    fn differences_that_do_not_fit_are_none() {
        assert_eq!(applied(b"hello", DELTA), None, "another base");
        for end in 0..DELTA.len() {
            assert_eq!(applied(b"hello world", &DELTA[..end]), None, "cut at {end}");
        }
        assert_eq!(applied(b"a", b"\x01\x01\x00"), None, "the reserved instruction");
        assert_eq!(applied(b"a", b"\x01\x02\x91\x00\x02"), None, "beyond the base");
        assert_eq!(applied(b"a", &[0xff; 20]), None, "a length without end");
    }
}
