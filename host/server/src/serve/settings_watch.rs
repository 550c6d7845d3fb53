//! Watches settings files and policies, and computes what an edit changes.
//!
//! The files are checked before every request, and once a second for the footer. If they cannot be read or applied, the
//! old ones stay in force and the user is told. They are replaced atomically, so a decision is made either by the old
//! policies or by the new ones, and its log line has the digests of those.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use portcullis_bootstrap::loaded_settings::{self, LoadedSettings, Wanted};
use portcullis_bootstrap::policy_source::Revoked;
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_bootstrap::session::{self, OpenSession};
use portcullis_bootstrap::{teams, trust_files};
use portcullis_decision::{Chain, Mode};
use portcullis_rpc::{NoticeLevel, Switch};
use portcullis_session::notices;
use portcullis_settings::{Places, Resolved, Stamp, policy_text};
use portcullis_settings_format::PolicySource;
use portcullis_text::escape;

/// Interval for checking files while there are no requests.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The change that a stored answer makes.
const KEPT_ANSWERS: &str = "kept answers";
/// Maximum number of changes to list.
const MOST_CHANGES: usize = 12;

/// The settings files of a session.
#[derive(Debug)]
pub(crate) struct Watch {
    around: ProcessEnv,
    wanted: Wanted,
    /// The user's choice, which overrides `enabled`.
    switch: Option<Switch>,
    state: Mutex<WatchState>,
}

#[derive(Debug, Default)]
struct WatchState {
    files: Vec<PathBuf>,
    stamps: Vec<Stamp>,
    /// Number of settings files; the other files are policies.
    settings: usize,
    /// Why the current files are not in force.
    problem: Option<String>,
    /// The changes since the start of the session.
    changes: Vec<String>,
    /// Whether opening the session failed and is tried again after a change.
    waits: bool,
}

/// The result of an edit, for the user.
#[derive(Debug)]
pub(crate) struct News {
    /// The importance.
    pub(crate) level: NoticeLevel,
    /// The text, safe to show; empty if there is nothing to say.
    pub(crate) text: String,
}

/// An observer of the files of a [`Watch`].
pub(crate) trait Follow {
    /// Puts the current files in force and returns the changes.
    ///
    /// `waits` is true if the session could not be opened so far.
    fn follow(&self, loaded: LoadedSettings, waits: bool) -> anyhow::Result<Vec<String>>;

    /// Denies everything, because the user no longer trusts what is in force and there is no replacement.
    fn close(&self, why: &str);
}

impl Watch {
    pub(crate) fn new(around: ProcessEnv, wanted: Wanted, switch: Option<Switch>) -> Self {
        Self { around, wanted, switch, state: Mutex::default() }
    }

    /// Reads the settings and calls `open` with them; if that fails, it is tried again after a change.
    pub(super) fn first<T>(
        &self,
        open: impl FnOnce(LoadedSettings) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let mut state = self.lock();
        let opened = self.read(&mut state).and_then(open);
        state.waits = opened.is_err();
        opened
    }

    /// Returns true if the user has switched the sandbox off for this session.
    pub(super) fn is_switched_off(&self) -> bool {
        self.switch == Some(Switch::Off)
    }

    /// Reads the settings and starts watching their files.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "pi is contained on Linux only"))]
    pub(crate) fn begin(&self) -> anyhow::Result<LoadedSettings> {
        self.read(&mut self.lock())
    }

    fn read(&self, state: &mut WatchState) -> anyhow::Result<LoadedSettings> {
        let loaded = self.places().and_then(|places| {
            state.look(places.settings_files());
            loaded_settings::load(&self.around, &self.wanted)
        });
        match &loaded {
            Ok(loaded) => state.look_at(&self.around, loaded),
            Err(error) => state.problem = Some(notices::blocked(&format!("{error:#}"))),
        }
        loaded
    }

    /// Applies edits since the last check.
    pub(crate) fn look(&self, follower: &impl Follow) -> Option<News> {
        let mut state = self.lock();
        let changed = state.look_again()?;
        let loaded = loaded_settings::load(&self.around, &self.wanted);
        let is_read = loaded.is_ok();
        let followed = loaded.and_then(|loaded| {
            state.look_at(&self.around, &loaded);
            follower.follow(loaded, state.waits)
        });
        match followed {
            Ok(changes) => Some(state.followed(changed, changes)),
            Err(error) if state.waits => {
                let text = notices::blocked(&format!("{error:#}"));
                let before = std::mem::replace(&mut state.problem, (!is_read).then(|| text.clone()));
                if before.as_ref() == Some(&text) {
                    return None;
                }
                follower.close(&text);
                Some(News { level: NoticeLevel::Error, text })
            }
            Err(error) if error.downcast_ref::<Revoked>().is_some() => {
                let text = notices::revoked(&format!("{error:#}"));
                follower.close(&text);
                Some(News { level: NoticeLevel::Error, text })
            }
            Err(error) => state.not_followed(changed, &error),
        }
    }

