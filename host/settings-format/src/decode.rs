//! Turns a checked document into [`Settings`].
//!
//! Keys and types are already checked, so a value of the wrong type cannot occur here. Conditions on more than one
//! field are checked here.

use std::path::Path;

use portcullis_decision::pattern::{HostPattern, NetworkPattern};
use portcullis_decision::profile::Limits;

use crate::chain;
use crate::choices::{Elsewhere, UnlistedHosts};
use crate::document_value::DocumentValue;
use crate::entry::{Entry, Origin, PathEntry};
use crate::error::shown;
use crate::fault::Fault;
use crate::foreign_network;
use crate::grant_entry::GrantEntry;
use crate::json::{Member, Node};
use crate::kept_field::KeptField;
use crate::parent_proxy::{ParentProxy, ProxyAddress};
use crate::settings::{
    Ask, Connecting, Credentials, Environment, Escalation, Filesystem, Hold, Ignored, Network, RequiredTier,
    Settings, UnattendedRefusals, Undo,
};
use crate::warning::Warning;
use crate::{brokered, pushes, signing, ssh};

pub(crate) fn settings(
    node: &Node,
    file: &Path,
    pointer: &str,
    kept: Vec<KeptField>,
) -> Result<Settings, Fault> {
    let top = DocumentValue { pointer: pointer.to_owned(), ..DocumentValue::top(node, file) };
    let policies = chain::policies(&top.child("policies"))?;
    let combine = chain::combine(&top.child("combine"), &policies)?;
    Ok(Settings {
        enabled: top.child("enabled").flag(true),
        presets: presets(&top.child("presets")),
        read_only_presets: presets(&top.child("readOnlyPresets")),
        network: network(&top.child("network"))?,
        filesystem: filesystem(&top.child("filesystem"))?,
        credentials: credentials(&top.child("credentials"))?,
        policies,
        combine,
        ask: ask(&top.child("ask")),
        escalation: match top.child("escalation").text() {
            Some("ask") => Escalation::Ask,
            _ => Escalation::Off,
        },
        unattended_refusals: match top.child("unattendedRefusals").text() {
            Some("report") => UnattendedRefusals::Report,
            Some("quiet") => UnattendedRefusals::Quiet,
            _ => UnattendedRefusals::Fail,
        },
        home_mib: top.child("home").child("maxMib").number().map(u64::from),
        undo: undo(&top.child("undo")),
        required_tier: required_tier(&top.child("requiredTier")).unwrap_or_default(),
        limits: limits(&top.child("limits")),
        environment: environment(&top.child("environment"))?,
        lifted: top.child("protections").child("lift").texts(),
        grants: grants(&top)?,
        ignored: ignored(&top.child("ignoreViolations"))?,
        kept,
    })
}

/// Returns the stored answers, and one for each tool that is allowed by its name.
fn grants(top: &DocumentValue<'_>) -> Result<Vec<GrantEntry>, Fault> {
    let mut grants = crate::grant_entry::decode(&top.child("grants"))?;
    let names = top.child("tools").child("allow").items();
    grants.extend(names.iter().filter_map(crate::grant_entry::tool));
    Ok(grants)
}

fn undo(place: &DocumentValue<'_>) -> Undo {
    let number = |name: &str| place.child(name).number().map(u64::from);
    Undo {
        max_file_mib: number("maxFileMib"),
        max_session_mib: number("maxSessionMib"),
        keep_days: number("keepDays"),
    }
}

fn presets(place: &DocumentValue<'_>) -> Vec<Entry<String>> {
    let name = |item: DocumentValue<'_>| {
        let text = item.text().unwrap_or_default();
        item.entry(text.to_owned(), text)
    };
    place.items().into_iter().map(name).collect()
}

