//! Narrows the user's allow lists by a project's own file in the layered layout.
//!
//! Such a file may have allow lists too, but they can only take away: an access is allowed only if both the user and
//! the project allow it. An entry of the project that reaches further has no effect, and the user is warned.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use portcullis_decision::Location;
use portcullis_decision::pattern::{FilePattern, HostPattern, NetworkPattern, PortSet};
use portcullis_decision::request::Endpoint;
use portcullis_decision::rules::HIDDEN_BY_DEFAULT;
use portcullis_decision::verdict::Effect;
use portcullis_settings_format::error::shown;
use portcullis_settings_format::{ConfigError, Entry, Origin, PathEntry, Sites, Warning};

use crate::found::FoundSettings;
use crate::path_rules::Files;
use crate::pattern::{PathContext, Resolved};

/// The user's allow lists, narrowed.
#[derive(Debug)]
pub(crate) struct Narrowed {
    pub(crate) allow_read: Vec<Entry<PathEntry>>,
    pub(crate) allow_write: Vec<Entry<PathEntry>>,
    pub(crate) sockets: Vec<Entry<PathEntry>>,
    pub(crate) domains: Vec<Entry<NetworkPattern>>,
    /// Origins of the entries without effect.
    pub(crate) gone: Vec<Origin>,
    pub(crate) warnings: Vec<Warning>,
}

/// Narrows the user's allow lists by each layer that has such lists.
pub(crate) fn narrowed(found: &FoundSettings, around: &PathContext<'_>) -> Result<Narrowed, ConfigError> {
    let (filesystem, network) = (&found.settings.filesystem, &found.settings.network);
    let mut all = Narrowed {
        allow_read: filesystem.allow_read.clone(),
        allow_write: filesystem.allow_write.clone(),
        sockets: network.unix_sockets.clone(),
        domains: network.allowed_domains.clone(),
        gone: Vec::new(),
        warnings: Vec::new(),
    };
    for layer in &found.layers {
        for vain in &layer.vain {
            all.gone.push(vain.origin.clone());
            all.warnings.push(vain.clone());
        }
        let narrowing = &layer.narrowing;
        // Writable paths are readable as well.
        let readable = all.allow_write.clone();
        if let Some(own) = &narrowing.read {
            all.allow_read = all.paths(&all.allow_read.clone(), &readable, own, around)?;
        }
        if let Some(own) = &narrowing.write {
            all.allow_write = all.paths(&all.allow_write.clone(), &[], own, around)?;
        }
        if let Some(own) = &narrowing.sockets {
            all.sockets = all.same_paths(&all.sockets.clone(), own, around)?;
        }
        if let Some(own) = &narrowing.domains {
            all.domains = all.hosts(&all.domains.clone(), own);
        }
    }
    Ok(all)
}

impl Narrowed {
    /// Returns the overlap of `users` and `own`. Entries of `own` that lie in one of `more` are also valid.
    fn paths(
        &mut self,
        users: &[Entry<PathEntry>],
        more: &[Entry<PathEntry>],
        own: &[Entry<PathEntry>],
        around: &PathContext<'_>,
    ) -> Result<Vec<Entry<PathEntry>>, ConfigError> {
        let (ours, others, theirs) = (opened(users, around)?, opened(more, around)?, opened(own, around)?);
        let mut both = Vec::new();
        for (entry, place) in users.iter().zip(&ours) {
            if theirs.iter().any(|outer| lies_in(place, outer)) {
                both.push(entry.clone());
            } else {
                self.gone.push(entry.origin.clone());
            }
        }
        for (entry, place) in own.iter().zip(&theirs) {
            if !ours.iter().chain(&others).any(|outer| lies_in(place, outer)) {
                self.opens_nothing(&entry.text, &entry.origin);
            } else if !ours.iter().any(|same| lies_in(place, same) && lies_in(same, place)) {
                both.push(entry.clone());
            }
        }
        Ok(both)
    }

    /// Returns the paths in both lists.
    ///
    /// They must be equal: a socket is not a tree, so a path below the user's entry is not in the user's list.
    fn same_paths(
        &mut self,
        users: &[Entry<PathEntry>],
        own: &[Entry<PathEntry>],
        around: &PathContext<'_>,
    ) -> Result<Vec<Entry<PathEntry>>, ConfigError> {
        let (ours, theirs) = (opened(users, around)?, opened(own, around)?);
        let is_same = |one: &Opened, other: &Opened| lies_in(one, other) && lies_in(other, one);
        let mut both = Vec::new();
        for (entry, place) in users.iter().zip(&ours) {
            if theirs.iter().any(|other| is_same(place, other)) {
                both.push(entry.clone());
            } else {
                self.gone.push(entry.origin.clone());
            }
        }
        for (entry, place) in own.iter().zip(&theirs) {
            if !ours.iter().any(|other| is_same(place, other)) {
                self.opens_nothing(&entry.text, &entry.origin);
            }
        }
        Ok(both)
    }

