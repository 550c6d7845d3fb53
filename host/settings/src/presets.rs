//! Presets: named sets of hosts, with the reason for each, that settings and answers allow at once.
//!
//! Portcullis brings some along; the user can add others as `presets/NAME.preset` in the directory of the settings. A
//! preset only allows, so that one which cannot be used is left out, with a warning, and the rest holds.

mod read;

use std::path::{Path, PathBuf};

use portcullis_decision::pattern::{HostPattern, NetworkPattern, PortSet};
use portcullis_decision::profile::BudgetRule;
use portcullis_decision::request::Endpoint;
use portcullis_decision::verdict::Effect;
use portcullis_settings_format::error::shown;
use portcullis_settings_format::{Entry, HostRequests, Warning};

use crate::disk::Disk;
use crate::found::FoundSettings;
use crate::places::{Places, TeamSettings};
use crate::settings_text;

pub use read::{PresetError, PresetHost, PresetLine};

/// The presets that Portcullis brings along, as text.
const SHIPPED: [(&str, &str); 13] = [
    ("npm", include_str!("../data/presets/npm.preset")),
    ("pypi", include_str!("../data/presets/pypi.preset")),
    ("cargo", include_str!("../data/presets/cargo.preset")),
    ("go", include_str!("../data/presets/go.preset")),
    ("maven-gradle", include_str!("../data/presets/maven-gradle.preset")),
    ("rubygems", include_str!("../data/presets/rubygems.preset")),
    ("composer", include_str!("../data/presets/composer.preset")),
    ("debian", include_str!("../data/presets/debian.preset")),
    ("terraform", include_str!("../data/presets/terraform.preset")),
    ("github", include_str!("../data/presets/github.preset")),
    ("gitlab", include_str!("../data/presets/gitlab.preset")),
    ("docker-hub", include_str!("../data/presets/docker-hub.preset")),
    ("registries", include_str!("../data/presets/registries.preset")),
];

/// Ports of ssh and of HTTP without TLS, on which the gate reads no requests.
const WITHOUT_TLS: [u16; 2] = [22, 80];
/// The largest body of a request that reads, in KiB. The largest ones are of `git fetch`, which lists commits.
const READ_KIB: u32 = 4096;

/// The beginning of the ids of rules that presets make.
pub(crate) const PRESET_RULE: &str = "preset.";

/// A preset, with those that it includes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preset {
    /// Its name.
    pub name: String,
    /// A description for use in a sentence, such as "npm's package registry".
    pub title: String,
    /// The file, if it is the user's own.
    pub file: Option<PathBuf>,
    /// The presets that it includes.
    pub includes: Vec<PresetLine>,
    /// The hosts, each with how much may be sent there.
    pub hosts: Vec<PresetHost>,
    /// The caches of the tools that use these hosts.
    pub caches: Vec<PresetLine>,
    /// The requests to its own hosts that only read.
    pub reads: Vec<PresetLine>,
}

/// Returns true for text that can be the name of a preset.
#[must_use]
pub fn is_preset_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.len() <= 40 && text.bytes().all(plain)
}

/// Returns the names of the presets that Portcullis brings along.
pub fn shipped_presets() -> impl Iterator<Item = &'static str> {
    SHIPPED.iter().map(|(name, _)| *name)
}

/// Returns a preset, or `None` if there is none of this name. One of the user's own takes the place of a shipped one.
///
/// # Errors
/// When its file, or that of one it includes, cannot be used.
pub fn preset(name: &str, places: &Places, disk: &dyn Disk) -> Result<Option<Preset>, PresetError> {
    Catalogue { own: Some((places.presets_directory(), disk)), team: places.team.as_ref() }
        .preset(name, Depth::Top)
}

/// Returns the shipped presets that hold this host and port, single ones before groups.
#[must_use]
pub fn shipped_presets_with(is_meant: impl Fn(&NetworkPattern) -> bool) -> Vec<Preset> {
    let catalogue = Catalogue { own: None, team: None };
    let all = shipped_presets().filter_map(|name| catalogue.preset(name, Depth::Top).ok().flatten());
    all.filter(|preset| preset.hosts.iter().any(|host| is_meant(&host.pattern))).collect()
}

