//! Hosts that git reaches by the user's own `ssh`.

use std::collections::BTreeSet;

use portcullis_decision::pattern::RequestPattern;
use portcullis_decision::request::Endpoint;

use crate::brokered::{host_with_port, is_credential_name, required};
use crate::document_value::DocumentValue;
use crate::fault::Fault;
use crate::pushes::requests_of;

/// The port of ssh.
const SSH_PORT: u16 = 22;
/// The repositories to fetch from if the settings name none.
const EVERY_REPOSITORY: &str = "**";

/// A host that git reaches by the user's own `ssh`, with keys that commands do not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshCredential {
    /// Its name.
    pub name: String,
    /// The host, as the user's `ssh` knows it.
    pub host: Endpoint,
    /// The port.
    pub port: u16,
    /// The user name there; `None` for the one that the command gives.
    pub user: Option<String>,
    /// The repositories to fetch from, as requests.
    pub fetch: Vec<RequestPattern>,
}

pub(crate) fn ssh(place: &DocumentValue<'_>, others: &[&str]) -> Result<Vec<SshCredential>, Fault> {
    let mut names: BTreeSet<String> = others.iter().map(|name| (*name).to_owned()).collect();
    let mut all: Vec<SshCredential> = Vec::new();
    for item in place.items() {
        let one = credential(&item)?;
        if !names.insert(one.name.clone()) {
            return Err(item.child("name").fault("another credential has this name"));
        }
        if all.iter().any(|known| known.host == one.host && known.port == one.port) {
            return Err(item.child("host").fault("this host already has an entry"));
        }
        all.push(one);
    }
    Ok(all)
}

fn credential(item: &DocumentValue<'_>) -> Result<SshCredential, Fault> {
    let name = required(item, "name")?;
    is_credential_name(name).map_err(|reason| item.child("name").fault(reason))?;
    let (host, port) = host_with_port(&item.child("host"), SSH_PORT)?;
    if host.to_string().starts_with('-') {
        return Err(item.child("host").fault("a host does not begin with `-`"));
    }
    let user = item.child("user");
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if user.text().is_some_and(|user| user.is_empty() || user.starts_with('-') || !user.bytes().all(fits)) {
        return Err(user.fault("a user name has letters, digits, `.`, `_` and `-`"));
    }
    let fetch = item.child("fetch");
    let fetch = match fetch.node.is_some() {
        true => fetch
            .items()
            .iter()
            .map(|item| requests_of(item, item.text().unwrap_or_default(), FETCH))
            .collect(),
        false => requests_of(&fetch, EVERY_REPOSITORY, FETCH).map(|all| vec![all]),
    };
    let fetch = fetch.map(|all: Vec<Vec<RequestPattern>>| all.into_iter().flatten().collect())?;
    Ok(SshCredential { name: name.to_owned(), host, port, user: user.text().map(str::to_owned), fetch })
}

/// The service that git fetches from.
const FETCH: &str = "git-upload-pack";

#[cfg(test)]
mod tests {
    use std::path::Path;

    use portcullis_decision::pattern::RequestPath;
    use serde_json::{Value, json};

    use super::*;
    use crate::{ConfigError, Settings};

    fn parse(ssh: Value) -> Result<Settings, ConfigError> {
        let document = json!({
            "network": { "allowedDomains": [], "deniedDomains": [] },
            "filesystem": { "denyRead": [], "allowWrite": [], "denyWrite": [] },
            "credentials": { "ssh": ssh },
        });
        Settings::parse(&document.to_string(), Path::new("x.json"))
    }

    #[test]
    fn an_entry_is_read() {
        let settings = parse(json!([
            { "name": "forge", "host": "forge.test" },
            { "name": "other", "host": "forge.test:2222", "user": "git", "fetch": ["me/proj"] },
        ]));
        let settings = settings.unwrap();
        let [first, second] = settings.credentials.ssh.as_slice() else { panic!("two entries") };
        assert_eq!((first.port, first.user.as_deref()), (22, None));
        assert_eq!((second.port, second.user.as_deref()), (2222, Some("git")));
        let fetches = |entry: &SshCredential, path: &str| {
            let path = RequestPath::parse(path).unwrap();
            entry.fetch.iter().any(|pattern| pattern.matches("POST", &path))
        };
        assert!(fetches(first, "/any/thing.git/git-upload-pack"));
        assert!(fetches(second, "/me/proj.git/git-upload-pack"));
        assert!(!fetches(second, "/me/other/git-upload-pack"));
    }

    #[test]
    fn entries_that_mean_nothing_are_refused() {
        for (key, value) in [
            ("name", json!("a b")),
            ("host", json!("*.forge.test")),
            ("host", json!("-oProxyCommand=id")),
            ("user", json!("-l")),
            ("user", json!("a;b")),
            ("fetch", json!(["/me/proj"])),
            ("fetch", json!(["me/../proj"])),
            ("key", json!("~/.ssh/id")),
        ] {
            let mut entry = json!({ "name": "forge", "host": "forge.test" });
            entry.as_object_mut().unwrap().insert(key.to_owned(), value);
            assert!(parse(json!([entry])).is_err(), "{entry}");
        }
        let twice = json!([{ "name": "a", "host": "forge.test" }, { "name": "b", "host": "forge.test" }]);
        assert!(parse(twice).is_err());
    }
}
