//! `portcullis allow` and `portcullis deny`: what answers to questions do, without the question.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use portcullis_bootstrap::loaded_settings::{self, LoadedSettings, Wanted};
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_bootstrap::session;
use portcullis_command_line::args::action::Target;
use portcullis_command_line::args::allow::Rule;
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::human::path;
use portcullis_command_line::output::Page;
use portcullis_decision::grant::PathPattern;
use portcullis_decision::pattern::{FilePattern, HostPattern, NetworkPattern, PortSet};
use portcullis_decision::profile::FileRights;
use portcullis_decision::request::{Content, Endpoint, FileOperation, Origin};
use portcullis_decision::{Decision, Effect, Grant, GrantPattern, GrantScope, Reader, RefusalText};
use portcullis_policy_commands::check::connection;
use portcullis_server::kept_answers::spoken;
use portcullis_session::{Cancel, FileCall, NoUser, files, notices};
use portcullis_settings::{
    AllowItem, AllowLists, Denial, GrantFile, KeptGrant, RealDisk, Store, allow_item, grant_files, keep,
    keep_denial, keep_preset, kept_grants, preset, revoke,
};
use portcullis_text::escape;
use serde_json::json;

/// The name of a session in texts; answers given here are all kept.
const SESSION: &str = "session";

/// Said where commands get the user's own home directory.
const OWN_HOME: &str = "Commands have no home directory of their own any more, so they cannot write caches and settings \
     there. To keep it, allow single directories instead.";

/// Ports that stand for all.
const USUAL_PORTS: [u16; 2] = [443, 80];

/// Allows each item.
pub(crate) fn allow(rule: &Rule) -> exit::Outcome {
    let place = RuleStore::from_rule(rule)?;
    let items = place.items(&rule.what)?;
    let rights = if rule.write { FileRights::READ_WRITE } else { FileRights::READ };
    for item in &items {
        place.ensure_not_denied(item, rights)?;
    }
    let before = place.kept()?;
    for item in &items {
        place.allow(item, rights)?;
    }
    let (known, added): (Vec<KeptGrant>, Vec<KeptGrant>) = place
        .kept()?
        .into_iter()
        .filter(|grant| before.iter().all(|known| known.id != grant.id))
        .partition(|grant| before.iter().any(|known| is_same(known, grant)));
    for grant in &known {
        revoke(&place.store, grant)?;
    }
    for item in &items {
        if let Err(still_asked) = place.ensure_allowed(item, rights) {
            for grant in &added {
                revoke(&place.store, grant)?;
            }
            return Err(still_asked);
        }
    }
    let mut page = Page::new(&place.around);
    if rule.json {
        page.json(&json!({ "scope": place.scope(), "added": added, "allowed": rule.what }));
    } else if added.is_empty() {
        let items: Vec<String> = items.iter().map(|item| place.named(item)).collect();
        page.line(&format!("{} is allowed already, {}", items.join(" and "), place.words()));
    } else {
        for grant in &added {
            let saved = notices::saved(place.grant_scope(), SESSION, &escape(&place.spoken(grant)));
            page.line(&format!("{saved} · undo: portcullis grants revoke {}", grant.id));
        }
        if items.iter().any(|item| place.holds_home(item)) {
            page.line(OWN_HOME);
        }
    }
    page.print()?;
    Ok(Exit::Done)
}

/// Returns true for answers that differ only in when they were given.
fn is_same(one: &KeptGrant, other: &KeptGrant) -> bool {
    let timeless = |grant: &KeptGrant| {
        let mut value = grant.value.clone();
        value.as_object_mut().and_then(|members| members.remove("grantedAt"));
        value
    };
    (&one.list, &one.project) == (&other.list, &other.project) && timeless(one) == timeless(other)
}

