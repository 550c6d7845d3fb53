//! The key with which commits and tags of commands are signed outside.

use crate::brokered::{is_credential_name, required};
use crate::document_value::DocumentValue;
use crate::entry::{Entry, PathEntry};
use crate::fault::Fault;

/// The end of the name of a public key.
const PUBLIC: &str = ".pub";
/// The longest name of a key.
const KEY_MAX: usize = 256;

/// A key with which commits and tags of commands are signed outside. Commands do not have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SigningCredential {
    /// Its name.
    pub name: String,
    /// The program that signs.
    pub form: SigningForm,
    /// The objects that are signed.
    pub objects: Vec<SignedObject>,
    /// Whether each signature is a question.
    pub ask: bool,
    /// Whether git inside signs without being told to.
    pub always: bool,
}

/// The program that signs, and the name that it has for the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SigningForm {
    /// `ssh-keygen`: the path of the public key. The private key lies beside it or is in the agent.
    Ssh {
        /// The path, absolute or beginning with `~/`.
        public_key: String,
    },
    /// `gpg`: a fingerprint, an id or an address.
    Gpg {
        /// The key.
        key: String,
    },
}

/// A kind of objects of git.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignedObject {
    /// Commits.
    Commit,
    /// Tags.
    Tag,
}

impl SignedObject {
    const ALL: [Self; 2] = [Self::Commit, Self::Tag];

    /// Returns its name in git.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Tag => "tag",
        }
    }
}

pub(crate) fn signing(
    place: &DocumentValue<'_>,
    others: &[&str],
) -> Result<Option<SigningCredential>, Fault> {
    if place.node.is_none() {
        return Ok(None);
    }
    let name = required(place, "name")?;
    is_credential_name(name).map_err(|reason| place.child("name").fault(reason))?;
    if others.contains(&name) {
        return Err(place.child("name").fault("another credential has this name"));
    }
    let key = required(place, "key")?;
    let form = match place.child("form").text() {
        Some("gpg") => {
            SigningForm::Gpg { key: gpg_key(key).map_err(|reason| place.child("key").fault(reason))? }
        }
        _ => SigningForm::Ssh {
            public_key: public_key(key).map_err(|reason| place.child("key").fault(reason))?,
        },
    };
    let listed = place.child("for").texts();
    let objects = SignedObject::ALL
        .into_iter()
        .filter(|one| listed.is_empty() || listed.iter().any(|name| name == one.name()));
    Ok(Some(SigningCredential {
        name: name.to_owned(),
        form,
        objects: objects.collect(),
        ask: place.child("ask").flag(true),
        always: place.child("always").flag(true),
    }))
}

/// Returns the private key, which lies beside the public one if it is a file.
pub(crate) fn private_key(
    place: &DocumentValue<'_>,
    signing: Option<&SigningCredential>,
) -> Result<Option<Entry<PathEntry>>, Fault> {
    let Some(SigningForm::Ssh { public_key }) = signing.map(|signing| &signing.form) else {
        return Ok(None);
    };
    let key = place.child("key");
    let path = public_key.strip_suffix(PUBLIC).unwrap_or(public_key);
    crate::check::usable_path(path).map_err(|reason| key.fault(reason))?;
    Ok(Some(key.entry(PathEntry { text: path.to_owned(), literal: true }, path)))
}

fn public_key(path: &str) -> Result<String, &'static str> {
    let is_absolute = path.starts_with('/') || path.starts_with("~/");
    let is_usable =
        is_absolute && path.ends_with(PUBLIC) && path.len() <= KEY_MAX && !path.contains(char::is_control);
    is_usable.then(|| path.to_owned()).ok_or(
        "write the path of the public key, absolute or beginning with `~/`, such as `~/.ssh/id_ed25519.pub`",
    )
}

fn gpg_key(key: &str) -> Result<String, &'static str> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"@._+-!".contains(&byte);
    let is_usable = !key.is_empty() && !key.starts_with('-') && key.len() <= KEY_MAX && key.bytes().all(fits);
    is_usable.then(|| key.to_owned()).ok_or("write the fingerprint of the key, its id or its address")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::*;
    use crate::{ConfigError, Settings};

    fn parse(signing: Value) -> Result<Option<SigningCredential>, ConfigError> {
        let document = json!({
            "network": { "allowedDomains": [], "deniedDomains": [] },
            "filesystem": { "denyRead": [], "allowWrite": [], "denyWrite": [] },
            "credentials": { "ssh": [{ "name": "forge", "host": "forge.test" }], "signing": signing },
        });
        Settings::parse(&document.to_string(), Path::new("x.json"))
            .map(|settings| settings.credentials.signing)
    }

    #[test]
    fn an_entry_is_read() {
        let ssh =
            parse(json!({ "name": "sign", "form": "ssh", "key": "~/.ssh/id_ed25519.pub" })).unwrap().unwrap();
        assert_eq!(ssh.form, SigningForm::Ssh { public_key: "~/.ssh/id_ed25519.pub".to_owned() });
        assert_eq!(ssh.objects, [SignedObject::Commit, SignedObject::Tag]);
        assert!(ssh.ask && ssh.always);
        let gpg = json!({ "name": "s", "form": "gpg", "key": "0xABCD", "for": ["tag"], "ask": false, "always": false });
        let gpg = parse(gpg).unwrap().unwrap();
        assert_eq!(gpg.form, SigningForm::Gpg { key: "0xABCD".to_owned() });
        assert_eq!(gpg.objects, [SignedObject::Tag]);
        assert!(!gpg.ask && !gpg.always);
    }

    #[test]
    fn entries_that_mean_nothing_are_refused() {
        for (key, value) in [
            ("name", json!("forge")),
            ("name", json!("a b")),
            ("form", json!("x509")),
            ("key", json!("id_ed25519.pub")),
            ("key", json!("~/.ssh/id_ed25519")),
            ("key", json!("-oProxyCommand=id.pub")),
            ("for", json!(["blob"])),
            ("namespace", json!("file")),
        ] {
            let mut entry = json!({ "name": "sign", "form": "ssh", "key": "~/.ssh/id_ed25519.pub" });
            entry.as_object_mut().unwrap().insert(key.to_owned(), value);
            assert!(parse(entry.clone()).is_err(), "{entry}");
        }
        for key in ["", "--export", "a b", "a\nb", "a;b"] {
            assert!(parse(json!({ "name": "sign", "form": "gpg", "key": key })).is_err(), "{key}");
        }
    }
}
