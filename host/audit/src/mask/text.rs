//! Masks secrets in a text: a script, a message, a document.

use portcullis_text::secrets::{is_secret_name, is_token};

use super::end::{of_line, of_plain, of_quoted, of_shell_word};
use super::names::{
    has_joined_secret, is_before_secret, is_common_scheme, is_header, is_leading, is_login_option, is_scheme,
    is_secret_option,
};

/// Maximum length of a text. A longer one is probably a file's content, and is replaced by its length and hash.
pub const LONGEST_TEXT: usize = 4096;

/// The replacement for a secret.
pub const MASK: &str = "[masked]";

/// URL prefixes whose following path is a secret.
const SECRET_PATHS: [&str; 3] =
    ["hooks.slack.com/services/", "discord.com/api/webhooks/", "discordapp.com/api/webhooks/"];

/// Minimum length of a secret after `Bearer`; shorter words are ordinary.
const SHORTEST_AFTER_SCHEME: usize = 8;

/// Masks secrets in one text.
#[must_use]
pub fn mask_text(text: &str) -> String {
    masked(text).unwrap_or_else(|| text.to_owned())
}

/// Returns the text with its secrets masked, or `None` if it has none.
pub(super) fn masked(text: &str) -> Option<String> {
    // Fast path for paths, names and most words of commands: other signs of a secret need characters before or after
    // the word.
    if text.chars().all(is_word_character) && !text.split('/').any(is_token) && secret_path(text).is_none() {
        return None;
    }
    let masked = scanned(text);
    (masked != text).then_some(masked)
}

/// Returns the text with its secrets masked, scanning every character.
pub(super) fn scanned(text: &str) -> String {
    let out = String::with_capacity(text.len());
    let mut scan = Scan { rest: text, before: "", leading: "", quote: None, last: None, out };
    while !scan.rest.is_empty() {
        if !scan.private_key() && !scan.user_in_url() && !scan.word() {
            let length = scan.rest.chars().next().map_or(0, char::len_utf8);
            scan.keep(length);
        }
    }
    scan.out
}

struct Scan<'a> {
    rest: &'a str,
    /// The previous word.
    before: &'a str,
    /// The last word of this command that changes how later words are read.
    leading: &'a str,
    /// The open quote, as a shell reads it.
    quote: Option<char>,
    /// The previous character.
    last: Option<char>,
    out: String,
}

/// The text between a name and its value.
struct Between {
    /// Its length in bytes.
    length: usize,
    /// `NAME=value`, without blanks and quotes.
    is_assignment: bool,
}

impl<'a> Scan<'a> {
    /// Masks `-----BEGIN … PRIVATE KEY-----` up to its end, or to the end of the text.
    fn private_key(&mut self) -> bool {
        let Some(after) = self.rest.strip_prefix("-----BEGIN ") else { return false };
        let first_line = after.lines().next().unwrap_or_default();
        if !first_line.contains("PRIVATE KEY") {
            return false;
        }
        let end = after.find("-----END ").and_then(|at| after.get(at + "-----END ".len()..));
        let end = end.and_then(|tail| tail.find("-----").and_then(|at| tail.get(at + "-----".len()..)));
        self.mask(self.rest.len() - end.unwrap_or_default().len());
        true
    }

    /// Masks the user part of `scheme://user:password@host`.
    fn user_in_url(&mut self) -> bool {
        const AFTER_SCHEME: &str = "://";
        let Some(after) = self.rest.strip_prefix(AFTER_SCHEME) else { return false };
        let up_to = |ends: &str| {
            let end = after.find(|character: char| character.is_whitespace() || ends.contains(character));
            end.and_then(|end| after.get(..end)).unwrap_or(after)
        };
        let host = up_to("/?#\"'`");
        // If the text after the colon is not a port, it is a password that contains a delimiter and continues after it.
        let is_port = |(_, port): (&str, &str)| port.bytes().all(|byte| byte.is_ascii_digit());
        let is_broken_off =
            !host.contains('@') && !host.starts_with('[') && !host.split_once(':').is_none_or(is_port);
        let authority = if is_broken_off { up_to("\"'`") } else { host };
        let Some((user, _)) = authority.rsplit_once('@') else { return false };
        self.keep(AFTER_SCHEME.len());
        self.mask(user.len());
        true
    }

    fn word(&mut self) -> bool {
        let length = self.rest.find(|character| !is_word_character(character)).unwrap_or(self.rest.len());
        let Some(word) = self.rest.get(..length).filter(|word| !word.is_empty()) else { return false };
        let is_after_blank = self.last.is_some_and(char::is_whitespace);
        if is_after_blank && is_common_scheme(self.before) && word.len() >= SHORTEST_AFTER_SCHEME {
            self.mask(of_plain(self.rest));
            return true;
        }
        if self.login_in_one_word(word) || self.secret_path(word) {
            return true;
        }
        let opens_quote = self.quote.is_some() && self.last == self.quote;
        let is_of_query = word == "key" && self.last.is_some_and(|last| "?&".contains(last));
        let earlier = std::mem::replace(&mut self.before, word);
        self.keep_word(word);
        if (is_of_query || is_secret_name(word)) && self.value(word, opens_quote) {
            return true;
        }
        let is_of_sql = earlier.eq_ignore_ascii_case("identified") && word.eq_ignore_ascii_case("by");
        if is_leading(word) {
            self.leading = word;
        } else if is_of_sql || is_secret_option(word) || is_before_secret(self.leading, word) {
            self.argument(|_| true);
        } else if is_login_option(word) {
            self.argument(|value| value.contains(':'));
        }
        true
    }

