//! The forms in which servers repeat a credential.

use zeroize::Zeroizing;

use super::super::placeholders::in_base64;
use super::super::secret::Secret;
use super::beginnings::{Beginnings, Kinds, may_be_escaped};
use super::escapes::{Spelling, begins_escape};
use super::references::ESCAPED_MAX;

/// The least number of characters at the beginning of a credential that are masked even if the rest is missing, as in an
/// error message that the server shortens. Of a credential under 22 characters it is three quarters, of one over 32 a
/// half. The masker also masks the characters that follow the beginning, without comparing them: otherwise a command
/// that has a server repeat its guesses could see which next character is right, and learn one after the other. Half of
/// a credential is usually more than the public beginning of its kind, such as the header of a JSON Web Token.
const BEGINNING: usize = 16;

/// A text to search for.
pub(super) struct Form {
    pub(super) text: Zeroizing<Vec<u8>>,
    pub(super) spelling: Spelling,
    /// How much of it is masked without the rest.
    pub(super) least: usize,
    /// The characters that are masked after the beginning.
    pub(super) characters: Characters,
}

impl Form {
    fn new(text: Vec<u8>, spelling: Spelling, credential: &[u8]) -> Self {
        let length = credential.len();
        let beginning = BEGINNING.min((length * 3).div_ceil(4)).max(length.div_ceil(2));
        // As much of this form as those characters make of the credential.
        let least = (text.len() * beginning).div_ceil(length.max(1));
        let characters = Characters::of(&text, spelling);
        Self { text: Zeroizing::new(text), spelling, least, characters }
    }

    /// Returns false if the first two bytes show that it does not begin here. Most places are no beginning.
    fn may_begin(&self, bytes: &[u8]) -> bool {
        let (&[wanted, wanted_next, ..], &[first, next, ..]) = (self.text.as_slice(), bytes) else {
            return false;
        };
        begins_escape(first) && may_be_escaped(wanted, self.spelling)
            || self.spelling.is_same(wanted, first)
                && (self.spelling.is_same(wanted_next, next)
                    || begins_escape(next)
                    || wanted_next == b' ' && next == b'+'
                    || self.spelling.separator(&[next]).is_some())
    }
}

/// The characters that a credential of a kind can have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Characters {
    /// Those of base64 and hexadecimal digits.
    Encoded,
    /// Those of tokens (RFC 6750 2.1), and `:` and `_`.
    Token,
    /// All that are printable, in one word.
    Word,
    /// All that are printable.
    Words,
}

impl Characters {
    fn of(text: &[u8], spelling: Spelling) -> Self {
        if spelling == Spelling::Encoded {
            return Self::Encoded;
        }
        let mut fitting =
            [Self::Token, Self::Word].into_iter().filter(|one| text.iter().all(|byte| one.have(*byte)));
        fitting.next().unwrap_or(Self::Words)
    }

    pub(super) fn have(self, byte: u8) -> bool {
        match self {
            Self::Encoded => byte.is_ascii_alphanumeric() || b"+/-_=".contains(&byte),
            Self::Token => byte.is_ascii_alphanumeric() || b"-._~+/=:".contains(&byte),
            Self::Word => byte.is_ascii_graphic(),
            Self::Words => byte.is_ascii_graphic() || byte == b' ',
        }
    }
}

/// What to search for.
#[derive(Default)]
pub(super) struct Forms {
    /// The credentials and their forms in base64 as `Authorization: Basic` has them, as texts; and all these in base64
    /// and in hexadecimal, as encoded texts.
    all: Vec<Form>,
    beginnings: Beginnings,
    longest: usize,
    has_space: bool,
}

impl Forms {
    pub(super) fn new<'a>(secrets: impl Iterator<Item = &'a Secret>) -> Self {
        let (mut forms, mut encoded) = (Self::default(), Vec::new());
        for secret in secrets {
            for text in
                secret.texts().flat_map(|text| [Some(text), key_in(text)]).flatten().map(str::as_bytes)
            {
                forms.has_space |= text.contains(&b' ');
                let plain = std::iter::once(text.to_vec()).chain(in_base64(text)).collect::<Vec<_>>();
                let twice =
                    plain.iter().flat_map(|one| in_hexadecimal(one).into_iter().chain(in_base64(one)));
                encoded.extend(twice.map(|form| Form::new(form, Spelling::Encoded, text)));
                forms.all.extend(plain.into_iter().map(|form| Form::new(form, Spelling::Text, text)));
            }
        }
        forms.longest = forms.all.iter().map(|form| form.text.len() * ESCAPED_MAX).max().unwrap_or_default();
        encoded.sort_unstable_by(|one, other| one.text.as_slice().cmp(&other.text));
        encoded.dedup_by(|one, other| one.text == other.text);
        forms.all.extend(encoded);
        forms.all.iter().for_each(|form| forms.beginnings.add(&form.text, form.spelling));
        forms
    }

    /// Returns the length of the longest form, in bytes.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// Returns true if a byte can be part of a form.
    pub(super) fn may_hold(&self, byte: u8) -> bool {
        byte.is_ascii_graphic() || byte == 0 || self.has_space && byte == b' '
    }

    /// Returns a form by its number.
    pub(super) fn get(&self, index: usize) -> Option<&Form> {
        self.all.get(index)
    }

    /// Returns the places at which a form may begin.
    pub(super) fn places(&self, bytes: &[u8]) -> impl Iterator<Item = (usize, Kinds)> {
        self.beginnings.places(bytes)
    }

    /// Returns the numbers of the forms that may begin here.
    pub(super) fn that_may_begin(&self, bytes: &[u8], kinds: Kinds) -> impl Iterator<Item = usize> {
        let forms = self.all.iter().enumerate();
        forms
            .filter(move |(_, form)| kinds.have(form.spelling) && form.may_begin(bytes))
            .map(|(index, _)| index)
    }
}

/// Returns the key in a credential such as `ApiKey KEY` or `name:KEY`, which servers also repeat without the rest.
fn key_in(text: &str) -> Option<&str> {
    let (_, key) = text.rsplit_once([' ', ':'])?;
    (key.len() >= BEGINNING).then_some(key)
}

fn in_hexadecimal(text: &[u8]) -> [Vec<u8>; 2] {
    let digits = |format: fn(&u8) -> String| text.iter().flat_map(|byte| format(byte).into_bytes()).collect();
    [digits(|byte| format!("{byte:02x}")), digits(|byte| format!("{byte:02X}"))]
}