/// Returns the words that `portcullis allow` takes for a connection: the shipped preset that holds its place, as with npm
/// several hosts belong together, and the place.
#[must_use]
pub fn allow_connection(target: &Endpoint, port: u16) -> String {
    let place = target.with_port(port);
    let presets = shipped_presets_with(|host| host.matches(target, port));
    match presets.first().filter(|preset| preset.includes.is_empty()) {
        Some(preset) => format!("{} (or only {place})", preset.name),
        None => place,
    }
}

/// Whether a preset may include others: one level is enough, and there are no circles.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Top,
    Included,
}

struct Catalogue<'a> {
    /// The directory of the user's own presets.
    own: Option<(PathBuf, &'a dyn Disk)>,
    /// The bundle of a team. Its presets take no other's place: settings that name a preset must not allow more.
    team: Option<&'a TeamSettings>,
}

impl Catalogue<'_> {
    fn preset(&self, name: &str, depth: Depth) -> Result<Option<Preset>, PresetError> {
        if !is_preset_name(name) {
            return Ok(None);
        }
        let shipped = SHIPPED.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
        let own = self.own(name)?;
        let of_team = self.team.and_then(|team| Some((&team.file, team.presets.get(name)?)));
        let (text, file) = match (&own, shipped, of_team) {
            (Some((file, text)), ..) => (text.as_str(), Some(file.clone())),
            (None, Some(text), _) => (text, None),
            (None, None, Some((file, text))) => (text.as_str(), Some(file.clone())),
            (None, None, None) => return Ok(None),
        };
        let shown = file.clone().unwrap_or_else(|| PathBuf::from(format!("<built in>/{name}.preset")));
        let lines = read::lines(text, &shown)?;
        let mut preset = Preset {
            name: name.to_owned(),
            title: lines.title,
            file,
            includes: Vec::new(),
            hosts: lines.hosts,
            caches: lines.caches,
            reads: lines.reads,
        };
        for (line, included) in lines.includes {
            let bad = |why: &str| PresetError::Line { file: shown.clone(), line, why: why.to_owned() };
            if depth == Depth::Included {
                return Err(bad("an included preset includes no others"));
            }
            let inner = self.preset(&included.value, Depth::Included)?;
            let inner = inner.ok_or_else(|| bad("there is no preset of this name"))?;
            preset.hosts.extend(inner.hosts);
            preset.caches.extend(inner.caches);
            preset.includes.push(included);
        }
        Ok(Some(preset))
    }

    fn own(&self, name: &str) -> Result<Option<(PathBuf, String)>, PresetError> {
        let Some((directory, disk)) = &self.own else { return Ok(None) };
        let file = file_of(directory, name);
        match settings_text::read(&file, *disk) {
            Ok(text) => Ok(text.map(|text| (file, text))),
            Err(source) => Err(PresetError::Unread { file, source: Box::new(source) }),
        }
    }
}

fn file_of(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.preset"))
}

/// Checks the text of a team's preset.
///
/// # Errors
/// When it cannot be used.
pub fn check_preset(name: &str, text: &str) -> Result<(), PresetError> {
    let file = PathBuf::from(format!("presets/{name}.preset"));
    let presets = [(name.to_owned(), text.to_owned())].into();
    let team = TeamSettings { file: file.clone(), presets, ..TeamSettings::default() };
    let found = Catalogue { own: None, team: Some(&team) }.preset(name, Depth::Top)?;
    let why = "its name has other characters than lower-case letters, digits and `-`";
    match found {
        Some(_) => Ok(()),
        None => Err(PresetError::Line { file, line: 1, why: why.to_owned() }),
    }
}

