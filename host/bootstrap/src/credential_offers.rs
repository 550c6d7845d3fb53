//! Proposes entries of the user's settings for credentials that commands are seen to need, and writes them.

use std::path::Path;

use anyhow::{Context as _, bail};
use portcullis_decision::request::Endpoint;
use portcullis_session::{
    Basis, CredentialNeed, CredentialOffer, CredentialOffers, CredentialProposal, OfferedUse,
};
use portcullis_settings::{Draft, GrantFile, Resolved, Store};
use portcullis_settings_format::Change;
use serde_json::{Value, json};

use crate::credential_services::{self, Service};
use crate::git_config;
use crate::git_remote::{self, Address, Transport};
use crate::loaded_settings::{self, LoadedSettings, Wanted};
use crate::process_env::ProcessEnv;

/// The references that a push may move.
const REFS: &str = "refs/heads/agent/**";

/// The offers of a session.
#[derive(Debug)]
pub(crate) struct SettingsOffers {
    around: ProcessEnv,
    wanted: Wanted,
    /// Loads the policies of settings.
    basis: MakeBasis,
}

/// Returns settings with their policies.
type MakeBasis = fn(&ProcessEnv, &Wanted, Resolved) -> anyhow::Result<Basis>;

impl SettingsOffers {
    pub(crate) fn new(around: &ProcessEnv, wanted: &Wanted, basis: MakeBasis) -> Self {
        Self { around: around.clone(), wanted: wanted.clone(), basis }
    }

    /// Writes the entries, and returns the settings with them.
    fn write(&self, proposal: &CredentialProposal) -> anyhow::Result<LoadedSettings> {
        let places = loaded_settings::load(&self.around, &self.wanted)?.places;
        let mut draft = Draft::open(&places, &GrantFile::Default)?;
        for (list, entry) in &proposal.entries {
            draft.change(&Change::Append(list.clone(), entry.clone())).context("adding the entry")?;
        }
        if let Some(obstacle) = draft.obstacles().into_iter().next() {
            bail!("{}", obstacle.text);
        }
        draft.save(&Store::new(&places))?;
        loaded_settings::load(&self.around, &self.wanted)
    }
}

impl CredentialOffers for SettingsOffers {
    fn propose(&self, need: &CredentialNeed) -> Option<CredentialProposal> {
        // Settings with a mistake have a notice of their own.
        let resolved = loaded_settings::load(&self.around, &self.wanted).ok()?.resolved;
        let proposal = match need {
            CredentialNeed::Push { directory, remote } => {
                let address = git_remote::push_address(directory, remote.as_deref())?;
                match address.transport {
                    Transport::Ssh => by_ssh(&address, &resolved),
                    Transport::Https => by_https(&address, &resolved, &self.around),
                }
            }
            CredentialNeed::Publish { directory } => {
                let holder = git_remote::holder_of(directory, "package.json")?;
                let package = git_config::small_text(&holder.join("package.json"))?;
                let package: Value = serde_json::from_str(&package).ok()?;
                if names_registry(&holder, &package)
                    || self.around.variables.iter().any(|(name, _)| is_of_registry(name))
                {
                    return None;
                }
                publishing(package.get("name")?.as_str()?, &self.around)
            }
            CredentialNeed::Forge => reading("github", "gh", &self.around),
        }?;
        let is_free = !names(&resolved).any(|name| name == proposal.name)
            && (proposal.offer.usage == OfferedUse::PushBySsh
                || !has_credential(&resolved, &proposal.offer.host));
        is_free.then_some(proposal)
    }

    fn accept(&self, proposal: &CredentialProposal) -> Result<Basis, String> {
        let written = self.write(proposal);
        let basis = written.and_then(|loaded| (self.basis)(&self.around, &self.wanted, loaded.resolved));
        basis.map_err(|error| format!("{error:#}"))
    }

    fn target(&self) -> String {
        let places =
            loaded_settings::places(&self.around, &self.wanted.project, self.wanted.settings.as_deref());
        let draft = places.ok().and_then(|places| Draft::open(&places, &GrantFile::Default).ok());
        let name = draft.and_then(|draft| Some(draft.file().file_name()?.to_string_lossy().into_owned()));
        name.unwrap_or_else(|| "default.json".to_owned())
    }
}

