//! Credentials that the gate puts into requests, and limits on the requests to a host.

use std::collections::BTreeSet;

use portcullis_decision::pattern::{HostName, RequestPattern};
use portcullis_decision::request::Endpoint;

use crate::check;
use crate::document_value::DocumentValue;
use crate::fault::Fault;

/// The port of HTTPS.
const TLS_PORT: u16 = 443;
/// What stands for the placeholder in the text of a variable.
const HOLE: &str = "{}";
/// The longest name of a credential, in bytes.
const NAME_MAX: usize = 64;

/// A credential that commands use without having it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokeredCredential {
    /// Its name.
    pub name: String,
    /// Where it comes from.
    pub source: CredentialSource,
    /// The host that it is sent to.
    pub host: Endpoint,
    /// The port, on which the host speaks TLS.
    pub port: u16,
    /// Its place in a request.
    pub form: CredentialForm,
    /// The requests that it may be put into.
    pub purpose: Vec<RequestPattern>,
    /// Variables of commands that hold its placeholder.
    pub variables: Vec<PlaceholderVariable>,
    /// Whether git inside uses it for this host.
    pub is_for_git: bool,
}

/// Where a credential comes from. It is read outside the sandbox, when it is first needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialSource {
    /// A variable in the environment of the host.
    Variable(String),
    /// A file, absolute or below `~`.
    File(String),
    /// The output of a program with its arguments.
    Command(Vec<String>),
    /// The first line of an entry of `pass`.
    Pass(String),
    /// Attributes and values for `secret-tool lookup`.
    SecretTool(Vec<String>),
}

/// The place of a credential in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialForm {
    /// `Authorization: Bearer`.
    Bearer,
    /// `Authorization: Basic`, as the password.
    Basic {
        /// The user name; `None` for the one that the command sends.
        user: Option<String>,
    },
    /// A header with this name, in lower case.
    Header(String),
}

/// A variable of commands that holds a placeholder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceholderVariable {
    /// The name of the variable.
    pub name: String,
    /// The text before the placeholder.
    pub before: String,
    /// The text after it.
    pub after: String,
}

/// Limits on the requests to a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRequests {
    /// The host.
    pub host: Endpoint,
    /// The port, on which the host speaks TLS.
    pub port: u16,
    /// The requests that may be sent.
    pub allow: Vec<RequestPattern>,
    /// Names of headers that each request must have, in lower case.
    pub headers: Vec<String>,
    /// The largest body, in KiB.
    pub body_max_kib: Option<u32>,
    /// Whether requests may carry no other credential than those of the settings.
    pub own_account_only: bool,
}

pub(crate) fn credentials(place: &DocumentValue<'_>) -> Result<Vec<BrokeredCredential>, Fault> {
    let mut names = BTreeSet::new();
    let mut variables = BTreeSet::new();
    let mut of_git = Vec::new();
    let mut all = Vec::new();
    for item in place.items() {
        let credential = credential(&item)?;
        if !names.insert(credential.name.clone()) {
            return Err(item.child("name").fault("another credential has this name"));
        }
        if let Some(twice) = credential.variables.iter().find(|one| !variables.insert(one.name.clone())) {
            let reason = format!("the variable `{}` already holds a placeholder", twice.name);
            return Err(item.child("variables").fault(reason));
        }
        let at = (credential.host.clone(), credential.port);
        if credential.is_for_git && of_git.contains(&at) {
            return Err(item.child("git").fault("git already uses another credential for this host"));
        }
        of_git.extend(credential.is_for_git.then_some(at));
        all.push(credential);
    }
    Ok(all)
}

fn credential(item: &DocumentValue<'_>) -> Result<BrokeredCredential, Fault> {
    let name = required(item, "name")?;
    is_credential_name(name).map_err(|reason| item.child("name").fault(reason))?;
    let (host, port) = host(&item.child("host"))?;
    let form = form(item)?;
    let git = item.child("git");
    let is_for_git = git.flag(false);
    if is_for_git && !matches!(form, CredentialForm::Basic { .. }) {
        return Err(git.fault("git sends `Authorization: Basic`; set `form` to `basic`"));
    }
    let variables = item.child("variables");
    let variables = variables.items().iter().map(variable).collect::<Result<Vec<_>, _>>()?;
    Ok(BrokeredCredential {
        name: name.to_owned(),
        source: source(&item.child("source"))?,
        host,
        port,
        form,
        purpose: patterns(&item.child("for"))?,
        variables,
        is_for_git,
    })
}

/// Checks that a text can name a credential.
///
/// # Errors
/// When it cannot; the error says what a name looks like.
pub fn is_credential_name(name: &str) -> Result<(), &'static str> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_one =
        !name.is_empty() && name.len() <= NAME_MAX && name.bytes().all(fits) && !name.starts_with('-');
    is_one.then_some(()).ok_or("a name has letters, digits, `-`, `_` and `.`, at most 64 of them")
}

