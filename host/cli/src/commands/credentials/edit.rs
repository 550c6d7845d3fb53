//! Writes entries for credentials to the user's settings, and removes them.

use anyhow::{Context as _, bail};
use portcullis_bootstrap::credential_services::{self as services, Service};
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_command_line::args::credentials::{Add, Form};
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::output::Page;
use portcullis_settings::{Draft, GrantFile, Places, Store};
use portcullis_settings_format::Change;
use portcullis_text::escape;
use serde_json::{Map, Value, json};

/// The lists of entries in the settings.
const BROKERED: [&str; 2] = ["credentials", "brokered"];
const SSH: [&str; 2] = ["credentials", "ssh"];
/// The rules for pushes.
const PUSHES: [&str; 2] = ["network", "pushes"];
/// The entry of the key to sign with.
const SIGNING: [&str; 2] = ["credentials", "signing"];

/// Adds an entry.
pub(super) fn add(around: &ProcessEnv, add: &Add) -> exit::Outcome {
    let (places, mut draft) = opened(around)?;
    if known(&draft).iter().any(|(_, entry)| is_called(entry, &add.name)) {
        bail!(
            "there is a credential `{0}` already; remove it first: portcullis credentials remove {0}",
            escape(&add.name)
        );
    }
    let (change, entry) = match &add.sign {
        Some(_) if !draft.value(&way(SIGNING)).is_null() => {
            bail!("there is a key to sign with already; `portcullis credentials list` shows it")
        }
        Some(key) => {
            let entry = signing_entry(add, key);
            (Change::Set(way(SIGNING), entry.clone()), entry)
        }
        None if add.ssh => {
            let entry = ssh_entry(add);
            (Change::Append(way(SSH), entry.clone()), entry)
        }
        None => {
            let entry = entry(around, add)?;
            (Change::Append(way(BROKERED), entry.clone()), entry)
        }
    };
    draft.change(&change).context("adding the entry")?;
    save(&places, &draft)?;
    let mut page = Page::new(around);
    if add.json {
        page.json(&json!({ "added": entry, "file": draft.file() }));
    } else {
        page.line(&format!(
            "added `{}` to `{}`; sessions that run take it over; undo: portcullis credentials remove {0}",
            escape(&add.name),
            escape(&draft.file().to_string_lossy())
        ));
    }
    page.print()?;
    Ok(Exit::Done)
}

/// Removes an entry.
pub(super) fn remove(around: &ProcessEnv, name: &str, as_json: bool) -> exit::Outcome {
    let (places, mut draft) = opened(around)?;
    let found = known(&draft).into_iter().find(|(_, entry)| is_called(entry, name));
    let (list, entry) = found.with_context(|| {
        format!("no credential is called `{}` in `{}`", escape(name), escape(&draft.file().to_string_lossy()))
    })?;
    let change = match list {
        SIGNING => Change::Remove(way(SIGNING)),
        list => Change::Drop(way(list), entry.clone()),
    };
    draft.change(&change).context("removing the entry")?;
    save(&places, &draft)?;
    let kept = rules_without_credential(&draft, &entry);
    let mut page = Page::new(around);
    if as_json {
        page.json(&json!({ "removed": entry, "kept": kept, "file": draft.file() }));
    } else {
        page.line(&format!("removed `{}`; commands can no longer use it", escape(name)));
        if let Some(host) = kept.first().and_then(|rule| rule.get("host")).and_then(Value::as_str) {
            page.line(&format!(
                "`network.pushes` still has {} for `{}`, and pushes there stay limited to it; to lift that, take it \
                 out of `{}`",
                if kept.len() == 1 { "a rule".to_owned() } else { format!("{} rules", kept.len()) },
                escape(host),
                escape(&draft.file().to_string_lossy())
            ));
        }
    }
    page.print()?;
    Ok(Exit::Done)
}