/// Returns true if a project names the registry at which it publishes. Only npm's own is known here.
fn names_registry(directory: &Path, package: &Value) -> bool {
    let settings = git_config::small_text(&directory.join(".npmrc")).unwrap_or_default();
    let publishing = package.get("publishConfig").and_then(Value::as_object);
    let is_registry = |name: &str| name == "registry" || name.starts_with('@') && name.ends_with(":registry");
    let key = |line: &str| line.split(['=', '[']).next().unwrap_or_default().trim().to_owned();
    publishing.is_some_and(|settings| settings.keys().any(|name| is_registry(name)))
        || settings.lines().any(|line| is_registry(&key(line)))
}

/// Returns true for a variable that names the registry of npm, or the file that names it. Npm takes these names in any
/// case of their letters.
fn is_of_registry(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let setting = name.strip_prefix("npm_config_");
    setting.is_some_and(|setting| setting.ends_with("registry") || setting.ends_with("userconfig"))
}

fn names(resolved: &Resolved) -> impl Iterator<Item = &str> {
    let brokered = resolved.brokered.iter().map(|one| one.name.as_str());
    let ssh = resolved.ssh.iter().map(|one| one.name.as_str());
    brokered.chain(ssh).chain(resolved.signing.iter().map(|one| one.name.as_str()))
}

fn is_at(host: &Endpoint, name: &str) -> bool {
    matches!(host, Endpoint::Domain(domain) if domain == name)
}

fn has_credential(resolved: &Resolved, host: &str) -> bool {
    resolved.brokered.iter().any(|one| is_at(&one.host, host))
}

fn list(names: [&str; 2]) -> Vec<String> {
    names.map(str::to_owned).into()
}

/// Returns the entry for pushes to a repository, unless the settings have some for its host.
fn pushes(address: &Address, host: &str, resolved: &Resolved) -> Option<(Vec<String>, Value)> {
    let has_some = resolved.pushes.iter().any(|one| is_at(&one.host, &address.host));
    let entry = json!({ "host": host, "repositories": [address.path], "refs": [REFS] });
    (!has_some).then(|| (list(["network", "pushes"]), entry))
}

fn by_ssh(address: &Address, resolved: &Resolved) -> Option<CredentialProposal> {
    let Address { user, host, port, path, .. } = address;
    let place = match port {
        Some(port) if *port != 22 => format!("{host}:{port}"),
        _ => host.clone(),
    };
    if resolved.ssh.iter().any(|one| one.host.with_port(one.port) == format!("{host}:{}", port.unwrap_or(22)))
    {
        return None;
    }
    let name = format!("{host}-ssh");
    let mut entry = json!({ "name": name, "host": place, "fetch": [path] });
    if let (Some(entry), Some(user)) = (entry.as_object_mut(), user) {
        entry.insert("user".to_owned(), json!(user));
    }
    let mut entries = vec![(list(["credentials", "ssh"]), entry)];
    entries.extend(pushes(address, &place, resolved));
    let adds = format!("git may use your own ssh for {path} at {place}, and push to its branches agent/**");
    let offer = CredentialOffer {
        tool: "git",
        usage: OfferedUse::PushBySsh,
        host: place,
        object: Some(path.clone()),
        adds,
    };
    Some(CredentialProposal { offer, name, entries })
}

fn by_https(address: &Address, resolved: &Resolved, around: &ProcessEnv) -> Option<CredentialProposal> {
    let Address { host, port: None, path, .. } = address else { return None };
    let service = credential_services::SERVICES.iter().find(|one| one.git && one.host == host)?;
    let purpose: Vec<String> = [path.clone(), format!("{path}.git")]
        .iter()
        .flat_map(|path| {
            [
                format!("GET,HEAD /{path}/info/refs"),
                format!("POST /{path}/git-upload-pack"),
                format!("POST /{path}/git-receive-pack"),
            ]
        })
        .collect();
    let mut entries = vec![(list(["credentials", "brokered"]), entry(service, around, &purpose)?)];
    entries.extend(pushes(address, host, resolved));
    let adds = format!("git may use your credential for {path} at {host}, and push to its branches agent/**");
    let offer = CredentialOffer {
        tool: "git",
        usage: OfferedUse::PushByHttps,
        host: host.clone(),
        object: Some(path.clone()),
        adds,
    };
    Some(CredentialProposal { offer, name: service.name.to_owned(), entries })
}

