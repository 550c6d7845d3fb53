//! The data for the screens of `/sandbox`, from a running host.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use portcullis_audit::{Decided as LoggedDecision, Directory};
use portcullis_bootstrap::{in_force, policy_source};
use portcullis_decision::request::Action;
use portcullis_decision::{Grant, GrantPattern, GrantScope, Mode};
use portcullis_rpc::{ErrorCode, ErrorObject};
use portcullis_sandbox::Tier;
use portcullis_session::{GrantStore as _, Statements, keepable};
use portcullis_settings::{
    Draft, FoundSettings, GrantFile, KeptGrant, Places, RealDisk, Resolved, Store, discover, grant_files,
    kept_grants, preset, resolve, revoke, shipped_presets,
};
use portcullis_text::{escape, tilde};

use crate::kept_answers::{spoken, still_allowed};
use crate::menu::{Decided, Explained, Held, Line, Offered, OfferedPolicy, Scope, World};
use crate::record_text;
use crate::serve::host::{Host, Stage};
use crate::serve::status;

/// Maximum number of decisions to show.
const RECENT: usize = 30;
/// Maximum number of items of a list in the statements, which share the screen with a menu.
const MOST_STATEMENTS: usize = 3;
/// Number of digits of a digest to show.
const DIGEST_SHOWN: usize = 12;

pub(super) struct HostWorld<'a> {
    host: &'a Host,
    places: Places,
    stage: Arc<Stage>,
}

impl<'a> HostWorld<'a> {
    pub(super) fn new(host: &'a Host) -> Result<Self, ErrorObject> {
        let watch = host
            .watch
            .get()
            .ok_or_else(|| ErrorObject::new(ErrorCode::InvalidRequest, "say `hello` first"))?;
        let places =
            watch.places().map_err(|error| ErrorObject::new(ErrorCode::Unavailable, format!("{error:#}")))?;
        Ok(Self { host, places, stage: host.stage() })
    }

    fn log(&self) -> Option<(Directory, String)> {
        let watch = self.host.watch.get()?;
        match self.stage.as_ref() {
            Stage::Open(wired) => {
                Some((Directory::new(&watch.around().state.join("audit")), wired.session.id().to_owned()))
            }
            Stage::Off | Stage::Closed(_) => None,
        }
    }

    fn logged(&self, id: &str) -> Result<LoggedDecision, String> {
        let (directory, _) = self.log().ok_or("nothing is recorded while the sandbox is off")?;
        directory.decision(id).map_err(chained)
    }

    /// Returns the rules that can be made of a decision.
    fn rules(&self, logged: &LoggedDecision) -> Vec<Rule> {
        let action = logged.verdict.request.get("action").cloned().unwrap_or_default();
        // A masked value must not become part of a rule.
        if action.to_string().contains(portcullis_audit::MASK) {
            return Vec::new();
        }
        let Ok(action) = serde_json::from_value::<Action>(action) else { return Vec::new() };
        let Stage::Open(wired) = self.stage.as_ref() else { return Vec::new() };
        let lasts = wired.session.settings().ask.grant_seconds.unwrap_or(0);
        let basis = wired.session.basis();
        let home = basis.resolved.homes.first();
        let mut rules = Vec::new();
        for place in wired.keeper.places() {
            let offers = keepable(&action, place.scope, lasts, home.map(PathBuf::as_path));
            for (width, (pattern, text)) in offers.into_iter().enumerate() {
                let text = format!("{}: {text}", place.label);
                let rule = Rule { text, pattern, scope: place.scope, place: place.id.clone(), lasts };
                rules.push((width, rule));
            }
        }
        // The narrowest first, each with all its places.
        rules.sort_by_key(|(width, _)| *width);
        rules.into_iter().map(|(_, rule)| rule).collect()
    }
}

/// Returns the line that names the settings in force.
fn scope(found: &FoundSettings) -> Line {
    let source = match &found.source {
        portcullis_settings::Source::Named(file) => file.display().to_string(),
        portcullis_settings::Source::Project { key, .. } => format!("projects.json[\"{key}\"]"),
        portcullis_settings::Source::Default(_) => "default.json".to_owned(),
        portcullis_settings::Source::BuiltIn => "built-in defaults".to_owned(),
        portcullis_settings::Source::Layered { key: None, .. } => {
            "extensions/sandbox.json over built-in defaults".to_owned()
        }
        portcullis_settings::Source::Layered { key: Some(key), .. } => {
            format!("extensions/sandbox.json and layered.json[\"{key}\"]")
        }
    };
    Line::plain(format!("Settings: {source}"))
}