/// Adds the hosts of the presets that the settings name to the allowed hosts, and limits the requests to those of
/// presets that are read-only.
pub(crate) fn apply(found: &mut FoundSettings, places: &Places, disk: &dyn Disk) {
    let directory = places.presets_directory();
    let catalogue = Catalogue { own: Some((directory.clone(), disk)), team: places.team.as_ref() };
    let allowed = found.settings.presets.clone().into_iter().map(|entry| (entry, Use::Allowed));
    let read_only = found.settings.read_only_presets.clone().into_iter().map(|entry| (entry, Use::ReadOnly));
    let mut limited = Vec::new();
    for (entry, meant) in allowed.chain(read_only) {
        if is_preset_name(&entry.value) {
            found.watched.push(file_of(&directory, &entry.value));
        }
        let text = match catalogue.preset(&entry.value, Depth::Top) {
            Ok(Some(preset)) if meant == Use::Allowed => {
                allow(found, &preset, &entry);
                continue;
            }
            Ok(Some(preset)) if preset.hosts.iter().any(|host| !host.reads.is_empty()) => {
                limit(&mut limited, &preset);
                continue;
            }
            Ok(Some(preset)) => {
                format!("the preset `{}` has no `reads`, so its hosts get all requests", shown(&preset.name))
            }
            Ok(None) => format!(
                "no preset is called `{}`; `portcullis presets` lists them, and one of your own is a file in `{}`",
                shown(&entry.value),
                shown(&directory.to_string_lossy())
            ),
            Err(error) if meant == Use::Allowed => {
                format!("the preset `{}` allows nothing: {error}", shown(&entry.value))
            }
            Err(error) => format!("the preset `{}` limits nothing: {error}", shown(&entry.value)),
        };
        found.warnings.push(Warning { text, origin: entry.origin.clone() });
    }
    let requests = &mut found.settings.network.requests;
    limited.retain(|limits| !requests.iter().any(|own| own.host == limits.host && own.port == limits.port));
    requests.extend(limited);
}

/// How the settings use a preset.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Allowed,
    ReadOnly,
}

/// Adds the limits on requests to the hosts of a preset that speak TLS.
fn limit(limited: &mut Vec<HostRequests>, preset: &Preset) {
    for host in preset.hosts.iter().filter(|host| !host.reads.is_empty()) {
        let (HostPattern::Name(name), PortSet::These(ports)) = (&host.pattern.host, &host.pattern.ports)
        else {
            continue;
        };
        let endpoint = Endpoint::Domain(name.clone());
        for &port in ports.iter().filter(|port| !WITHOUT_TLS.contains(port)) {
            let is_known = |known: &&mut HostRequests| known.host == endpoint && known.port == port;
            match limited.iter_mut().find(is_known) {
                Some(known) => known.allow.extend(host.reads.iter().cloned()),
                None => limited.push(HostRequests {
                    host: endpoint.clone(),
                    port,
                    allow: host.reads.clone(),
                    headers: Vec::new(),
                    body_max_kib: Some(READ_KIB),
                    own_account_only: false,
                }),
            }
        }
    }
}

fn allow(found: &mut FoundSettings, preset: &Preset, entry: &Entry<String>) {
    for host in &preset.hosts {
        let target = Entry {
            value: host.pattern.clone(),
            text: host.pattern.to_string(),
            origin: entry.origin.clone(),
        };
        let own = found.settings.network.upload_budget_mib.as_ref().map(|budget| budget.value);
        let mib = own.map_or(host.upload_mib, |own| own.min(host.upload_mib));
        found.preset_budgets.push(BudgetRule {
            id: format!("{PRESET_RULE}{}", preset.name),
            target: host.pattern.clone(),
            kib: mib.saturating_mul(1024),
            effect: Effect::Ask,
            reason: format!(
                "more than {mib} MiB were sent there in this session, which is what the preset allows"
            ),
            setting: entry.origin.to_string(),
        });
        let allowed = &mut found.settings.network.allowed_domains;
        if allowed.iter().all(|known| known.value != target.value) {
            allowed.push(target);
        }
    }
}

#[cfg(test)]
mod tests {
    use portcullis_decision::pattern::{Coverage, OperationPattern, RequestPath};