    /// Puts other settings and policies in force in a session, and returns the changes.
    pub(crate) fn reload(&self, wired: &OpenSession, loaded: LoadedSettings) -> anyhow::Result<Vec<String>> {
        let before = wired.session.basis();
        let mut changes = differences(&before.resolved, &loaded.resolved);
        let (basis, lists) = session::basis(&self.around, &self.wanted, loaded.resolved)?;
        changes.extend(swaps(&before.chain, &basis.chain));
        wired.session.reload(basis)?;
        // The user was told when the answer was stored.
        let kept = wired.keeper.take_kept();
        changes.retain(|change| !is_by_answers(change, &kept));
        wired.keeper.refresh(&loaded.found, lists);
        Ok(changes)
    }

    /// Ends watching: the session is closed and is not opened again.
    pub(super) fn end(&self) {
        self.lock().waits = false;
    }

    /// Returns the paths of the session's settings.
    pub(super) fn places(&self) -> anyhow::Result<Places> {
        loaded_settings::places(&self.around, &self.wanted.project, self.wanted.settings.as_deref())
    }

    /// Returns the setup of the session.
    pub(super) fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// Returns the process environment, which locates the logs.
    pub(super) fn around(&self) -> &ProcessEnv {
        &self.around
    }

    /// Returns why the current files are not in force.
    pub(super) fn problem(&self) -> Option<String> {
        self.lock().problem.clone()
    }

    /// Returns the changes since the start of the session, in order.
    pub(super) fn changes(&self) -> Vec<String> {
        self.lock().changes.clone()
    }

    /// Returns true if the sandbox is enabled: by the user's choice, or else by the settings.
    pub(super) fn is_on(&self, resolved: &Resolved) -> bool {
        self.switch.map_or(resolved.enabled, |switch| switch == Switch::On)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, WatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WatchState {
    fn look(&mut self, files: Vec<PathBuf>) {
        self.stamps = files.iter().map(|file| Stamp::read(file)).collect();
        self.settings = files.len();
        self.files = files;
    }

    /// Watches the files of these settings and their policies.
    ///
    /// A file that is watched already keeps its stamp from before it was read, so that a change during reading is found
    /// next time.
    fn look_at(&mut self, around: &ProcessEnv, loaded: &LoadedSettings) {
        let known: Vec<(PathBuf, Stamp)> = self.files.drain(..).zip(self.stamps.drain(..)).collect();
        let mut settings = loaded.found.watched.clone();
        settings.extend(teams::files(&around.agent_directory));
        self.settings = settings.len();
        for file in settings.into_iter().chain(policy_files(around, loaded)) {
            let stamp = known.iter().find(|(other, _)| *other == file).map(|(_, stamp)| *stamp);
            self.stamps.push(stamp.unwrap_or_else(|| Stamp::read(&file)));
            self.files.push(file);
        }
    }

    /// Returns whether a file has changed, and updates the stamps.
    fn look_again(&mut self) -> Option<Changed> {
        let stamps: Vec<Stamp> = self.files.iter().map(|file| Stamp::read(file)).collect();
        let place = stamps.iter().zip(&self.stamps).position(|(new, old)| new != old);
        self.stamps = stamps;
        // If settings could not be read, the cause may be any path that they name, so try again.
        let again = self.problem.is_some().then_some(Changed::Settings);
        place.map(|place| if place < self.settings { Changed::Settings } else { Changed::Policies }).or(again)
    }
}

impl WatchState {
    fn followed(&mut self, changed: Changed, changes: Vec<String>) -> News {
        (self.problem, self.waits) = (None, false);
        let (those, _) = changed.words();
        let text = match changes.as_slice() {
            // What the user has just answered was said then, and edits without effect are no news.
            [] => String::new(),
            changes => notices::changed(those, changes),
        };
        self.changes.extend(changes);
        News { level: NoticeLevel::Info, text }
    }

    /// Returns `None` if this problem was reported before.
    fn not_followed(&mut self, changed: Changed, error: &anyhow::Error) -> Option<News> {
        let (_, edited) = changed.words();
        let error = format!("{error:#}");
        let shown = escape(&error);
        let problem =
            Some(format!("{edited} cannot be used, so the previous ones are still in force: {shown}"));
        if self.problem == problem {
            return None;
        }
        self.problem = problem;
        let text = notices::edit_not_in_force(edited, &error);
        Some(News { level: NoticeLevel::Error, text })
    }
}

/// The kind of the changed files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Changed {
    Settings,
    Policies,
}

impl Changed {
    /// Returns the words for those in force, and for the edited ones.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Settings => ("settings", "The edited settings"),
            Self::Policies => ("policies", "The new policies"),
        }
    }
}