fn warnings(resolved: &Resolved) -> impl Iterator<Item = Line> {
    resolved.warnings.iter().map(|warning| Line::bad(format!("{}: {}", warning.origin, warning.text)))
}

/// A rule that can be made of a decision.
struct Rule {
    text: String,
    pattern: GrantPattern,
    scope: GrantScope,
    place: String,
    /// Lifetime in seconds; 0 means forever.
    lasts: u32,
}

impl World for HostWorld<'_> {
    fn is_on(&self) -> bool {
        matches!(self.stage.as_ref(), Stage::Open(_))
    }

    fn short(&self) -> Vec<Line> {
        let mut lines = self.state();
        if let Stage::Open(wired) = self.stage.as_ref() {
            lines.push(Line::plain(Statements::for_session(&wired.session, Tier::Full).summary()));
            let basis = wired.session.basis();
            let names: Vec<&str> = basis.chain.members.iter().map(|member| member.policy.name()).collect();
            lines.push(Line::faint(format!("Policies: {}", names.join(", "))));
            lines.extend(self.of_this_session());
            match discover(&self.places, &RealDisk) {
                Ok(found) => {
                    lines.insert(1, scope(&found));
                    match resolve(&found, &self.places, &RealDisk) {
                        Ok(resolved) => lines.extend(warnings(&resolved)),
                        Err(error) => lines.push(Line::bad(chained(error))),
                    }
                }
                Err(error) => lines.push(Line::bad(chained(error))),
            }
        }
        lines
    }

    fn presets(&self) -> Vec<Offered> {
        let offered = |name: &str| {
            let preset = preset(name, &self.places, &RealDisk).ok()??;
            let hosts = preset.hosts.iter().map(|host| host.pattern.to_string()).collect();
            Some(Offered { name: preset.name, title: preset.title, hosts })
        };
        shipped_presets().filter_map(offered).collect()
    }

    fn policies(&self) -> Vec<OfferedPolicy> {
        let shipped = policy_source::shipped();
        let shipped = shipped.map(|(name, title)| OfferedPolicy { name: name.into(), title: title.into() });
        let lock = self.places.sandbox_directory();
        let locked = portcullis_packs::Store::new(&lock).lock().map(|lock| lock.policies).unwrap_or_default();
        let packs = locked.into_iter().map(|pack| {
            let signed = if pack.signed_by.is_empty() { "trusted by its digest" } else { "signed" };
            OfferedPolicy { title: format!("pack {}, {signed}", pack.version), name: pack.id }
        });
        shipped.chain(packs).collect()
    }

    fn summary(&self) -> Vec<Line> {
        let mut lines = self.state();
        match discover(&self.places, &RealDisk) {
            Err(error) => lines.push(Line::bad(chained(error))),
            Ok(found) => {
                lines.push(scope(&found));
                match resolve(&found, &self.places, &RealDisk) {
                    Ok(resolved) => lines.extend(self.rules_in_force(&resolved)),
                    Err(error) => lines.push(Line::bad(chained(error))),
                }
            }
        }
        lines
    }

    fn scopes(&self) -> Vec<Scope> {
        let grant_files = discover(&self.places, &RealDisk)
            .and_then(|found| grant_files(&found, &self.places, &RealDisk))
            // A broken file is repaired where it is; the default can always be edited.
            .unwrap_or_else(|_| vec![GrantFile::Default]);
        let scope = |grant_file| Scope {
            label: label(&grant_file),
            projects: projects(&grant_file, &self.places.home.to_string_lossy()),
            grant_file,
        };
        grant_files.into_iter().map(scope).collect()
    }

    fn path_in_words(&self, path: &Path) -> String {
        tilde(&path.to_string_lossy(), &self.places.home.to_string_lossy())
    }

    fn open(&self, grant_file: &GrantFile) -> Result<Draft, String> {
        Draft::open(&self.places, grant_file).map_err(chained)
    }

    fn save(&self, draft: &Draft) -> Result<String, String> {
        draft.save(&Store::new(&self.places)).map_err(chained)?;
        self.put_in_force("saved")?;
        Ok("saved, and in force".to_owned())
    }

    fn grants(&self) -> Vec<Held> {
        let mut held = Vec::new();
        if let Stage::Open(wired) = self.stage.as_ref() {
            held.extend(wired.session.remembered().into_iter().map(|remembered| Held {
                id: format!("session:{}", remembered.id),
                label: remembered.text,
                origin: "this session".to_owned(),
            }));
        }
        held.extend(
            kept_grants(&self.places, &RealDisk, false)
                .unwrap_or_default()
                .iter()
                .map(|grant| kept(grant, &self.places.home)),
        );
        held
    }

    fn revoke(&self, id: &str) -> Result<String, String> {
        if let (Some(number), Stage::Open(wired)) = (id.strip_prefix("session:"), self.stage.as_ref()) {
            let known = number.parse().is_ok_and(|number| wired.session.forget(number));
            return if known { Ok(String::new()) } else { Err("it has ended already".to_owned()) };
        }
        let kept = kept_grants(&self.places, &RealDisk, false).map_err(chained)?;
        let grant = kept.iter().find(|grant| grant.id == id).ok_or("it is no longer in the file")?;
        revoke(&Store::new(&self.places), grant).map_err(chained)?;
        self.put_in_force("removed from the file")?;
        let left = kept_grants(&self.places, &RealDisk, false).unwrap_or_default();
        Ok(still_allowed(grant, &left, &self.places.home))
    }

    fn decisions(&self) -> Vec<Decided> {
        let Some((directory, session)) = self.log() else { return Vec::new() };
        let recent = directory.recent(&session, RECENT).unwrap_or_default();
        recent
            .into_iter()
            .map(|decided| Decided {
                id: format!("{}:{}", decided.name, decided.sequence),
                label: record_text::shown(&decided.verdict.request, &self.places.home),
                value: format!("{} ({})", decided.verdict.effect, decided.verdict.rule),
            })
            .collect()
    }

    fn explain(&self, id: &str) -> Result<Explained, String> {
        let logged = self.logged(id)?;
        let verdict = &logged.verdict;
        let mut lines = vec![
            Line::plain(record_text::shown(&verdict.request, &self.places.home)),
            match verdict.effect.as_str() {
                "allow" => Line::good(format!("allow: {}", verdict.reason)),
                effect => Line::bad(format!("{effect}: {}", verdict.reason)),
            },
            Line::plain(format!("rule {} of {}", verdict.rule, verdict.policy)),
        ];
        if !verdict.setting.is_empty() {
            lines.push(Line::plain(format!("set by {}", verdict.setting)));
        }
        if !verdict.answered_by.is_empty() {
            lines
                .push(Line::plain(format!("answered by {}", record_text::answered_by(&verdict.answered_by))));
        }
        for vote in &verdict.policies {
            lines.push(Line::faint(format!("{} said {}: {}", vote.name, vote.verdict, vote.reason)));
        }
        if let Some(outcome) = &logged.outcome {
            lines.push(Line::faint(format!("outcome: {}", outcome.result)));
        }
        let asked = verdict.effect == "deny" && !verdict.answered_by.is_empty();
        let rules = if asked { self.rules(&logged) } else { Vec::new() };
        if verdict.effect == "deny" && !asked {
            lines.push(Line::faint(
                "A rule denies it; no answer and no allow entry lifts that. Edit the rule itself.",
            ));
        }
        Ok(Explained { lines, rules: rules.into_iter().map(|rule| rule.text).collect() })
    }

    fn make_rule(&self, id: &str, rule: &str) -> Result<String, String> {
        let logged = self.logged(id)?;
        let mut rules = self.rules(&logged).into_iter().filter(|known| known.text == rule);
        let (Some(rule), None) = (rules.next(), rules.next()) else {
            return Err("this rule is no longer offered".to_owned());
        };
        let Stage::Open(wired) = self.stage.as_ref() else { return Err("the sandbox is off".to_owned()) };
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let granted_at = u32::try_from(now).unwrap_or(u32::MAX);
        let expires_at = if rule.lasts == 0 { 0 } else { granted_at.saturating_add(rule.lasts) };
        let grant = Grant { scope: rule.scope, pattern: rule.pattern, granted_at, expires_at };
        wired.keeper.keep(&rule.place, &grant)?;
        self.put_in_force("written")?;
        Ok(format!("written: {}", rule.text))
    }
}