fn source(place: &DocumentValue<'_>) -> Result<CredentialSource, Fault> {
    let mut found = Vec::new();
    if let Some(name) = place.child("env").text() {
        found.push(CredentialSource::Variable(name.to_owned()));
    }
    if let Some(path) = place.child("file").text() {
        if !path.starts_with('/') && !path.starts_with("~/") {
            return Err(place.child("file").fault("write an absolute path, or one that begins with `~/`"));
        }
        found.push(CredentialSource::File(path.to_owned()));
    }
    if let Some(entry) = place.child("pass").text() {
        if entry.is_empty() || entry.starts_with('-') {
            return Err(place.child("pass").fault("write the name of an entry of `pass`"));
        }
        found.push(CredentialSource::Pass(entry.to_owned()));
    }
    let words = |key| place.child(key).node.is_some().then(|| place.child(key).texts());
    if let Some(command) = words("command") {
        if command.first().is_none_or(String::is_empty) {
            return Err(place.child("command").fault("write the program and its arguments"));
        }
        found.push(CredentialSource::Command(command));
    }
    if let Some(attributes) = words("secretTool") {
        let is_option = |word: &String| word.starts_with('-');
        if attributes.is_empty() || attributes.len() % 2 != 0 || attributes.iter().any(is_option) {
            return Err(place.child("secretTool").fault("write attributes and values, in pairs"));
        }
        found.push(CredentialSource::SecretTool(attributes));
    }
    let (Some(source), None) = (found.pop(), found.pop()) else {
        return Err(place.fault("write one of `env`, `file`, `command`, `pass` and `secretTool`"));
    };
    Ok(source)
}

fn form(item: &DocumentValue<'_>) -> Result<CredentialForm, Fault> {
    let (user, header) = (item.child("user"), item.child("header"));
    let form = match item.child("form").text() {
        Some("basic") => CredentialForm::Basic { user: user.text().map(str::to_owned) },
        Some("header") => {
            let name = required(item, "header")?;
            CredentialForm::Header(header_name(name).map_err(|reason| header.fault(reason))?)
        }
        _ => CredentialForm::Bearer,
    };
    if user.node.is_some() && !matches!(form, CredentialForm::Basic { .. }) {
        return Err(user.fault("only the form `basic` has a user name"));
    }
    if user.text().is_some_and(|user| user.contains(':') || user.chars().any(char::is_control)) {
        return Err(user.fault("a user name has no `:` and no control characters"));
    }
    if header.node.is_some() && !matches!(form, CredentialForm::Header(_)) {
        return Err(header.fault("only the form `header` has a header of its own"));
    }
    Ok(form)
}

/// Headers that the gate itself writes, or that are a form of their own.
const NOT_FOR_CREDENTIALS: &[&str] = &[
    "accept-encoding",
    "authorization",
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "proxy-connection",
    "range",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

fn header_name(name: &str) -> Result<String, String> {
    let name = name.to_ascii_lowercase();
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if name.is_empty() || !name.bytes().all(fits) {
        return Err("a header has letters, digits, `-` and `_`".to_owned());
    }
    if NOT_FOR_CREDENTIALS.contains(&name.as_str()) {
        return Err(format!("`{name}` cannot hold it; for `Authorization` there are `bearer` and `basic`"));
    }
    Ok(name)
}

fn variable(item: &DocumentValue<'_>) -> Result<PlaceholderVariable, Fault> {
    let text = item.text().unwrap_or_default();
    let (name, value) = text.split_once('=').unwrap_or((text, HOLE));
    let fits = |byte: u8| byte.is_ascii_graphic() && !b"=\"'`$\\".contains(&byte);
    // npm reads variables whose names have slashes and colons: `npm_config_//registry.npmjs.org/:_authToken`.
    let is_of_npm = name.starts_with("npm_config_//") && name.bytes().all(fits);
    if !is_of_npm {
        check::variable(name, "").map_err(|reason| item.fault(reason))?;
    }
    let Some((before, after)) = value.split_once(HOLE).filter(|(_, after)| !after.contains(HOLE)) else {
        return Err(item.fault("write `NAME`, or `NAME=text` with `{}` once where the placeholder stands"));
    };
    Ok(PlaceholderVariable { name: name.to_owned(), before: before.to_owned(), after: after.to_owned() })
}

pub(crate) fn requests(place: &DocumentValue<'_>) -> Result<Vec<HostRequests>, Fault> {
    let mut known = Vec::new();
    let mut all = Vec::new();
    for item in place.items() {
        let (host, port) = host(&item.child("host"))?;
        if known.contains(&(host.clone(), port)) {
            return Err(item.child("host").fault("this host already has an entry"));
        }
        known.push((host.clone(), port));
        let headers = item.child("headers");
        let name = |text: String| {
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
            let is_one = !text.is_empty() && text.bytes().all(fits);
            is_one
                .then(|| text.to_ascii_lowercase())
                .ok_or_else(|| headers.fault("a header has letters, digits, `-` and `_`"))
        };
        all.push(HostRequests {
            host,
            port,
            allow: patterns(&item.child("allow"))?,
            headers: headers.texts().into_iter().map(name).collect::<Result<_, _>>()?,
            body_max_kib: item.child("maxBodyKib").number(),
            own_account_only: item.child("ownAccountOnly").flag(false),
        });
    }
    Ok(all)
}

pub(crate) fn required<'a>(item: &DocumentValue<'a>, key: &str) -> Result<&'a str, Fault> {
    let place = item.child(key);
    place.text().ok_or_else(|| place.fault("it is missing"))
}