pub(crate) fn network(place: &DocumentValue<'_>) -> Result<Network, Fault> {
    let mut network = Network {
        allowed_domains: domains(&place.child("allowedDomains"))?,
        denied_domains: domains(&place.child("deniedDomains"))?,
        denied_domain_reasons: place.child("deniedDomainReasons").text_map(),
        strict_allowlist: place.child("strictAllowlist").flag(false),
        denied_resolved_addresses: addresses(&place.child("deniedResolvedAddresses"))?,
        unix_sockets: paths(&place.child("allowUnixSockets"))?,
        connecting: Connecting {
            names_match: place.child("requireHostMatch").flag(true),
            hidden_names: place.child("hiddenServerNames").text() == Some("allow"),
            opens_ports: place.child("allowLocalBinding").flag(true),
        },
        upload_budget_mib: budget(&place.child("uploadBudgetMib")),
        parent_proxy: match foreign_network::filtering_proxy(place) {
            Some(proxy) => proxy,
            None => parent_proxy(&place.child("parentProxy"))?,
        },
        unlisted_hosts: match place.child("unlistedHosts").text() {
            Some("allow") => UnlistedHosts::Allow,
            Some("allowUnattended") => UnlistedHosts::AllowUnattended,
            _ => UnlistedHosts::Ask,
        },
        closed: None,
        warnings: Vec::new(),
        requests: brokered::requests(&place.child("requests"))?,
        pushes: pushes::pushes(&place.child("pushes"))?,
    };
    reasons_have_entries(&place.child("deniedDomainReasons"), &network)?;
    let unread = domains(&place.child("mitmProxy").child("domains"))?;
    foreign_network::refuse_unread(place, unread, &mut network);
    Ok(network)
}

fn parent_proxy(place: &DocumentValue<'_>) -> Result<ParentProxy, Fault> {
    let address = |key| {
        let place = place.child(key);
        let read = |text| ProxyAddress::parse(text).map_err(|reason| place.fault(reason));
        place.text().map(read).transpose()
    };
    let direct = place.child("noProxy");
    let direct =
        ParentProxy::read_direct(direct.text().unwrap_or_default()).map_err(|reason| direct.fault(reason))?;
    Ok(ParentProxy { http: address("http")?, https: address("https")?, direct })
}

fn budget(place: &DocumentValue<'_>) -> Option<Entry<u32>> {
    place.number().map(|number| place.entry(number, &number.to_string()))
}

fn reasons_have_entries(place: &DocumentValue<'_>, network: &Network) -> Result<(), Fault> {
    let known = |text: &String| network.denied_domains.iter().any(|entry| entry.text == *text);
    match network.denied_domain_reasons.keys().find(|text| !known(text)) {
        None => Ok(()),
        Some(text) => Err(place.child(text).fault("no entry of `deniedDomains` is written like this")),
    }
}

pub(crate) fn domains(place: &DocumentValue<'_>) -> Result<Vec<Entry<NetworkPattern>>, Fault> {
    let read = |item: DocumentValue<'_>| {
        let text = item.text().unwrap_or_default();
        let pattern = NetworkPattern::parse(text).map_err(|error| item.fault(error.to_string()))?;
        Ok(item.entry(pattern, text))
    };
    place.items().into_iter().map(read).collect()
}

fn addresses(place: &DocumentValue<'_>) -> Result<Vec<Entry<HostPattern>>, Fault> {
    let read = |item: DocumentValue<'_>| {
        let text = item.text().unwrap_or_default();
        let pattern = HostPattern::parse(text).map_err(|error| item.fault(error.to_string()))?;
        Ok(item.entry(pattern, text))
    };
    place.items().into_iter().map(read).collect()
}

fn filesystem(place: &DocumentValue<'_>) -> Result<Filesystem, Fault> {
    Ok(Filesystem {
        deny_read: paths(&place.child("denyRead"))?,
        allow_read: paths(&place.child("allowRead"))?,
        allow_write: paths(&place.child("allowWrite"))?,
        deny_write: paths(&place.child("denyWrite"))?,
        elsewhere: match place.child("elsewhere").text() {
            Some("closed") => Elsewhere::Closed,
            Some("programs") => Elsewhere::Programs,
            _ => Elsewhere::Open,
        },
        shared_tmp: shared_tmp(&place.child("tmp")),
    })
}

/// Returns where the value says that `/tmp` is shared.
fn shared_tmp(place: &DocumentValue<'_>) -> Option<Origin> {
    (place.text() == Some("shared")).then(|| place.origin())
}

pub(crate) fn paths(place: &DocumentValue<'_>) -> Result<Vec<Entry<PathEntry>>, Fault> {
    place.items().iter().map(path).collect()
}

fn path(item: &DocumentValue<'_>) -> Result<Entry<PathEntry>, Fault> {
    let (text, literal) = match item.text() {
        Some(text) => (text, false),
        None => (item.child("path").text().ok_or_else(|| item.fault("no path"))?, true),
    };
    Ok(item.entry(PathEntry { text: text.to_owned(), literal }, text))
}