impl HostWorld<'_> {
    /// Returns lines about the state of the sandbox, and about mistakes in its settings.
    fn state(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        match self.stage.as_ref() {
            Stage::Open(wired) => {
                lines.push(match status::reduced(&wired.session) {
                    None => Line::good("The sandbox is on, every layer in force."),
                    Some(reduced) => {
                        Line::bad(format!("The sandbox is on, with less than all layers: {reduced}."))
                    }
                });
            }
            Stage::Off => {
                lines.push(Line::bad("The sandbox is off: tools and commands run as pi runs them."))
            }
            Stage::Closed(why) => lines.push(Line::bad(format!("Every tool is blocked: {why}"))),
        }
        if let Some(problem) = self.host.watch.get().and_then(|watch| watch.problem()) {
            lines.push(Line::bad(problem));
        }
        lines
    }

    /// Applies edited settings; returns an error if the files cannot be used as they are.
    fn put_in_force(&self, done: &str) -> Result<(), String> {
        self.host.refresh();
        match self.host.watch.get().and_then(|watch| watch.problem()) {
            None => Ok(()),
            Some(problem) => Err(format!("{done}, but {problem}")),
        }
    }

    /// Returns a line for each answer for the session.
    fn of_this_session(&self) -> Vec<Line> {
        let held = self.grants().into_iter().filter(|held| held.id.starts_with("session:"));
        held.map(|held| Line::plain(format!("This session: {}", held.label))).collect()
    }

    fn rules_in_force(&self, resolved: &Resolved) -> Vec<Line> {
        let mut lines = Vec::new();
        if let Stage::Open(wired) = self.stage.as_ref() {
            let basis = wired.session.basis();
            let policies = basis.chain.members.iter().map(|member| {
                let digest: String = member.policy.digest().chars().take(DIGEST_SHOWN).collect();
                let weight = match member.mode {
                    Mode::Enforce => "",
                    Mode::Tighten => ", can only tighten",
                    Mode::Observe => ", only observed",
                };
                format!("{} (sha256 {digest}…{weight})", member.policy.name())
            });
            lines.push(Line::plain(format!("Policies: {}", policies.collect::<Vec<_>>().join(", "))));
        }
        lines.extend(self.statements());
        lines.extend(self.of_this_session());
        lines.extend(warnings(resolved));
        lines
    }
}