    use super::*;

    #[test]
    fn what_is_shipped_can_be_used() {
        let catalogue = Catalogue { own: None, team: None };
        for name in shipped_presets() {
            let preset = catalogue.preset(name, Depth::Top).unwrap_or_else(|error| panic!("{error}"));
            let preset = preset.unwrap_or_else(|| panic!("{name} is missing"));
            assert!(!preset.hosts.is_empty() && preset.title.len() < 60, "{name}");
        }
        let group = catalogue.preset("registries", Depth::Top).expect("usable").expect("there");
        assert!(group.hosts.iter().all(|host| !host.pattern.to_string().starts_with("github.com")));
        assert!(catalogue.preset("../npm", Depth::Top).expect("no error").is_none());
    }

    #[test]
    fn read_only_presets_let_through_what_reads() {
        let directory = tempfile::tempdir().expect("a directory");
        let home = directory.path().canonicalize().expect("a path");
        let places = Places::usual(&home.join("project"), &home);
        std::fs::create_dir_all(places.sandbox_directory()).expect("made");
        std::fs::create_dir(home.join("project")).expect("made");
        let settings = r#"{
            "network": {
                "allowedDomains": [], "deniedDomains": [],
                "requests": [{ "host": "pypi.org", "allow": ["* /own/**"] }]
            },
            "filesystem": { "denyRead": [], "allowRead": ["."], "allowWrite": ["."], "denyWrite": [] },
            "readOnlyPresets": ["registries", "github", "gitlab", "debian", "none"]
        }"#;
        std::fs::write(places.sandbox_directory().join("default.json"), settings).expect("written");
        let found = crate::discover(&places, &crate::RealDisk).expect("read");
        let lets = |host: &str, method: &str, path: &str| {
            let host = Endpoint::Domain(host.to_owned());
            let path = RequestPath::parse(path).expect("a path");
            let limits = found.settings.network.requests.iter().find(|limits| limits.host == host);
            limits.map(|limits| Coverage::of(&limits.allow, method, &path))
        };
        let queries = vec![OperationPattern::parse("query:*").expect("a pattern")];
        for (host, method, path, wanted) in [
            ("registry.npmjs.org", "GET", "/left-pad", Some(Coverage::Whole)),
            ("registry.npmjs.org", "PUT", "/left-pad", Some(Coverage::None)),
            ("registry.npmjs.org", "POST", "/-/npm/v1/security/audits/quick", Some(Coverage::Whole)),
            ("registry.npmjs.org", "DELETE", "/left-pad/-rev/1", Some(Coverage::None)),
            ("crates.io", "PUT", "/api/v1/crates/new", Some(Coverage::None)),
            ("rubygems.org", "POST", "/api/v1/gems", Some(Coverage::None)),
            ("github.com", "GET", "/me/proj/info/refs", Some(Coverage::Whole)),
            ("github.com", "POST", "/me/proj.git/git-upload-pack", Some(Coverage::Whole)),
            ("github.com", "POST", "/me/proj.git/git-receive-pack", Some(Coverage::None)),
            ("api.github.com", "POST", "/graphql", Some(Coverage::Operations(queries.clone()))),
            ("api.github.com", "GET", "/user", Some(Coverage::Whole)),
            ("gitlab.com", "POST", "/api/v4/projects", Some(Coverage::None)),
            ("pypi.org", "GET", "/simple/hello", Some(Coverage::None)),
            ("pypi.org", "POST", "/own/hello", Some(Coverage::Whole)),
            ("deb.debian.org", "GET", "/", None),
        ] {
            assert_eq!(lets(host, method, path), wanted, "{method} {host}{path}");
        }
        assert!(found.settings.network.allowed_domains.is_empty(), "nothing is allowed by them");
        let warned = |text: &str| found.warnings.iter().any(|warning| warning.text.contains(text));
        assert!(
            warned("no preset is called `none`") && warned("`debian` has no `reads`"),
            "{:?}",
            found.warnings
        );
    }
}
