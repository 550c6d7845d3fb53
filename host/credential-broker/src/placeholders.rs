//! Placeholders, and the search for them in what commands send.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use memchr::memmem;

/// How every placeholder begins, so that users recognize one.
pub(super) const PREFIX: &str = "pcx_";
/// Random bytes in a placeholder.
const RANDOM: usize = 20;

/// Makes a placeholder for a credential. It is worth nothing outside the session.
///
/// # Errors
/// If the system has no random numbers.
pub fn new_placeholder() -> io::Result<String> {
    let mut bytes = [0; RANDOM];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().fold(PREFIX.to_owned(), |text, byte| format!("{text}{byte:02x}")))
}

/// The placeholders of a session, in each form in which they are searched for.
#[derive(Debug, Default)]
pub struct Placeholders {
    known: Vec<Known>,
    longest: usize,
}

#[derive(Debug)]
struct Known {
    text: Vec<u8>,
    /// The credential; `None` if the settings no longer have it.
    credential: Option<String>,
}

impl Placeholders {
    pub(crate) fn new(known: Vec<(String, Option<String>)>) -> Self {
        let forms = |(placeholder, credential): (String, Option<String>)| {
            let texts =
                std::iter::once(placeholder.clone().into_bytes()).chain(in_base64(placeholder.as_bytes()));
            texts.map(move |text| Known { text, credential: credential.clone() })
        };
        let known: Vec<Known> = known.into_iter().flat_map(forms).collect();
        let longest = known.iter().map(|known| known.text.len()).max().unwrap_or_default();
        Self { known, longest }
    }

    /// Returns true if there are none, so that no search is needed.
    pub(crate) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Returns what to call the first placeholder in a text.
    pub fn found_in(&self, text: &[u8]) -> Option<String> {
        let found = self.known.iter().find(|known| memmem::find(text, &known.text).is_some())?;
        Some(match &found.credential {
            Some(name) => format!("the placeholder of the credential `{name}`"),
            None => "the placeholder of a credential that the settings no longer have".to_owned(),
        })
    }
}

/// Returns the base64 forms of a text that stands at any place in a longer one, without the characters that also depend
/// on its neighbours.
pub(super) fn in_base64(text: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    for before in 0..3_usize {
        let padded: Vec<u8> = std::iter::repeat_n(0, before).chain(text.iter().copied()).collect();
        // Six bits a character: the first whole one after the neighbour's bits, the last one before the next's.
        let (first, last) = ((before * 8).div_ceil(6), padded.len() * 8 / 6);
        for encoded in [STANDARD_NO_PAD.encode(&padded), URL_SAFE_NO_PAD.encode(&padded)] {
            let form = encoded.as_bytes().get(first..last).unwrap_or_default().to_vec();
            if !form.is_empty() && !forms.contains(&form) {
                forms.push(form);
            }
        }
    }
    forms
}

/// Searches a stream for placeholders, also across the borders of its pieces.
#[derive(Debug, Default)]
pub struct Finder {
    tail: Vec<u8>,
}

impl Finder {
    /// Returns what to call a placeholder that ends in this piece.
    pub fn find(&mut self, placeholders: &Placeholders, piece: &[u8]) -> Option<String> {
        if placeholders.is_empty() {
            return None;
        }
        let most = placeholders.longest.saturating_sub(1);
        let head = piece.get(..most.min(piece.len())).unwrap_or_default();
        self.tail.extend_from_slice(head);
        let found = placeholders.found_in(&self.tail).or_else(|| placeholders.found_in(piece));
        if piece.len() >= most {
            self.tail.clear();
            self.tail.extend_from_slice(piece.get(piece.len() - most..).unwrap_or_default());
        } else {
            let surplus = self.tail.len().saturating_sub(most);
            self.tail.drain(..surplus);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    fn one(placeholder: &str) -> Placeholders {
        Placeholders::new(vec![(placeholder.to_owned(), Some("forge".to_owned()))])
    }

    #[test]
    fn placeholders_differ_and_are_recognized() {
        let (one, other) = (new_placeholder().unwrap(), new_placeholder().unwrap());
        assert!(one.starts_with("pcx_") && one.len() == 44 && one != other);
    }

    #[test]
    fn a_placeholder_is_found_in_base64_at_every_place() {
        let placeholder = new_placeholder().unwrap();
        let placeholders = one(&placeholder);
        for before in ["", "a", "ab", "user:", "x-access-token:"] {
            for after in ["", "z", "zz", ":x"] {
                let text = STANDARD.encode(format!("{before}{placeholder}{after}"));
                assert!(placeholders.found_in(text.as_bytes()).is_some(), "{before} {after}");
            }
        }
        assert_eq!(placeholders.found_in(b"pcx_ and nothing else"), None);
    }

    #[test]
    fn a_placeholder_is_found_however_the_stream_is_cut() {
        let placeholder = new_placeholder().unwrap();
        let placeholders = one(&placeholder);
        let text = format!("{}{placeholder}{}", "a".repeat(100), "b".repeat(100));
        for size in 1..text.len() {
            let mut finder = Finder::default();
            let found = text.as_bytes().chunks(size).any(|piece| finder.find(&placeholders, piece).is_some());
            assert!(found, "pieces of {size}");
        }
        let mut finder = Finder::default();
        assert_eq!(finder.find(&placeholders, &text.as_bytes()[..143]), None, "all but its last byte");
    }
}