/// Parses `host` or `host:port`, with the port of HTTPS if there is none.
pub(crate) fn host(place: &DocumentValue<'_>) -> Result<(Endpoint, u16), Fault> {
    host_with_port(place, TLS_PORT)
}

/// Parses `host` or `host:port`.
pub(crate) fn host_with_port(place: &DocumentValue<'_>, usual: u16) -> Result<(Endpoint, u16), Fault> {
    let text = place.text().unwrap_or_default();
    let bad = |reason: String| {
        place.fault(format!("{reason}; write one `host` or `host:port`, without scheme or path"))
    };
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => {
            let port = port.parse().ok().filter(|&port| port != 0);
            (name, port.ok_or_else(|| bad("its port is no number from 1 to 65535".to_owned()))?)
        }
        _ => (text, usual),
    };
    Ok((HostName::parse(name).map_err(|error| bad(error.to_string()))?, port))
}

fn patterns(place: &DocumentValue<'_>) -> Result<Vec<RequestPattern>, Fault> {
    let read = |item: DocumentValue<'_>| {
        RequestPattern::parse(item.text().unwrap_or_default()).map_err(|reason| item.fault(reason))
    };
    place.items().into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::*;
    use crate::{ConfigError, Settings};

    fn parse(credentials: Value, requests: Value) -> Result<Settings, ConfigError> {
        let document = json!({
            "network": { "allowedDomains": [], "deniedDomains": [], "requests": requests },
            "filesystem": { "denyRead": [], "allowWrite": [], "denyWrite": [] },
            "credentials": { "brokered": credentials },
        });
        Settings::parse(&document.to_string(), Path::new("x.json"))
    }

    fn with(changes: Value) -> Value {
        let mut entry = json!({
            "name": "forge", "source": { "env": "FORGE" }, "host": "API.forge.test", "form": "bearer",
            "for": ["GET /**"], "variables": ["TOKEN", "URL=https://u:{}@forge.test/"],
        });
        let entry_members = entry.as_object_mut().unwrap();
        for (key, value) in changes.as_object().unwrap() {
            entry_members.insert(key.clone(), value.clone());
        }
        entry
    }

    #[test]
    fn a_credential_is_read() {
        let settings = parse(json!([with(json!({}))]), json!([])).unwrap();
        let credential = settings.credentials.brokered.first().unwrap();
        assert_eq!(credential.host, Endpoint::Domain("api.forge.test".to_owned()));
        assert_eq!((credential.port, &credential.form), (443, &CredentialForm::Bearer));
        assert_eq!(credential.source, CredentialSource::Variable("FORGE".to_owned()));
        let url = credential.variables.last().unwrap();
        assert_eq!((url.before.as_str(), url.after.as_str()), ("https://u:", "@forge.test/"));
    }

    #[test]
    fn entries_that_mean_nothing_are_refused() {
        for changes in [
            json!({ "name": "a b" }),
            json!({ "name": "" }),
            json!({ "host": "*.forge.test" }),
            json!({ "host": "https://forge.test" }),
            json!({ "host": "forge.test:0" }),
            json!({ "source": {} }),
            json!({ "source": { "env": "A", "file": "/a" } }),
            json!({ "source": { "file": "relative" } }),
            json!({ "source": { "command": [] } }),
            json!({ "source": { "secretTool": ["service"] } }),
            json!({ "source": { "pass": "--help" } }),
            json!({ "form": "query" }),
            json!({ "form": "header" }),
            json!({ "form": "header", "header": "Host" }),
            json!({ "form": "header", "header": "Authorization" }),
            json!({ "form": "header", "header": "a b" }),
            json!({ "form": "basic", "user": "a:b" }),
            json!({ "user": "a" }),
            json!({ "header": "x-key" }),
            json!({ "git": true }),
            json!({ "for": ["/**"] }),
            json!({ "variables": ["A-B"] }),
            json!({ "variables": ["A=b"] }),
            json!({ "variables": ["A={}{}"] }),
            json!({ "variables": ["A", "A"] }),
        ] {
            assert!(parse(json!([with(changes.clone())]), json!([])).is_err(), "{changes}");
        }
        assert!(parse(json!([with(json!({})), with(json!({ "variables": [] }))]), json!([])).is_err());
    }

    #[test]
    fn requests_are_read_and_a_host_has_one_entry() {
        let entry =
            json!({ "host": "a.test:8443", "allow": ["GET /**"], "headers": ["X-A"], "maxBodyKib": 4 });
        let settings = parse(json!([]), json!([entry])).unwrap();
        let requests = settings.network.requests.first().unwrap();
        assert_eq!((requests.port, requests.body_max_kib), (8443, Some(4)));
        assert_eq!(requests.headers, ["x-a"]);
        assert!(parse(json!([]), json!([entry, entry])).is_err());
        assert!(parse(json!([]), json!([{ "host": "a.test", "allow": ["get /"] }])).is_err());
    }
}