/// Denies each item.
pub(crate) fn deny(rule: &Rule) -> exit::Outcome {
    let place = RuleStore::from_rule(rule)?;
    let items = place.items(&rule.what)?;
    let denials =
        items.iter().map(|item| place.denials(item, rule.write)).collect::<Result<Vec<_>, _>>()?.concat();
    let revoked = place.take_back(&denials)?;
    for denial in &denials {
        keep_denial(&place.store, &place.loaded.places, &place.file, denial)?;
    }
    for denial in &denials {
        place.ensure_denied(denial)?;
    }
    let mut page = Page::new(&place.around);
    let lists: Vec<&str> = denials.iter().map(Denial::list).collect();
    if rule.json {
        let revoked: Vec<&str> = revoked.iter().map(|grant| grant.id.as_str()).collect();
        page.json(&json!({
            "scope": place.scope(), "denied": rule.what, "lists": lists, "revoked": revoked,
        }));
    } else {
        for grant in &revoked {
            page.line(&format!("taken back: {}", escape(&place.spoken(grant))));
        }
        let items: Vec<String> = items.iter().map(|item| place.denied(item, rule.write)).collect();
        page.line(&format!("Denied: {}, {} · undo: {}", items.join(" and "), place.words(), place.undo()));
    }
    page.print()?;
    Ok(Exit::Done)
}

/// Where the rule is written.
struct RuleStore {
    around: ProcessEnv,
    loaded: LoadedSettings,
    wanted: Wanted,
    store: Store,
    file: GrantFile,
}

impl RuleStore {
    fn from_rule(rule: &Rule) -> anyhow::Result<Self> {
        let around = ProcessEnv::read()?;
        around.ensure_outside()?;
        // As in pi's terminal, where a question could be asked.
        let wanted = Wanted { interactive: true, ..Wanted::judging(around.cwd.clone(), None) };
        let loaded = loaded_settings::load(&around, &wanted)?;
        let files = grant_files(&loaded.found, &loaded.places, &RealDisk)?;
        // Of the project itself, and not of a directory above it.
        let own = |file: &GrantFile| {
            matches!(file, GrantFile::Entry { exact: true, .. } | GrantFile::NewEntry { .. })
        };
        let file = match rule.all {
            true => GrantFile::Default,
            false => files.into_iter().find(own).context("there is no settings file for this project")?,
        };
        let store = Store::new(&loaded.places);
        Ok(Self { around, loaded, wanted, store, file })
    }

    fn items(&self, what: &[String]) -> anyhow::Result<Vec<AllowItem>> {
        let parse = |text: &String| allow_item(text, &self.around.cwd, &self.loaded.places, &RealDisk);
        Ok(what.iter().map(parse).collect::<Result<_, _>>()?)
    }

    fn kept(&self) -> anyhow::Result<Vec<KeptGrant>> {
        Ok(kept_grants(&self.loaded.places, &RealDisk, true)?)
    }

    fn allow(&self, item: &AllowItem, rights: FileRights) -> anyhow::Result<()> {
        let places = &self.loaded.places;
        let pattern = match item {
            AllowItem::Preset(name) => return Ok(keep_preset(&self.store, places, &self.file, name)?),
            AllowItem::Host(host) => GrantPattern::Network(host.clone()),
            AllowItem::Path(path) => GrantPattern::Path(PathPattern { pattern: pattern_of(path), rights }),
        };
        let grant = Grant { scope: self.grant_scope(), pattern, granted_at: now(), expires_at: 0 };
        Ok(keep(&self.store, places, &self.file, &grant, self.lists()?)?)
    }

    /// Returns whether a policy of the settings asks the allow lists.
    fn lists(&self) -> anyhow::Result<AllowLists> {
        Ok(session::basis(&self.around, &self.wanted, self.loaded.resolved.clone())?.1)
    }