    fn hosts(
        &mut self,
        users: &[Entry<NetworkPattern>],
        own: &[Entry<NetworkPattern>],
    ) -> Vec<Entry<NetworkPattern>> {
        let mut both: Vec<Entry<NetworkPattern>> = Vec::new();
        for user in users {
            let mut holds_whole = false;
            for entry in own {
                let Some(value) = narrowed_to(&user.value, &entry.value) else { continue };
                let is_whole = value == user.value;
                holds_whole |= is_whole;
                let (text, origin) = match is_whole {
                    true => (user.text.clone(), user.origin.clone()),
                    false => (value.to_string(), entry.origin.clone()),
                };
                if !both.iter().any(|known| known.value == value) {
                    both.push(Entry { value, text, origin });
                }
            }
            if !holds_whole {
                self.gone.push(user.origin.clone());
            }
        }
        for entry in own {
            if !users.iter().any(|user| narrowed_to(&user.value, &entry.value).as_ref() == Some(&entry.value))
            {
                self.opens_nothing(&entry.text, &entry.origin);
            }
        }
        both
    }

    fn opens_nothing(&mut self, text: &str, origin: &Origin) {
        let text = format!(
            "`{}` opens nothing that your own settings do not allow: this file can only tighten",
            shown(text)
        );
        self.gone.push(origin.clone());
        self.warnings.push(Warning { text, origin: origin.clone() });
    }

    /// Removes the rules and list items without effect.
    ///
    /// The closed regions stay as the user's full lists define them: with shorter lists, a denial could become a
    /// question.
    pub(crate) fn apply(&self, files: &mut Files, around: &PathContext<'_>) -> Result<(), ConfigError> {
        let is_gone = |origin: &Option<Origin>| origin.as_ref().is_some_and(|at| self.gone.contains(at));
        files.rules.retain(|rule| rule.effect != Effect::Allow || !is_gone(&rule.origin));
        let placed = |entry: &Entry<PathEntry>| -> Result<(FilePattern, Origin), ConfigError> {
            Ok((around.resolve_to_open(entry)?.allowing()?, entry.origin.clone()))
        };
        let patterns = |entries: &[Entry<PathEntry>]| -> Result<Vec<_>, ConfigError> {
            entries.iter().map(placed).collect()
        };
        files.allow_write = unique(patterns(&self.allow_write)?);
        files.allow_read = unique([patterns(&self.allow_read)?, files.allow_write.clone()].concat());
        Ok(())
    }
}

fn unique(patterns: Vec<(FilePattern, Origin)>) -> Vec<(FilePattern, Origin)> {
    let mut once: Vec<(FilePattern, Origin)> = Vec::new();
    for (pattern, origin) in patterns {
        if !once.iter().any(|(known, _)| *known == pattern) {
            once.push((pattern, origin));
        }
    }
    once
}

/// The effect of an entry of an allow list.
struct Opened {
    location: Location,
    /// The directory around it that is hidden from commands by default.
    hidden: Option<PathBuf>,
    glob: Option<String>,
}

fn opened(entries: &[Entry<PathEntry>], around: &PathContext<'_>) -> Result<Vec<Opened>, ConfigError> {
    let hidden = HIDDEN_BY_DEFAULT.map(Path::new).into_iter().chain([around.temp]);
    let one = |entry| {
        let Resolved { base, glob, .. } = around.resolve_to_open(entry)?;
        let location = Location::of_setting(base, around.temp);
        let lies_in = |hidden: &&Path| location.on_machine().is_some_and(|path| path.starts_with(hidden));
        let hidden = hidden.clone().find(lies_in).map(Path::to_owned);
        Ok(Opened { location, hidden, glob })
    };
    entries.iter().map(one).collect()
}

/// Returns true if `outer` is certain to contain all of `inner`; two globs must be equal.
///
/// A directory that is hidden by default does not count as part of the directories around it: only an entry inside it
/// opens it.
fn lies_in(inner: &Opened, outer: &Opened) -> bool {
    match &outer.glob {
        None => inner.location.lies_in(&outer.location) && inner.hidden == outer.hidden,
        Some(_) => inner.location == outer.location && inner.glob == outer.glob,
    }
}

/// Returns the hosts and ports that both the user and a project's file allow, if any.
///
/// An address means more than an allowed host: a rule that names an address opens private networks, and one that names
/// a loopback port opens that port of this machine. So a project may name these only if the user does.
fn narrowed_to(user: &NetworkPattern, own: &NetworkPattern) -> Option<NetworkPattern> {
    let names_address = own.host.is_of_addresses() && !user.host.is_of_addresses();
    let is_of_machine = is_loopback(&user.host) || is_loopback(&own.host);
    let names_port = is_of_machine && user.ports == PortSet::Every && own.ports != PortSet::Every;
    if names_address || names_port { None } else { common(user, own) }
}