/// Returns the rules for pushes to the host of an entry, if no other credential is for this host.
fn rules_without_credential(draft: &Draft, removed: &Value) -> Vec<Value> {
    let host = |entry: &Value| {
        let host = entry.get("host").and_then(Value::as_str)?;
        Some(host.split(':').next().unwrap_or_default().to_ascii_lowercase())
    };
    let of_host = |entry: &Value| host(entry).is_some() && host(entry) == host(removed);
    if known(draft).iter().any(|(_, entry)| of_host(entry)) {
        return Vec::new();
    }
    let rules = draft.value(&way(PUSHES)).as_array().cloned().unwrap_or_default();
    rules.into_iter().filter(of_host).collect()
}

fn opened(around: &ProcessEnv) -> anyhow::Result<(Places, Draft)> {
    around.ensure_outside()?;
    let places = super::declared::loaded(around)?.places;
    let draft = Draft::open(&places, &GrantFile::Default)?;
    Ok((places, draft))
}

fn save(places: &Places, draft: &Draft) -> anyhow::Result<()> {
    if let Some(obstacle) = draft.obstacles().into_iter().next() {
        bail!("nothing was written: {}", obstacle.text);
    }
    Ok(draft.save(&Store::new(places))?)
}

fn way(keys: [&str; 2]) -> Vec<String> {
    keys.iter().map(|key| (*key).to_owned()).collect()
}