impl HostWorld<'_> {
    /// Returns the statements in force, or those for the sandbox when enabled.
    fn statements(&self) -> Vec<Line> {
        let (title, statements) = match (self.stage.as_ref(), self.host.watch.get()) {
            // A session with a sandbox knows its own tier.
            (Stage::Open(wired), _) => (None, Ok(Statements::for_session(&wired.session, Tier::Full))),
            (Stage::Off, Some(watch)) => {
                (Some("When it is on:"), in_force::when_on(watch.around(), watch.wanted()))
            }
            (Stage::Off, None) | (Stage::Closed(_), _) => return Vec::new(),
        };
        let mut lines: Vec<Line> = title.map(Line::plain).into_iter().collect();
        match statements {
            Ok(statements) => {
                let said = statements.all(MOST_STATEMENTS).into_iter();
                lines.extend(said.map(|statement| Line::plain(statement.text)));
            }
            Err(error) => lines.push(Line::bad(escape(&format!("{error:#}")))),
        }
        lines
    }
}

fn kept(grant: &KeptGrant, home: &Path) -> Held {
    let file = grant.origin.file.file_name().unwrap_or_default().to_string_lossy();
    let origin = match &grant.project {
        Some(key) => {
            format!("{file}[\"{}\"], line {}", tilde(key, &home.to_string_lossy()), grant.origin.at.line)
        }
        None => format!("{file}, line {}", grant.origin.at.line),
    };
    Held { id: grant.id.clone(), label: spoken(grant, home), origin }
}

/// Labels of `@oddsjam/pi-sandbox`.
fn label(grant_file: &GrantFile) -> String {
    match grant_file {
        GrantFile::Entry { key, exact: true } => format!("Edit project config ({key})"),
        GrantFile::Entry { key, exact: false } => format!("Edit project config (parent: {key})"),
        GrantFile::NewEntry { key, .. } => format!("Create new project config ({})", key.display()),
        GrantFile::Default => "Edit default config".to_owned(),
    }
}

fn projects(grant_file: &GrantFile, home: &str) -> String {
    match grant_file {
        GrantFile::Entry { exact: true, .. } | GrantFile::NewEntry { .. } => "this project".to_owned(),
        GrantFile::Entry { key, exact: false } => format!("{} and below", tilde(key, home)),
        GrantFile::Default => "every project".to_owned(),
    }
}

fn chained(error: impl std::error::Error + Send + Sync + 'static) -> String {
    escape(&format!("{:#}", anyhow::Error::new(error)))
}
