//! The forms in which servers repeat a credential.

use std::ops::Range;

use zeroize::Zeroizing;

use super::super::placeholders::in_base64;
use super::super::secret::Secret;
use super::beginnings::Beginnings;
use super::escapes::{ESCAPED_MAX, end_of, is_between};

/// What to search for.
#[derive(Default)]
pub(super) struct Forms {
    /// The credentials, and their forms in base64 as `Authorization: Basic` has them. Each character can stand for
    /// itself, in either case, or be escaped.
    texts: Vec<Zeroizing<Vec<u8>>>,
    /// These texts in base64 and in hexadecimal. They can have line breaks, spaces and colons in them.
    encoded: Vec<Zeroizing<Vec<u8>>>,
    beginnings: Beginnings,
    longest: usize,
    has_space: bool,
}

impl Forms {
    pub(super) fn new<'a>(secrets: impl Iterator<Item = &'a Secret>) -> Self {
        let mut forms = Self::default();
        for secret in secrets {
            for text in secret.texts().map(str::as_bytes) {
                forms.has_space |= text.contains(&b' ');
                forms.texts.extend(std::iter::once(text.to_vec()).chain(in_base64(text)).map(Zeroizing::new));
            }
        }
        let encoded =
            forms.texts.iter().flat_map(|text| in_hexadecimal(text).into_iter().chain(in_base64(text)));
        forms.encoded = encoded.map(Zeroizing::new).collect();
        forms.encoded.sort_unstable_by(|one, other| one.as_slice().cmp(other));
        forms.encoded.dedup();
        forms.longest = forms.texts.iter().map(|text| text.len() * ESCAPED_MAX).max().unwrap_or_default();
        forms.texts.iter().for_each(|text| forms.beginnings.add_text(text));
        forms.encoded.iter().for_each(|form| forms.beginnings.add_encoded(form));
        forms
    }

    /// Returns the length of the longest form, in bytes.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// Returns true if a byte can be part of a form.
    pub(super) fn may_hold(&self, byte: u8) -> bool {
        byte.is_ascii_graphic() || self.has_space && byte == b' '
    }

    /// Adds the parts of a text that belong to a credential.
    pub(super) fn find(&self, bytes: &[u8], found: &mut Vec<Range<usize>>) {
        for (at, is_text, is_encoded) in self.beginnings.places(bytes) {
            if is_text {
                found.extend(self.texts.iter().filter_map(|text| Some(at..end_of(text, bytes, at)?)));
            }
            if is_encoded {
                found.extend(self.encoded.iter().filter_map(|form| Some(at..end_in_parts(form, bytes, at)?)));
            }
        }
    }
}

fn in_hexadecimal(text: &[u8]) -> [Vec<u8>; 2] {
    let digits = |format: fn(&u8) -> String| text.iter().flat_map(|byte| format(byte).into_bytes()).collect();
    [digits(|byte| format!("{byte:02x}")), digits(|byte| format!("{byte:02X}"))]
}

/// Returns the end of a form that begins at a place.
fn end_in_parts(form: &[u8], bytes: &[u8], at: usize) -> Option<usize> {
    let mut rest = bytes.iter().enumerate().skip(at).filter(|(_, byte)| !is_between(**byte));
    let mut end = at;
    for wanted in form {
        let (place, _) = rest.next().filter(|(_, byte)| *byte == wanted)?;
        end = place + 1;
    }
    Some(end)
}