    /// Fails if a rule denies the item, since a denial overrides every answer.
    fn ensure_not_denied(&self, item: &AllowItem, rights: FileRights) -> anyhow::Result<()> {
        let denial = match item {
            AllowItem::Path(path) => Some(self.decision(path, rights)?).filter(is_denial),
            AllowItem::Host(host) => self.denial_of_hosts(host.to_string(), std::slice::from_ref(host))?,
            AllowItem::Preset(name) => self.denial_of_hosts(name.clone(), &self.hosts_of(name)?)?,
        };
        let Some(decision) = denial else { return Ok(()) };
        let refusal = RefusalText::for_decision(&decision).read_by(Reader::User);
        bail!(
            "`{}` stays denied, since no answer lifts a denial: {}; nothing was written. {}",
            self.named(item),
            refusal.why(),
            refusal.next_step(None)
        )
    }

    /// Fails if a path is still asked about: no answer covers content that the user has not seen.
    fn ensure_allowed(&self, item: &AllowItem, rights: FileRights) -> anyhow::Result<()> {
        let AllowItem::Path(path) = item else { return Ok(()) };
        let decision = self.decision(path, rights)?;
        if decision.effect() != Effect::Ask {
            return Ok(());
        }
        let refusal = RefusalText::for_decision(&decision).read_by(Reader::User);
        bail!(
            "`{}` is asked about each time: {}; nothing was written. {}",
            self.named(item),
            refusal.why(),
            refusal.next_step(None)
        )
    }

    /// Returns a denial that stays if `item` is allowed, if it is one of all `hosts`.
    fn denial_of_hosts(&self, item: String, hosts: &[NetworkPattern]) -> anyhow::Result<Option<Decision>> {
        let mut around = self.around.clone();
        around.allow.push(item);
        let loaded = loaded_settings::load(&around, &self.wanted)?;
        let open = session::open(&around, &self.wanted, loaded, Arc::new(NoUser))?;
        let mut denial = None;
        for target in hosts.iter().flat_map(targets) {
            let decision = open.session.decide(&open.session.request(Origin::Agent, connection(target)));
            if !is_denial(&decision) {
                return Ok(None);
            }
            denial = denial.or(Some(decision));
        }
        Ok(denial)
    }

    fn hosts_of(&self, preset_name: &str) -> anyhow::Result<Vec<NetworkPattern>> {
        let found = preset(preset_name, &self.loaded.places, &RealDisk)?.context("the preset has gone")?;
        Ok(found.hosts.into_iter().map(|host| host.pattern).collect())
    }

    /// Revokes the answers that a denial of reading would leave in force: an allowed path makes it a closed region.
    fn take_back(&self, denials: &[Denial]) -> anyhow::Result<Vec<KeptGrant>> {
        let is_everywhere = self.file == GrantFile::Default;
        let mut kept = kept_grants(&self.loaded.places, &RealDisk, is_everywhere)?;
        kept.retain(|grant| {
            let is_here = is_everywhere || grant.project.is_some();
            is_here && denials.iter().any(|denial| denial.reads().is_some_and(|top| grant.is_below(top)))
        });
        for grant in &kept {
            revoke(&self.store, grant)?;
        }
        Ok(kept)
    }

    /// Checks that a denial denies, since a rule on a path in it could still allow that.
    fn ensure_denied(&self, denial: &Denial) -> anyhow::Result<()> {
        let Some(path) = denial.reads() else { return Ok(()) };
        let decision = self.decision(path, FileRights::READ)?;
        if is_denial(&decision) {
            return Ok(());
        }
        bail!(
            "`{}` is in `filesystem.denyRead` now, but that does not deny it, because other settings allow it or a \
             path in it; the decision is still {}: {}; change those settings: portcullis config edit",
            escape(&path.to_string_lossy()),
            decision.effect(),
            RefusalText::for_decision(&decision).why(),
        )
    }

