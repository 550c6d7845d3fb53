//! The forms in which servers repeat a credential.

use aho_corasick::AhoCorasick;
use zeroize::Zeroizing;

use super::super::placeholders::in_base64;
use super::super::secret::Secret;
use super::escapes::{ESCAPED_MAX, begins_escape, end_of};

/// What to search for.
#[derive(Default)]
pub(super) struct Forms {
    /// The credentials, and their forms in base64 as `Authorization: Basic` has them. Each character can stand for
    /// itself, in either case, or be escaped.
    texts: Vec<Zeroizing<Vec<u8>>>,
    /// These texts in base64 and in hexadecimal.
    encoded: Option<AhoCorasick>,
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
        let in_hex = |text: &[u8]| {
            let digits = |format: fn(&u8) -> String| -> Vec<u8> {
                text.iter().flat_map(|byte| format(byte).into_bytes()).collect()
            };
            [digits(|byte| format!("{byte:02x}")), digits(|byte| format!("{byte:02X}"))]
        };
        let mut encoded: Vec<Zeroizing<Vec<u8>>> = forms
            .texts
            .iter()
            .flat_map(|text| in_hex(text).into_iter().chain(in_base64(text)))
            .map(Zeroizing::new)
            .collect();
        encoded.sort_unstable_by(|one, other| one.as_slice().cmp(other));
        encoded.dedup();
        forms.longest = forms.texts.iter().map(|text| text.len() * ESCAPED_MAX).max().unwrap_or_default();
        // It fails for patterns of several gigabytes only.
        forms.encoded = AhoCorasick::new(encoded.iter().map(|form| form.as_slice())).ok();
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

    /// Marks base64 with line breaks, and hexadecimal digits with spaces or colons between them.
    fn hide_in_parts(&self, bytes: &[u8], mark: &mut impl FnMut(usize, usize)) {
        let is_between = |byte: u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b':');
        if !bytes.iter().copied().any(is_between) {
            return;
        }
        let kept = bytes.iter().copied().enumerate().filter(|(_, byte)| !is_between(*byte));
        let (places, joined): (Vec<usize>, Zeroizing<Vec<u8>>) = {
            let (places, joined): (Vec<usize>, Vec<u8>) = kept.unzip();
            (places, Zeroizing::new(joined))
        };
        for found in self.encoded.iter().flat_map(|encoded| encoded.find_overlapping_iter(&*joined)) {
            if let (Some(from), Some(last)) = (places.get(found.start()), places.get(found.end() - 1)) {
                mark(*from, last + 1);
            }
        }
    }

    /// Marks the bytes that belong to a credential.
    pub(super) fn hide(&self, bytes: &[u8], hidden: &mut [bool]) {
        let mut mark = |from: usize, to: usize| {
            if let Some(part) = hidden.get_mut(from..to) {
                part.fill(true);
            }
        };
        for found in self.encoded.iter().flat_map(|encoded| encoded.find_overlapping_iter(bytes)) {
            mark(found.start(), found.end());
        }
        self.hide_in_parts(bytes, &mut mark);
        let mut begins = [false; 256];
        for text in &self.texts {
            for byte in text
                .first()
                .into_iter()
                .flat_map(|first| [first.to_ascii_lowercase(), first.to_ascii_uppercase()])
            {
                if let Some(known) = begins.get_mut(usize::from(byte)) {
                    *known = true;
                }
            }
        }
        for (at, &byte) in bytes.iter().enumerate() {
            if !begins.get(usize::from(byte)).copied().unwrap_or_default() && !begins_escape(byte) {
                continue;
            }
            for end in self.texts.iter().filter_map(|text| end_of(text, bytes, at)) {
                mark(at, end);
            }
        }
    }
}