/// Returns the policy files, with unresolved paths: a link may lead elsewhere by now.
///
/// The lock file names the packs, and the trust files contain revocations.
fn policy_files(around: &ProcessEnv, loaded: &LoadedSettings) -> Vec<PathBuf> {
    let directory = loaded.found.source.file().and_then(Path::parent).unwrap_or_else(|| Path::new("/"));
    let mut files = vec![
        loaded.places.sandbox_directory().join(portcullis_packs::LOCK),
        trust_files::user_file(&around.agent_directory),
        trust_files::machine_file(),
    ];
    files.extend(trust_files::signers(&around.agent_directory));
    let place = |path: &Path| match path.strip_prefix("~") {
        Ok(rest) => loaded.places.home.join(rest),
        Err(_) => directory.join(path),
    };
    for policy in &loaded.found.settings.policies {
        files.extend(policy.config_file.as_deref().map(place));
        files.extend(policy_text::named(&policy.config).map(place));
        if let PolicySource::File(path) = &policy.source {
            let file = place(path);
            let signatures = ["sig", "minisig"].map(|ending| portcullis_packs::beside(&file, ending));
            files.extend(signatures);
            files.extend([file.with_file_name("policy.toml"), file]);
        }
    }
    files
}

/// Returns true for a change that answers made, which have allowed `kept`.
fn is_by_answers(change: &str, kept: &[String]) -> bool {
    let Some(added) = change.strip_prefix("+ ") else { return change == KEPT_ANSWERS && !kept.is_empty() };
    let item = added.split_once(' ').filter(|(what, _)| *what != "rule" && *what != "denied");
    item.is_some_and(|(_, item)| kept.iter().any(|own| escape(own) == item))
}

/// Returns a line for each policy that was replaced under the same name.
fn swaps(before: &Chain, after: &Chain) -> Vec<String> {
    let short = |digest: &str| digest.chars().take(12).collect::<String>();
    let swap = |new: &portcullis_decision::Member| {
        let old = before.members.iter().find(|old| old.policy.name() == new.policy.name())?;
        let (name, digest, was) = (new.policy.name(), new.policy.digest(), old.policy.digest());
        let weight = if new.mode == Mode::Tighten { "; it can only tighten" } else { "" };
        let line = if was == digest {
            format!("policy {name} has another mode{weight}")
        } else {
            format!("policy {name} is sha256:{} now, was {}{weight}", short(digest), short(was))
        };
        (was != digest || old.mode != new.mode).then(|| escape(&line))
    };
    after.members.iter().filter_map(swap).collect()
}

/// Returns a line for each difference in `after`.
fn differences(before: &Resolved, after: &Resolved) -> Vec<String> {
    let texts = |items: &[_]| items.iter().map(ToString::to_string).collect::<Vec<String>>();
    let files = |items: &[portcullis_decision::pattern::FilePattern]| {
        items.iter().map(ToString::to_string).collect::<Vec<String>>()
    };
    let rules = |resolved: &Resolved| {
        let rules = resolved.rules.iter().filter(|rule| rule.origin.is_some());
        rules.map(|rule| format!("{} {}", rule.effect, rule.pattern)).collect::<Vec<String>>()
    };
    let policies = |resolved: &Resolved| {
        resolved.policies.iter().map(|policy| format!("{policy:?}")).collect::<Vec<String>>()
    };
    let lists = [
        ("reachable", texts(&before.allowed_domains), texts(&after.allowed_domains)),
        ("readable", files(&before.allow_read), files(&after.allow_read)),
        ("writable", files(&before.allow_write), files(&after.allow_write)),
        ("denied", texts(&before.denied_domains), texts(&after.denied_domains)),
        ("rule", rules(before), rules(after)),
    ];
    let mut changes = Vec::new();
    for (what, before, after) in lists {
        let added = after.iter().filter(|item| !before.contains(item)).map(|item| format!("+ {what} {item}"));
        let gone = before.iter().filter(|item| !after.contains(item)).map(|item| format!("- {what} {item}"));
        changes.extend(added.chain(gone).map(|line| escape(&line)));
    }
    if policies(before) != policies(after) || before.combine != after.combine {
        changes.push("policies".to_owned());
    }
    for (what, changed) in [
        (
            "limits",
            (before.limits, before.tightened_limits) != (after.limits, after.tightened_limits)
                || before.budgets != after.budgets,
        ),
        ("environment", (&before.environment, &before.dropped) != (&after.environment, &after.dropped)),
        ("ports", before.connecting.opens_ports != after.connecting.opens_ports),
        (
            "credentials",
            (&before.brokered, &before.ssh, &before.signing) != (&after.brokered, &after.ssh, &after.signing),
        ),
        ("requests", (&before.requests, &before.pushes) != (&after.requests, &after.pushes)),
        ("questions", before.ask != after.ask),
        ("the text for this agent", before.definition != after.definition),
        (KEPT_ANSWERS, before.grants != after.grants),
    ] {
        if changed {
            changes.push(what.to_owned());
        }
    }
    if changes.len() > MOST_CHANGES {
        let left = changes.len() - MOST_CHANGES;
        changes.truncate(MOST_CHANGES);
        changes.push(format!("and {left} more"));
    }
    changes
}
