//! Parser for `allowed_signers` files, see `ssh-keygen(1)`.
//!
//! Written by hand: `ssh-key` does not know these files.

use crate::date;
use crate::key::{Key, Validity};
use crate::trust::TrustError;

/// Returns the keys that may sign for a purpose, which is a namespace of signatures.
///
/// The names of the signers are informational: the trust file says whose keys they are.
pub(crate) fn parse(text: &str, purpose: &str) -> Result<Vec<(Key, Validity)>, TrustError> {
    let mut keys = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let at = |reason: String| TrustError::Signers { line: number + 1, reason };
        if let Some(key) = entry(line, purpose).map_err(at)? {
            keys.push(key);
        }
    }
    Ok(keys)
}

/// Parses one line. Returns `None` if the key is not for this purpose.
fn entry(line: &str, purpose: &str) -> Result<Option<(Key, Validity)>, String> {
    let words = words(line)?;
    let [_, rest @ ..] = words.as_slice() else { return Err("there is no key".to_owned()) };
    let is_type = |word: &String| ["ssh-", "ecdsa-", "sk-"].iter().any(|start| word.starts_with(start));
    let (options, key) = match rest {
        [kind, data, ..] if is_type(kind) => (None, format!("{kind} {data}")),
        [options, kind, data, ..] if is_type(kind) => (Some(options), format!("{kind} {data}")),
        _ => return Err("there is no key; write `NAME [OPTIONS] ssh-ed25519 AAAA...`".to_owned()),
    };
    let mut validity = Validity::default();
    for option in options.map(|options| split(options)).unwrap_or_default() {
        let (name, value) = option.split_once('=').unwrap_or((&option, ""));
        let value = value.trim_matches('"');
        let day = || date::parse(value).ok_or_else(|| format!("`{value}` is no day like `20270131`"));
        match name {
            "namespaces" if !value.split(',').any(|name| name == purpose || name == "*") => return Ok(None),
            "namespaces" => {}
            "valid-after" => validity.after = Some(day()?),
            "valid-before" => validity.before = Some(day()?),
            _ => return Err(format!("the option `{name}` is not known here")),
        }
    }
    let key = Key::parse(&key).map_err(|error| error.to_string())?;
    Ok(Some((key, validity)))
}

/// Splits a line at blanks outside of quotation marks.
fn words(line: &str) -> Result<Vec<String>, String> {
    divided(line, &[' ', '\t']).ok_or_else(|| "a quotation mark is not closed".to_owned())
}

fn split(options: &str) -> Vec<String> {
    divided(options, &[',']).unwrap_or_default()
}

fn divided(text: &str, at: &[char]) -> Option<Vec<String>> {
    let (mut parts, mut part, mut quoted) = (Vec::new(), String::new(), false);
    for character in text.chars() {
        if at.contains(&character) && !quoted {
            if !part.is_empty() {
                parts.push(std::mem::take(&mut part));
            }
            continue;
        }
        quoted ^= character == '"';
        part.push(character);
    }
    if !part.is_empty() {
        parts.push(part);
    }
    (!quoted).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::PURPOSE;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti";

    #[test]
    fn lines() {
        for (line, expected) in [
            (format!("alice@a.test {KEY} comment"), Some((None, None))),
            (format!("a,b namespaces=\"git,portcullis-policy\" {KEY}"), Some((None, None))),
            (
                format!("a valid-after=\"20200101\",valid-before=\"20270101\" {KEY}"),
                Some((Some(1_577_836_800), Some(1_798_761_600))),
            ),
            (format!("\"a b\" {KEY}"), Some((None, None))),
            ("# a comment".to_owned(), None),
            (format!("a namespaces=\"git\" {KEY}"), None),
        ] {
            let keys = parse(&format!("\n{line}\n"), PURPOSE).unwrap();
            let found = keys.first().map(|(_, validity)| (validity.after, validity.before));
            assert_eq!(found, expected, "{line}");
        }
        for wrong in [
            "alice".to_owned(),
            format!("a cert-authority {KEY}"),
            format!("a valid-before=\"soon\" {KEY}"),
            format!("a \"namespaces {KEY}"),
            "a ssh-ed25519 xx".to_owned(),
        ] {
            assert!(parse(&wrong, PURPOSE).is_err(), "{wrong}");
        }
    }
}