    /// Masks `-uname:password`, and `-ppassword` of `sshpass` and others.
    fn login_in_one_word(&mut self, word: &str) -> bool {
        let is_login = word.len() > 2
            && word.starts_with("-u")
            && self
                .rest
                .get(word.len()..)
                .is_some_and(|tail| tail.starts_with(':') && !tail.starts_with("://"));
        let is_joined = has_joined_secret(self.leading, word);
        if is_login || is_joined {
            self.keep(2);
            self.mask(of_shell_word(self.rest, self.quote, false));
        }
        is_login || is_joined
    }

    fn secret_path(&mut self, word: &str) -> bool {
        let Some(start) = secret_path(word) else { return false };
        self.keep(start);
        self.mask(word.len() - start);
        true
    }

    /// Masks the value after a secret's name: `TOKEN=…`, `"password": "…"`, `Authorization: Bearer …`.
    ///
    /// `opens_quote` means that the name is the first word in a quote, so the whole quote may be one word.
    fn value(&mut self, name: &str, opens_quote: bool) -> bool {
        let Some(joint) = joint(self.rest) else { return false };
        self.keep(joint.length);
        if joint.is_assignment {
            let length = of_shell_word(self.rest, self.quote, opens_quote);
            if length == 0 && name.starts_with('-') {
                self.argument(|_| true);
            } else {
                self.mask(length);
            }
            return true;
        }
        let escapes = self.rest.len() - self.rest.trim_start_matches('\\').len();
        let opening = self.rest.get(escapes..).and_then(|tail| tail.chars().next());
        if let Some(quote @ ('"' | '\'')) = opening {
            self.keep(escapes + 1);
            self.mask(of_quoted(self.rest, quote, escapes, false));
        } else if is_header(name) || self.quote.is_some() {
            self.scheme();
            self.mask(of_line(self.rest, self.quote));
        } else {
            self.mask(of_plain(self.rest));
        }
        true
    }

    /// Keeps `Bearer ` and similar words, which show the kind of the secret.
    fn scheme(&mut self) {
        let end = self.rest.find(|character: char| !character.is_ascii_alphanumeric()).unwrap_or_default();
        let is_kept = self.rest.get(..end).is_some_and(is_scheme);
        if is_kept && self.rest.get(end..).is_some_and(|tail| tail.starts_with(' ')) {
            self.keep(end + 1);
        }
    }

    /// Masks an option's argument in the next word, in a command or in a list of words.
    fn argument(&mut self, is_secret: fn(&str) -> bool) {
        let blank =
            self.rest.find(|character: char| !"\"',= \t".contains(character)).unwrap_or(self.rest.len());
        let blank = self.rest.get(..blank).unwrap_or_default();
        // An opening quote belongs to the argument, a closing one to the option.
        let opened = if blank.trim_end_matches(['"', '\'']).is_empty() { "" } else { trailing_quote(blank) };
        let gap = blank.len() - opened.len();
        if gap == 0 {
            return;
        }
        self.keep(gap);
        let length = of_shell_word(self.rest, self.quote, false);
        let value = self.rest.get(..length).unwrap_or_default();
        if !value.is_empty() && !value.starts_with('-') && is_secret(value) {
            self.mask(length);
        }
    }

    /// Keeps a word, but masks tokens in it.
    fn keep_word(&mut self, word: &str) {
        for (index, part) in word.split('/').enumerate() {
            if index > 0 {
                self.keep(1);
            }
            if is_token(part) {
                self.mask(part.len());
            } else {
                self.keep(part.len());
            }
        }
    }

    /// Keeps this many bytes.
    fn keep(&mut self, length: usize) {
        let (kept, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        for character in kept.chars() {
            self.follow(character);
            self.last = Some(character);
        }
        self.out.push_str(kept);
        self.rest = rest;
    }

    fn follow(&mut self, character: char) {
        let is_escaped = self.last == Some('\\') && self.quote != Some('\'');
        match (self.quote, character) {
            (Some(open), _) if open == character && !is_escaped => self.quote = None,
            // After a letter it is an apostrophe.
            (None, '\'') if !is_escaped && !self.last.is_some_and(char::is_alphanumeric) => {
                self.quote = Some('\'');
            }
            (None, '"') if !is_escaped => self.quote = Some('"'),
            (None, ';' | '|' | '&' | '\n') if !is_escaped => self.leading = "",
            _ => {}
        }
    }

    /// Masks this many bytes.
    fn mask(&mut self, length: usize) {
        let (masked, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        if !masked.is_empty() {
            self.out.push_str(MASK);
            self.last = masked.chars().last();
        }
        self.rest = rest;
    }
}

/// Returns the start of the secret part of a URL in a word.
fn secret_path(word: &str) -> Option<usize> {
    // Nearly every word is shorter than all of these; `contains` checks that first, and `find` does not.
    let place = SECRET_PATHS.into_iter().find(|place| word.contains(*place))?;
    word.find(place).map(|at| at + place.len())
}

/// Parses `=`, `:` or `:=` after a name, with the closing quote of the name and blanks.
fn joint(rest: &str) -> Option<Between> {
    let closing = rest.len() - rest.trim_start_matches(['"', '\'', '\\', ' ', '\t']).len();
    let tail = rest.get(closing..)?;
    let sign = [":=", "=", ":"].into_iter().find(|sign| tail.starts_with(sign))?;
    let tail = tail.get(sign.len()..)?;
    let blanks = tail.len() - tail.trim_start_matches([' ', '\t']).len();
    let is_assignment = closing == 0 && sign == "=" && blanks == 0;
    Some(Between { length: closing + sign.len() + blanks, is_assignment })
}

fn trailing_quote(text: &str) -> &str {
    let start = text.trim_end_matches(['"', '\'']).len();
    text.get(start..).unwrap_or_default()
}

fn is_word_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || "_-.+/~".contains(character)
}