fn publishing(package: &str, around: &ProcessEnv) -> Option<CredentialProposal> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let is_plain = |name: &str| !name.is_empty() && !name.starts_with(['.', '-']) && name.bytes().all(fits);
    let path = match package.strip_prefix('@').map(|scoped| scoped.split_once('/')) {
        None => is_plain(package).then(|| package.to_owned())?,
        Some(parts) => {
            let (scope, name) = parts.filter(|(scope, name)| is_plain(scope) && is_plain(name))?;
            format!("@{scope}%2F{name}")
        }
    };
    let service = credential_services::named("npm")?;
    let mut purpose: Vec<String> = service.purpose.iter().map(|one| (*one).to_owned()).collect();
    purpose.push(format!("PUT /{path}"));
    let entries = vec![(list(["credentials", "brokered"]), entry(service, around, &purpose)?)];
    let offer = CredentialOffer {
        tool: "npm",
        usage: OfferedUse::Publish,
        host: service.host.to_owned(),
        object: Some(package.to_owned()),
        adds: format!("npm may use your credential at {}, and publish {package}", service.host),
    };
    Some(CredentialProposal { offer, name: service.name.to_owned(), entries })
}

fn reading(service: &str, tool: &'static str, around: &ProcessEnv) -> Option<CredentialProposal> {
    let service = credential_services::named(service)?;
    let purpose: Vec<String> = service.purpose.iter().map(|one| (*one).to_owned()).collect();
    let entries = vec![(list(["credentials", "brokered"]), entry(service, around, &purpose)?)];
    let offer = CredentialOffer {
        tool,
        usage: OfferedUse::Read,
        host: service.host.to_owned(),
        object: None,
        adds: format!("commands may read at {} with your credential", service.host),
    };
    Some(CredentialProposal { offer, name: service.name.to_owned(), entries })
}

