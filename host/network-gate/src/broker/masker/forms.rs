//! The forms in which servers repeat a credential.

use std::ops::Range;

use zeroize::Zeroizing;

use super::super::placeholders::in_base64;
use super::super::secret::Secret;
use super::beginnings::Beginnings;
use super::escapes::{ESCAPED_MAX, end_of, is_between};

/// The number of characters at the beginning of a credential that are masked even if the rest is missing, as in an error
/// message that the server shortens; of a shorter credential, three quarters. A smaller number would let a command guess
/// the first characters one by one, and see from the masking which guess is right.
const BEGINNING: usize = 16;

/// A text to search for.
struct Form {
    text: Zeroizing<Vec<u8>>,
    /// How much of it is masked without the rest.
    least: usize,
}

impl Form {
    fn new(text: Vec<u8>, credential: &[u8]) -> Self {
        // As much of this form as those characters make of the credential.
        let beginning = BEGINNING.min((credential.len() * 3).div_ceil(4));
        let least = (text.len() * beginning).div_ceil(credential.len().max(1));
        Self { text: Zeroizing::new(text), least }
    }
}

/// What to search for.
#[derive(Default)]
pub(super) struct Forms {
    /// The credentials, and their forms in base64 as `Authorization: Basic` has them. Each character can stand for
    /// itself, in either case, or be escaped.
    texts: Vec<Form>,
    /// These texts in base64 and in hexadecimal. They can have line breaks, spaces and colons in them.
    encoded: Vec<Form>,
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
                let plain = std::iter::once(text.to_vec()).chain(in_base64(text)).collect::<Vec<_>>();
                let twice =
                    plain.iter().flat_map(|one| in_hexadecimal(one).into_iter().chain(in_base64(one)));
                forms.encoded.extend(twice.map(|form| Form::new(form, text)));
                forms.texts.extend(plain.into_iter().map(|form| Form::new(form, text)));
            }
        }
        forms.encoded.sort_unstable_by(|one, other| one.text.as_slice().cmp(&other.text));
        forms.encoded.dedup_by(|one, other| one.text == other.text);
        forms.longest =
            forms.texts.iter().map(|form| form.text.len() * ESCAPED_MAX).max().unwrap_or_default();
        forms.texts.iter().for_each(|form| forms.beginnings.add_text(&form.text));
        forms.encoded.iter().for_each(|form| forms.beginnings.add_encoded(&form.text));
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
                found.extend(
                    self.texts.iter().filter_map(|form| Some(at..end_of(&form.text, form.least, bytes, at)?)),
                );
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

/// Returns the end of a form that begins at a place, or of its beginning.
fn end_in_parts(form: &Form, bytes: &[u8], at: usize) -> Option<usize> {
    let mut rest = bytes.iter().enumerate().skip(at).filter(|(_, byte)| !is_between(**byte));
    let mut end = at;
    for (count, wanted) in form.text.iter().enumerate() {
        let Some((place, _)) = rest.next().filter(|(_, byte)| *byte == wanted) else {
            return (count >= form.least).then_some(end);
        };
        end = place + 1;
    }
    Some(end)
}