    /// Returns what a session would decide about a path.
    fn decision(&self, path: &Path, rights: FileRights) -> anyhow::Result<Decision> {
        let loaded = loaded_settings::load(&self.around, &self.wanted)?;
        let open = session::open(&self.around, &self.wanted, loaded, Arc::new(NoUser))?;
        let given = path.to_string_lossy();
        let operation = match (rights.write, path.is_dir()) {
            (true, _) => FileOperation::Write(Content::Unknown),
            (false, true) => FileOperation::List,
            (false, false) => FileOperation::Read,
        };
        // A directory is written by what is made in it.
        let asked = if rights.write && path.is_dir() { path.join("new") } else { path.to_owned() };
        let call = FileCall { path: &asked, given: &given, call: None, cancel: &Cancel::default() };
        let mut request = files::request(&open.session, call, operation)?;
        request.origin = Origin::Agent;
        Ok(open.session.decide(&request))
    }

    fn denials(&self, item: &AllowItem, write: bool) -> anyhow::Result<Vec<Denial>> {
        Ok(match item {
            AllowItem::Path(path) if write => vec![Denial::Write(path.clone())],
            AllowItem::Path(path) => vec![Denial::Read(path.clone())],
            AllowItem::Host(host) => vec![Denial::Host(host.clone())],
            AllowItem::Preset(name) => self.hosts_of(name)?.into_iter().map(Denial::Host).collect(),
        })
    }

    /// Returns true if a home directory is allowed as a whole: then there is no private one.
    fn holds_home(&self, item: &AllowItem) -> bool {
        matches!(item, AllowItem::Path(path) if self.around.homes().iter().any(|home| home.starts_with(path)))
    }

    fn scope(&self) -> &'static str {
        if self.file == GrantFile::Default { "user" } else { "project" }
    }

    fn words(&self) -> &'static str {
        if self.file == GrantFile::Default { "in every project" } else { "in this project" }
    }

    fn grant_scope(&self) -> GrantScope {
        if self.file == GrantFile::Default { GrantScope::User } else { GrantScope::Project }
    }

    /// Returns the command that opens the file with the rule.
    fn undo(&self) -> &'static str {
        match self.file {
            GrantFile::Default => "remove it with `portcullis config edit default`",
            GrantFile::Entry { .. } | GrantFile::NewEntry { .. } => "remove it with `portcullis config edit`",
        }
    }

    fn spoken(&self, grant: &KeptGrant) -> String {
        spoken(grant, &self.around.home)
    }

    fn named(&self, item: &AllowItem) -> String {
        escape(&match item {
            AllowItem::Preset(name) => format!("the preset {name}"),
            AllowItem::Host(host) => host.to_string(),
            AllowItem::Path(place) => path(&self.around, place),
        })
    }

    fn denied(&self, item: &AllowItem, write: bool) -> String {
        let what = match item {
            AllowItem::Preset(_) => "connections to the hosts of ",
            AllowItem::Host(_) => "connections to ",
            AllowItem::Path(_) if write => "writing ",
            AllowItem::Path(_) => "reading and writing ",
        };
        format!("{what}{}", self.named(item))
    }
}

fn is_denial(decision: &Decision) -> bool {
    decision.effect() == Effect::Deny
}

/// Returns connections that stand for all that the pattern covers.
fn targets(pattern: &NetworkPattern) -> Vec<Target> {
    let host = match &pattern.host {
        HostPattern::Name(name) => Endpoint::Domain(name.clone()),
        HostPattern::Below(top) => Endpoint::Domain(format!("any.{top}")),
        HostPattern::Block(block) => Endpoint::Address(block.addr()),
        HostPattern::Any => return Vec::new(),
    };
    let ports = match &pattern.ports {
        PortSet::Every => USUAL_PORTS.to_vec(),
        PortSet::These(ports) => ports.clone(),
    };
    ports.into_iter().map(|port| Target { host: host.clone(), port }).collect()
}

fn pattern_of(path: &Path) -> FilePattern {
    if path.is_dir() { FilePattern::Tree(path.to_owned()) } else { FilePattern::Exact(path.to_owned()) }
}

fn now() -> u32 {
    let since = portcullis_bootstrap::process_env::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
    since.ok().and_then(|since| u32::try_from(since.as_secs()).ok()).unwrap_or(0)
}
