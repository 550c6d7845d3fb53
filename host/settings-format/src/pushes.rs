//! Limits on pushes of git over HTTPS and ssh.

use portcullis_decision::pattern::{RefPattern, RequestPattern};
use portcullis_decision::request::Endpoint;

use crate::brokered::host;
use crate::document_value::DocumentValue;
use crate::fault::Fault;

/// The largest push, in KiB, if the settings name none.
const DEFAULT_MAX_KIB: u32 = 32 * 1024;

/// What may be pushed to some repositories of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPushes {
    /// The host.
    pub host: Endpoint,
    /// The port. That of HTTPS stands for the port of ssh as well.
    pub port: u16,
    /// The requests that push to its repositories.
    pub requests: Vec<RequestPattern>,
    /// The references that may change.
    pub refs: Vec<RefPattern>,
    /// Whether a reference may also move to a commit that does not follow the one it has.
    pub force: bool,
    /// Whether references may be deleted.
    pub delete: bool,
    /// Whether files may hold what looks like a credential.
    pub secrets: bool,
    /// The largest push, in KiB.
    pub max_kib: u32,
}

pub(crate) fn pushes(place: &DocumentValue<'_>) -> Result<Vec<HostPushes>, Fault> {
    let one = |item: DocumentValue<'_>| {
        let (host, port) = host(&item.child("host"))?;
        let repositories = item.child("repositories").items();
        let requests = repositories.iter().map(of_push).collect::<Result<Vec<_>, _>>()?;
        let read = |item: &DocumentValue<'_>| {
            RefPattern::parse(item.text().unwrap_or_default()).map_err(|reason| item.fault(reason))
        };
        Ok(HostPushes {
            host,
            port,
            requests: requests.into_iter().flatten().collect(),
            refs: item.child("refs").items().iter().map(read).collect::<Result<_, _>>()?,
            force: item.child("force").flag(false),
            delete: item.child("delete").flag(false),
            secrets: item.child("secrets").flag(false),
            max_kib: item.child("maxKib").number().unwrap_or(DEFAULT_MAX_KIB),
        })
    };
    place.items().into_iter().map(one).collect()
}

/// Returns the requests that push to the repositories of a pattern.
fn of_push(item: &DocumentValue<'_>) -> Result<Vec<RequestPattern>, Fault> {
    requests_of(item, item.text().unwrap_or_default(), "git-receive-pack")
}

/// Returns the requests to a service of git for the repositories of a pattern.
pub(crate) fn requests_of(
    place: &DocumentValue<'_>,
    text: &str,
    service: &str,
) -> Result<Vec<RequestPattern>, Fault> {
    let form = "write the path without slashes around it, such as `me/proj` or `me/*`";
    if text.is_empty() || text.split('/').any(str::is_empty) {
        return Err(place.fault(form));
    }
    let request = |repository: &str| {
        let request = RequestPattern::parse(&format!("POST /{repository}/{service}"));
        request.map_err(|reason| place.fault(format!("{reason}; {form}")))
    };
    // With `*` or `**` at the end, the pattern covers the name with `.git` already.
    match text.ends_with(".git") || text.ends_with('*') {
        true => Ok(vec![request(text)?]),
        false => Ok(vec![request(text)?, request(&format!("{text}.git"))?]),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use portcullis_decision::pattern::{RefName, RequestPath};
    use serde_json::{Value, json};

    use super::*;
    use crate::{ConfigError, Settings};

    fn parse(pushes: Value) -> Result<Settings, ConfigError> {
        let document = json!({
            "network": { "allowedDomains": [], "deniedDomains": [], "pushes": pushes },
            "filesystem": { "denyRead": [], "allowWrite": [], "denyWrite": [] },
        });
        Settings::parse(&document.to_string(), Path::new("x.json"))
    }

    #[test]
    fn an_entry_is_read() {
        let entry = json!({
            "host": "forge.test:8443", "repositories": ["me/proj"], "refs": ["refs/heads/agent/*"], "delete": true,
        });
        let settings = parse(json!([entry, entry])).unwrap();
        let pushes = settings.network.pushes.first().unwrap();
        assert_eq!((pushes.port, pushes.force, pushes.delete, pushes.secrets), (8443, false, true, false));
        assert_eq!(pushes.max_kib, DEFAULT_MAX_KIB);
        let covers = |path: &str| {
            let path = RequestPath::parse(path).unwrap();
            pushes.requests.iter().any(|pattern| pattern.matches("POST", &path))
        };
        assert!(covers("/me/proj/git-receive-pack") && covers("/me/proj.git/git-receive-pack"));
        assert!(!covers("/me/other/git-receive-pack") && !covers("/me/proj/info/refs"));
        let name = RefName::parse("refs/heads/agent/a").unwrap();
        assert!(pushes.refs.iter().any(|pattern| pattern.matches(&name)));
    }

    #[test]
    fn entries_that_mean_nothing_are_refused() {
        let entry = json!({ "host": "forge.test", "repositories": ["me/proj"], "refs": ["refs/heads/a"] });
        for (key, value) in [
            ("host", json!("*.forge.test")),
            ("repositories", json!(["/me/proj"])),
            ("repositories", json!(["me/../proj"])),
            ("repositories", json!([""])),
            ("refs", json!(["main"])),
            ("refs", json!(["refs/heads/a b"])),
            ("maxKib", json!(0)),
            ("branches", json!([])),
        ] {
            let mut changed = entry.clone();
            changed.as_object_mut().unwrap().insert(key.to_owned(), value);
            assert!(parse(json!([changed])).is_err(), "{changed}");
        }
        assert!(parse(json!([entry])).is_ok());
    }
}
