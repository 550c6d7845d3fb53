//! Credentials that the gate puts into requests, and limits on the requests to a host.

use std::collections::BTreeSet;

use portcullis_decision::pattern::{HostName, RequestPattern};
use portcullis_decision::request::Endpoint;

use crate::aws;
use crate::check;
use crate::credential_source::{CredentialSource, PlaceholderPart, PlaceholderVariable};
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

impl BrokeredCredential {
    /// Returns the variables of the host's environment that it comes from.
    #[must_use]
    pub fn source_variables(&self) -> Vec<String> {
        let CredentialSource::Variable(name) = &self.source else { return Vec::new() };
        match self.form {
            CredentialForm::Aws { .. } => aws::aws_variables(name).into(),
            CredentialForm::Bearer | CredentialForm::Basic { .. } | CredentialForm::Header(_) => {
                vec![name.clone()]
            }
        }
    }

    /// Returns true if commands have the same placeholders for both: they are keys of AWS from one source, for several
    /// hosts.
    #[must_use]
    pub fn shares_placeholders(&self, other: &Self) -> bool {
        let is_aws = |one: &Self| matches!(one.form, CredentialForm::Aws { .. });
        is_aws(self) && is_aws(other) && self.source == other.source
    }
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
    /// A signature of AWS, version 4.
    Aws {
        /// The services that it is for, such as `s3`; empty for all.
        services: Vec<String>,
        /// The regions that it is for; empty for all.
        regions: Vec<String>,
    },
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
    let mut of_git = Vec::new();
    let mut all: Vec<BrokeredCredential> = Vec::new();
    for item in place.items() {
        let credential = credential(&item)?;
        if !names.insert(credential.name.clone()) {
            return Err(item.child("name").fault("another credential has this name"));
        }
        if let Some(twice) = variable_twice(&credential, &all) {
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

/// Returns a variable that would hold two placeholders.
fn variable_twice<'a>(
    credential: &'a BrokeredCredential,
    others: &[BrokeredCredential],
) -> Option<&'a PlaceholderVariable> {
    credential.variables.iter().enumerate().find_map(|(index, variable)| {
        let is_other = |known: &&PlaceholderVariable| known.name == variable.name;
        let of_others = others.iter().any(|other| {
            let shared =
                |known: &PlaceholderVariable| credential.shares_placeholders(other) && known == variable;
            other.variables.iter().find(is_other).is_some_and(|known| !shared(known))
        });
        let is_twice = of_others || credential.variables.iter().take(index).any(|known| is_other(&known));
        is_twice.then_some(variable)
    })
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
    let source = source(&item.child("source"), &form)?;
    let variables = variables(&item.child("variables"), &form)?;
    Ok(BrokeredCredential {
        name: name.to_owned(),
        source,
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

fn source(place: &DocumentValue<'_>, form: &CredentialForm) -> Result<CredentialSource, Fault> {
    let is_aws = matches!(form, CredentialForm::Aws { .. });
    let mut found = Vec::new();
    found.extend(aws::profile(&place.child("awsProfile"), is_aws)?);
    if let Some(name) = place.child("env").text() {
        if is_aws {
            aws::is_variable_of_id(name).map_err(|reason| place.child("env").fault(reason))?;
        }
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
        let known = "`env`, `file`, `command`, `pass`, `secretTool` and `awsProfile`";
        return Err(place.fault(format!("write one of {known}")));
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
        Some("aws") => CredentialForm::Aws {
            services: aws::scope_names(&item.child("services"))?,
            regions: aws::scope_names(&item.child("regions"))?,
        },
        _ => CredentialForm::Bearer,
    };
    for key in ["services", "regions"] {
        if item.child(key).node.is_some() && !matches!(form, CredentialForm::Aws { .. }) {
            return Err(item.child(key).fault("only the form `aws` has services and regions"));
        }
    }
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

fn variables(place: &DocumentValue<'_>, form: &CredentialForm) -> Result<Vec<PlaceholderVariable>, Fault> {
    match form {
        CredentialForm::Aws { .. } if place.node.is_none() => Ok(aws::usual_variables()),
        CredentialForm::Aws { .. } => place.items().iter().map(aws::variable).collect(),
        CredentialForm::Bearer | CredentialForm::Basic { .. } | CredentialForm::Header(_) => {
            place.items().iter().map(variable).collect()
        }
    }
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
    Ok(PlaceholderVariable {
        name: name.to_owned(),
        part: PlaceholderPart::First,
        before: before.to_owned(),
        after: after.to_owned(),
    })
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
    let host = HostName::parse(name).map_err(|error| bad(error.to_string()))?;
    let is_localhost =
        |name: &str| name.rsplit('.').next().is_some_and(|last| last.eq_ignore_ascii_case("localhost"));
    if matches!(&host, Endpoint::Domain(name) if is_localhost(name)) {
        let fault = "commands reach `localhost` by its address, so this entry would never apply; write `127.0.0.1` or \
                     `[::1]`";
        return Err(place.fault(fault));
    }
    Ok((host, port))
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
            json!({ "host": "localhost:8443" }),
            json!({ "host": "a.LOCALHOST" }),
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
            json!({ "services": ["s3"] }),
            json!({ "source": { "awsProfile": "default" } }),
            json!({ "form": "aws", "variables": [] }),
            json!({ "form": "aws", "source": { "awsProfile": "a" } }),
            json!({ "form": "aws", "source": { "awsProfile": "a]" }, "variables": [] }),
            json!({ "form": "aws", "source": { "awsProfile": "a" }, "variables": ["A"] }),
            json!({ "form": "aws", "source": { "awsProfile": "a" }, "variables": [], "services": ["S3"] }),
        ] {
            assert!(parse(json!([with(changes.clone())]), json!([])).is_err(), "{changes}");
        }
        assert!(parse(json!([with(json!({})), with(json!({ "variables": [] }))]), json!([])).is_err());
    }

    #[test]
    fn keys_of_aws_have_three_variables_which_entries_of_one_source_share() {
        let entry = |name: &str, host: &str, source: &str| {
            json!({
                "name": name, "source": { "env": source }, "host": host, "form": "aws", "for": ["GET /**"],
                "regions": ["eu-central-1"],
            })
        };
        let first = entry("one", "s3.test", "AWS_ACCESS_KEY_ID");
        let settings =
            parse(json!([first, entry("two", "sts.test", "AWS_ACCESS_KEY_ID")]), json!([])).unwrap();
        let [one, two] = settings.credentials.brokered.as_slice() else { panic!("two entries") };
        let names: Vec<&str> = one.variables.iter().map(|variable| variable.name.as_str()).collect();
        assert_eq!(names, ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"]);
        assert_eq!(one.source_variables(), names);
        assert!(one.shares_placeholders(two));
        let other = entry("two", "sts.test", "WORK_ACCESS_KEY_ID");
        assert!(parse(json!([first, other]), json!([])).is_err(), "another source");
        let mut own = entry("two", "sts.test", "WORK_ACCESS_KEY_ID");
        own["variables"] = json!(["WORK_ID={id}", "WORK_SECRET={secret}"]);
        assert!(parse(json!([first, own]), json!([])).is_ok());
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