fn credentials(place: &DocumentValue<'_>) -> Result<Credentials, Fault> {
    let mut credentials = Credentials::default();
    for item in place.child("files").items() {
        let path = item.child("path");
        let text = path.text().ok_or_else(|| path.fault("no path"))?;
        crate::check::usable_path(text).map_err(|reason| path.fault(reason))?;
        credentials.files.push(path.entry(PathEntry { text: text.to_owned(), literal: true }, text));
        credentials.warnings.extend(not_masked(&item, text));
    }
    for item in place.child("envVars").items() {
        let name = item.child("name").text().unwrap_or_default();
        credentials.variables.push(name.to_owned());
        credentials.warnings.extend(not_masked(&item, name));
    }
    for pair in place.child("awsPairs").items() {
        let names = ["accessKeyIdVar", "secretAccessKeyVar", "sessionTokenVar"];
        credentials
            .variables
            .extend(names.iter().filter_map(|key| pair.child(key).text()).map(str::to_owned));
    }
    credentials.brokered = brokered::credentials(&place.child("brokered"))?;
    let names: Vec<&str> = credentials.brokered.iter().map(|one| one.name.as_str()).collect();
    credentials.ssh = ssh::ssh(&place.child("ssh"), &names)?;
    let names: Vec<&str> =
        names.into_iter().chain(credentials.ssh.iter().map(|one| one.name.as_str())).collect();
    credentials.signing = signing::signing(&place.child("signing"), &names)?;
    credentials.signing_key = signing::private_key(&place.child("signing"), credentials.signing.as_ref())?;
    for (index, item) in place.child("brokered").items().iter().enumerate() {
        let source = item.child("source");
        let (path, text) = match source.child("awsProfile").text() {
            Some(_) => (source.child("awsProfile"), Some(crate::AWS_CREDENTIALS)),
            None => (source.child("file"), source.child("file").text()),
        };
        let Some(text) = text else { continue };
        crate::check::usable_path(text).map_err(|reason| path.fault(reason))?;
        let entry = path.entry(PathEntry { text: text.to_owned(), literal: true }, text);
        credentials.source_files.push((index, entry));
    }
    Ok(credentials)
}

/// Returns the warning on a secret that is to be masked: commands do not get it at all.
fn not_masked(item: &DocumentValue<'_>, name: &str) -> Option<Warning> {
    let mode = item.child("mode");
    (mode.text() == Some("mask")).then(|| Warning {
        text: format!("`{}` is denied: Portcullis does not put masked values back", shown(name)),
        origin: mode.origin(),
    })
}

fn ignored(place: &DocumentValue<'_>) -> Result<Vec<Ignored>, Fault> {
    let one = |member: &Member| {
        let item = place.child(&member.key);
        let parts = item.texts();
        // Every report contains the empty text.
        if member.key.is_empty() || parts.iter().any(String::is_empty) {
            return Err(item.fault("an empty text would silence every report, write `*` for every command"));
        }
        Ok(Ignored { command: member.key.clone(), parts })
    };
    place.node.map(Node::members).unwrap_or_default().iter().map(one).collect()
}

fn ask(place: &DocumentValue<'_>) -> Ask {
    Ask {
        timeout_ms: place.child("timeoutMs").number(),
        grant_seconds: place.child("grantSeconds").number(),
        every_port: place.child("ports").text() == Some("every"),
        hold: if place.child("hold").text() == Some("accept") { Hold::Accept } else { Hold::Connect },
    }
}

/// Returns the required tier, or `None` if the settings do not say.
pub(crate) fn required_tier(place: &DocumentValue<'_>) -> Option<RequiredTier> {
    match place.text()? {
        "landlock" => Some(RequiredTier::Landlock),
        "namespaces" => Some(RequiredTier::Namespaces),
        _ => Some(RequiredTier::Full),
    }
}

pub(crate) fn limits(place: &DocumentValue<'_>) -> Limits {
    let limit = |key| place.child(key).number();
    Limits {
        wall_ms: limit("wallMs"),
        cpu_ms: limit("cpuMs"),
        memory_mib: limit("memoryMib"),
        processes: limit("processes"),
        open_files: limit("openFiles"),
        file_mib: limit("fileMib"),
        output_kib: limit("outputKib"),
    }
}

fn environment(place: &DocumentValue<'_>) -> Result<Environment, Fault> {
    let set = place.child("set");
    let environment = Environment {
        keep: place.child("keep").texts(),
        drop: place.child("drop").texts(),
        set: set.text_map(),
    };
    match environment.set.keys().find_map(|name| Some((name, crate::check::variable(name, "").err()?))) {
        None => Ok(environment),
        Some((name, reason)) => Err(set.child(name).fault(reason)),
    }
}