/// Returns all entries, each with its place.
fn known(draft: &Draft) -> Vec<([&'static str; 2], Value)> {
    let listed = [BROKERED, SSH].into_iter().flat_map(|list| {
        let entries = draft.value(&way(list)).as_array().cloned().unwrap_or_default();
        entries.into_iter().map(move |entry| (list, entry))
    });
    let signing = draft.value(&way(SIGNING));
    listed.chain(signing.is_object().then_some((SIGNING, signing))).collect()
}

fn is_called(entry: &Value, name: &str) -> bool {
    entry.get("name").and_then(Value::as_str) == Some(name)
}

fn ssh_entry(add: &Add) -> Value {
    let mut entry = json!({ "name": add.name, "host": add.host });
    if let Some(members) = entry.as_object_mut() {
        let fetch = (!add.fetch.is_empty()).then(|| json!(add.fetch));
        let optional = [("user", add.user.as_ref().map(|user| json!(user))), ("fetch", fetch)];
        members.extend(optional.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
    }
    entry
}

/// Makes the entry of a key to sign with: a path is one of ssh.
fn signing_entry(add: &Add, key: &str) -> Value {
    let form = if key.contains('/') { "ssh" } else { "gpg" };
    json!({ "name": add.name, "form": form, "key": key })
}

/// Makes the entry; a known service provides what is not given.
fn entry(around: &ProcessEnv, add: &Add) -> anyhow::Result<Value> {
    let service = services::named(&add.name);
    let missing = |option: &str| {
        format!(
            "`{option}` is missing: `{}` is none of the known services ({})",
            escape(&add.name),
            services::names()
        )
    };
    let host = add.host.as_deref().or(service.map(|service| service.host));
    let purpose: Vec<&str> = match (add.purpose.is_empty(), service) {
        (true, Some(service)) => service.purpose.to_vec(),
        (true, None) => bail!(missing("--for")),
        (false, _) => add.purpose.iter().map(String::as_str).collect(),
    };
    // A form that is given stands for itself, without the service's user name or header.
    let of_service = service.filter(|_| add.form.is_none());
    let form = match of_service {
        Some(service) => service.form,
        None => add.form.unwrap_or(Form::Bearer).word(),
    };
    let user = add.user.as_deref().or(of_service.and_then(|service| service.user));
    let header = add.header.as_deref().or(of_service.and_then(|service| service.header));
    let variables: Vec<&str> = match (add.variables.is_empty(), service) {
        (true, Some(service)) => service.variables.to_vec(),
        (true, None) | (false, _) => add.variables.iter().map(String::as_str).collect(),
    };
    let is_for_git = add.git || of_service.is_some_and(|service| service.git);
    let mut entry = json!({
        "name": add.name, "source": source(around, add, service)?, "host": host.with_context(|| missing("--host"))?,
        "form": form, "for": purpose,
    });
    if let Some(members) = entry.as_object_mut() {
        let optional = [
            ("user", user.map(|user| json!(user))),
            ("header", header.map(|header| json!(header))),
            ("variables", (!variables.is_empty()).then(|| json!(variables))),
            ("git", is_for_git.then_some(json!(true))),
            ("services", (!add.services.is_empty()).then(|| json!(add.services))),
            ("regions", (!add.regions.is_empty()).then(|| json!(add.regions))),
        ];
        members.extend(optional.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
    }
    Ok(entry)
}

/// Returns the source that is given, or the one in which the credential of the service is found.
fn source(around: &ProcessEnv, add: &Add, service: Option<&Service>) -> anyhow::Result<Map<String, Value>> {
    let words = |text: &String| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let sources = [
        ("env", add.env.as_ref().map(|name| json!(name))),
        ("file", add.file.as_ref().map(|file| json!(file))),
        ("command", add.command.as_ref().map(|command| json!(words(command)))),
        ("pass", add.pass.as_ref().map(|entry| json!(entry))),
        ("secretTool", add.secret_tool.as_ref().map(|attributes| json!(words(attributes)))),
        ("awsProfile", add.aws_profile.as_ref().map(|profile| json!(profile))),
    ];
    let given: Map<String, Value> =
        sources.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect();
    if !given.is_empty() {
        return Ok(given);
    }
    let of_variable =
        service.and_then(|service| service.variable_in(around)).map(|name| ("env", json!(name)));
    let of_command = service.and_then(|service| service.command);
    let of_command = of_command.map(|command| ("command", json!(words(&command.to_owned()))));
    let (key, value) = of_variable.or(of_command).context(
        "it is not said where the credential is: `--env`, `--file`, `--command`, `--pass`, `--secret-tool` or `--aws-profile`",
    )?;
    Ok(Map::from_iter([(key.to_owned(), value)]))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use portcullis_settings_format::Settings;

    use super::*;
    use portcullis_bootstrap::credential_services::SERVICES;

    fn add(name: &str) -> Add {
        Add {
            name: name.to_owned(),
            host: None,
            env: Some("A".to_owned()),
            file: None,
            command: None,
            pass: None,
            secret_tool: None,
            aws_profile: None,
            services: Vec::new(),
            regions: Vec::new(),
            form: None,
            user: None,
            header: None,
            purpose: Vec::new(),
            variables: Vec::new(),
            git: false,
            ssh: false,
            fetch: Vec::new(),
            sign: None,
            json: false,
        }
    }

    #[test]
    fn the_entry_of_each_service_is_valid_and_all_can_be_declared_together() {
        let around = ProcessEnv::read().unwrap();
        let entries: Vec<Value> =
            SERVICES.iter().map(|service| entry(&around, &add(service.name)).unwrap()).collect();
        let document = json!({
            "network": { "allowedDomains": [], "deniedDomains": [] },
            "filesystem": { "denyRead": [], "allowWrite": [], "denyWrite": [] },
            "credentials": { "brokered": entries },
        });
        let settings = Settings::parse(&document.to_string(), Path::new("x.json")).unwrap();
        assert_eq!(settings.credentials.brokered.len(), SERVICES.len());
    }

    #[test]
    fn what_is_given_outdoes_the_service_and_another_name_needs_all() {
        let around = ProcessEnv::read().unwrap();
        let own = Add { host: Some("forge.test".to_owned()), form: Some(Form::Bearer), ..add("gitlab") };
        let own = entry(&around, &own).unwrap();
        assert_eq!(own.get("host"), Some(&json!("forge.test")));
        assert_eq!(own.get("header"), None);
        let error = entry(&around, &add("forge")).unwrap_err().to_string();
        assert!(error.contains("`--for`") && error.contains("github"), "{error}");
        let unknown = Add { purpose: vec!["GET /**".to_owned()], ..add("forge") };
        assert!(entry(&around, &unknown).unwrap_err().to_string().contains("`--host`"));
    }
}