/// Returns the entry of a service, if the user is seen to have the credential.
fn entry(service: &Service, around: &ProcessEnv, purpose: &[String]) -> Option<Value> {
    let source = service.source_in(around)?;
    let mut entry = json!({
        "name": service.name, "source": source, "host": service.host, "form": service.form, "for": purpose,
    });
    let members = entry.as_object_mut()?;
    let optional = [
        ("user", service.user.map(|user| json!(user))),
        ("header", service.header.map(|header| json!(header))),
        ("variables", (!service.variables.is_empty()).then(|| json!(service.variables))),
        ("git", service.git.then_some(json!(true))),
    ];
    members.extend(optional.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
    Some(entry)
}

#[cfg(test)]
mod tests {

    use super::*;

    /// A user with a token of GitHub in a variable, and a token of npm.
    fn offers(directory: &Path, variables: &[(&str, &str)]) -> SettingsOffers {
        let project = directory.join("project");
        std::fs::create_dir_all(project.join(".git")).unwrap();
        let around = ProcessEnv {
            cwd: project.clone(),
            home: directory.to_owned(),
            account_home: None,
            agent_directory: directory.join(".pi/agent"),
            state: directory.join("state"),
            cache: directory.join("cache"),
            settings: directory.join(".config"),
            variables: variables
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            ..ProcessEnv::read().unwrap()
        };
        let sandbox = directory.join(".pi/agent/sandbox");
        std::fs::create_dir_all(&sandbox).unwrap();
        let settings = json!({
            "network": { "allowedDomains": [], "deniedDomains": [] },
            "filesystem": { "denyRead": ["~"], "allowRead": ["."], "allowWrite": ["."], "denyWrite": [] },
        });
        std::fs::write(sandbox.join("default.json"), settings.to_string()).unwrap();
        SettingsOffers::new(&around, &Wanted::judging(project, None), |_, _, _| anyhow::bail!("no policies"))
    }

    fn push(directory: &Path, remote: &str) -> CredentialNeed {
        CredentialNeed::Push { directory: directory.join("project"), remote: Some(remote.to_owned()) }
    }

    #[test]
    fn each_need_is_proposed_once_and_its_entries_are_valid() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path().canonicalize().unwrap();
        let offers = offers(&directory, &[("GITHUB_TOKEN", "ghp_secret"), ("NPM_TOKEN", "npm_secret")]);
        std::fs::write(directory.join("project/package.json"), r#"{ "name": "left-pad" }"#).unwrap();
        let needs = [
            push(&directory, "https://github.com/me/proj.git"),
            push(&directory, "git@forge.test:me/proj.git"),
            CredentialNeed::Publish { directory: directory.join("project") },
            CredentialNeed::Forge,
        ];
        for need in &needs {
            let proposal = offers.propose(need).unwrap();
            assert!(!format!("{proposal:?}").contains("_secret"), "{proposal:?}");
            let written = offers.write(&proposal).unwrap();
            assert!(names(&written.resolved).any(|name| name == proposal.name), "{proposal:?}");
            assert_eq!(offers.propose(need), None, "{proposal:?}");
        }
        let written = std::fs::read_to_string(directory.join(".pi/agent/sandbox/default.json")).unwrap();
        assert!(written.contains("PUT /left-pad") && written.contains(REFS), "{written}");
        assert!(!written.contains("_secret"), "{written}");
        assert!(!directory.join("project/.pi").exists());
    }

    #[test]
    fn nothing_is_proposed_for_another_registry() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path().canonicalize().unwrap();
        let offers = offers(&directory, &[("NPM_TOKEN", "npm_secret")]);
        let need = CredentialNeed::Publish { directory: directory.join("project") };
        let write =
            |name: &str, text: &str| std::fs::write(directory.join("project").join(name), text).unwrap();
        write("package.json", r#"{ "name": "left-pad" }"#);
        assert!(offers.propose(&need).is_some(), "control");
        write(".npmrc", "loglevel=warn\nregistry = https://registry.example.com\n");
        assert_eq!(offers.propose(&need), None);
        write(".npmrc", "loglevel=warn\n@me:registry=https://registry.example.com\n");
        assert_eq!(offers.propose(&need), None);
        write(".npmrc", "loglevel=warn\n");
        for key in ["registry", "@me:registry"] {
            let publishing = json!({ key: "https://r.example.com" });
            write("package.json", &json!({ "name": "left-pad", "publishConfig": publishing }).to_string());
            assert_eq!(offers.propose(&need), None, "{key}");
        }
    }

    #[test]
    fn nothing_is_proposed_if_a_variable_names_another_registry() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path().canonicalize().unwrap();
        let need = CredentialNeed::Publish { directory: directory.join("project") };
        let proposed = |name: &str| {
            let offers = offers(&directory, &[("NPM_TOKEN", "npm_secret"), (name, "https://r.example.com")]);
            std::fs::write(directory.join("project/package.json"), r#"{ "name": "left-pad" }"#).unwrap();
            offers.propose(&need).is_some()
        };
        assert!(proposed("npm_config_loglevel"), "control");
        for name in
            ["npm_config_registry", "NPM_CONFIG_REGISTRY", "npm_config_@me:registry", "npm_config_userconfig"]
        {
            assert!(!proposed(name), "{name}");
        }
    }

    #[test]
    fn a_package_with_a_scope_is_proposed() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path().canonicalize().unwrap();
        let offers = offers(&directory, &[("NPM_TOKEN", "npm_secret")]);
        let need = CredentialNeed::Publish { directory: directory.join("project") };
        let propose = |name: &str| {
            let package = json!({ "name": name }).to_string();
            std::fs::write(directory.join("project/package.json"), package).unwrap();
            offers.propose(&need)
        };
        for name in
            ["@me", "@/x", "@me/", "@me/a/b", "@me/..", "@../x", "@me/%2e", "@me/x y", "@me/\u{202e}x", "a/b"]
        {
            assert_eq!(propose(name), None, "{name}");
        }
        let proposal = propose("@me/left-pad").unwrap();
        assert_eq!(proposal.offer.object.as_deref(), Some("@me/left-pad"));
        offers.write(&proposal).unwrap();
        let written = std::fs::read_to_string(directory.join(".pi/agent/sandbox/default.json")).unwrap();
        assert!(written.contains("PUT /@me%2Fleft-pad"), "{written}");
    }

    #[test]
    fn without_a_credential_nothing_is_proposed() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path().canonicalize().unwrap();
        let offers = offers(&directory, &[]);
        std::fs::write(directory.join("project/package.json"), r#"{ "name": "@me/left-pad" }"#).unwrap();
        for need in [
            push(&directory, "https://github.com/me/proj.git"),
            push(&directory, "https://forge.test/me/proj.git"),
            push(&directory, "/srv/repo.git"),
            push(&directory, "origin"),
            CredentialNeed::Publish { directory: directory.join("project") },
            CredentialNeed::Forge,
        ] {
            assert_eq!(offers.propose(&need), None, "{need:?}");
        }
    }
}