/// Returns the hosts and ports that both patterns cover, if any.
pub(crate) fn common(one: &NetworkPattern, other: &NetworkPattern) -> Option<NetworkPattern> {
    let host = if is_within(&one.host, &other.host) {
        one.host.clone()
    } else if is_within(&other.host, &one.host) {
        other.host.clone()
    } else {
        return None;
    };
    let ports = match (&one.ports, &other.ports) {
        (PortSet::Every, ports) | (ports, PortSet::Every) => ports.clone(),
        (PortSet::These(some), PortSet::These(_)) => {
            PortSet::These(some.iter().copied().filter(|port| other.ports.contains(*port)).collect())
        }
    };
    (ports != PortSet::These(Vec::new())).then_some(NetworkPattern { host, ports })
}

fn is_loopback(host: &HostPattern) -> bool {
    let ends: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    host.is_of_addresses() && ends.into_iter().any(|end| host.matches(&Endpoint::Address(end)))
}

fn is_within(inner: &HostPattern, outer: &HostPattern) -> bool {
    match (inner, outer) {
        (_, HostPattern::Any) => true,
        (HostPattern::Name(inner), HostPattern::Name(outer)) => inner == outer,
        (HostPattern::Name(name), HostPattern::Below(top)) => is_below(name, top),
        (HostPattern::Below(inner), HostPattern::Below(outer)) => inner == outer || is_below(inner, outer),
        (HostPattern::Block(inner), HostPattern::Block(outer)) => outer.contains(inner),
        _ => false,
    }
}

fn is_below(name: &str, top: &str) -> bool {
    name.strip_suffix(top).is_some_and(|head| head.ends_with('.'))
}

/// Returns the lists for the configuration of the policy `guard`, with their origins.
pub(crate) fn guard_lists(
    found: &FoundSettings,
    narrowed: &Narrowed,
    allowed: &[(NetworkPattern, Origin)],
    around: &PathContext<'_>,
) -> Result<([(String, serde_json::Value); 2], Sites), ConfigError> {
    let settings = &found.settings;
    let layers = || found.layers.iter();
    let texts = |entries: &[Entry<PathEntry>], wanted: fn(&str) -> bool| -> Vec<(String, Origin)> {
        let kept = entries.iter().filter(|entry| wanted(&entry.text));
        kept.map(|entry| (entry.text.clone(), entry.origin.clone())).collect()
    };
    let mut deny_read = texts(&settings.filesystem.deny_read, is_plain);
    deny_read.extend(layers().flat_map(|layer| texts(&layer.deny_read, is_plain)));
    // Paths and globs over paths are denied by the settings themselves.
    let mut deny_write = texts(&settings.filesystem.deny_write, |text| !text.contains('/'));
    deny_write.extend(layers().flat_map(|layer| texts(&layer.deny_write, |text| !text.contains('/'))));
    deny_write.retain(|(text, _)| ![".", "..", "~"].contains(&text.as_str()));
    let allow_write = places(&narrowed.allow_write, around)?;
    // A path in an allow list is open even inside a directory that `denyRead` closes.
    let mut allow_read = places(&narrowed.allow_read, around)?;
    allow_read.extend(allow_write.iter().cloned());
    let allowed = allowed.iter().map(|(pattern, origin)| (pattern.to_string(), origin.clone())).collect();
    let networks = std::iter::once(&settings.network).chain(layers().map(|layer| &layer.network));
    let denied = networks.flat_map(|network| &network.denied_domains);
    let denied = denied.map(|entry| (entry.value.to_string(), entry.origin.clone())).collect();
    let mut sites = Sites::default();
    let network = serde_json::json!({
        "allowedDomains": listed("/network/allowedDomains", allowed, &mut sites),
        "deniedDomains": listed("/network/deniedDomains", denied, &mut sites),
    });
    let filesystem = serde_json::json!({
        "denyRead": listed("/filesystem/denyRead", deny_read, &mut sites),
        "allowRead": listed("/filesystem/allowRead", allow_read, &mut sites),
        "allowWrite": listed("/filesystem/allowWrite", allow_write, &mut sites),
        "denyWrite": listed("/filesystem/denyWrite", deny_write, &mut sites),
    });
    Ok(([("network".to_owned(), network), ("filesystem".to_owned(), filesystem)], sites))
}

/// Returns the items without their origins, which are added to `sites`.
pub(crate) fn listed<T>(pointer: &str, items: Vec<(T, Origin)>, sites: &mut Sites) -> Vec<T> {
    let (items, origins): (Vec<T>, Vec<Origin>) = items.into_iter().unzip();
    sites.add_list(pointer, origins);
    items
}

fn is_plain(text: &str) -> bool {
    !text.contains(['*', '?', '[', '{'])
}

/// Returns directories with every link resolved. The session's temporary directory keeps the name that policies see.
fn places(
    entries: &[Entry<PathEntry>],
    around: &PathContext<'_>,
) -> Result<Vec<(PathBuf, Origin)>, ConfigError> {
    let mut places = Vec::new();
    for entry in entries {
        let resolved = around.resolve_to_open(entry)?;
        if resolved.glob.is_none() {
            places.push((resolved.base, entry.origin.clone()));
        }
    }
    Ok(places)
}
