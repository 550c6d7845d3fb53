//! Edits of settings files take effect without a restart.
//!
//! The files are looked at before every request and once a second, for the footer. What cannot be read, or cannot
//! be put in force, leaves everything as it was and is told loudly.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use portcullis_config::{Places, Resolved, Stamp};
use portcullis_rpc::{EventNotification, HostNotification, NoticeLevel, Switch};
use portcullis_session::visible;

use crate::serve::{Host, Stage};
use crate::surroundings::Surroundings;
use crate::wire::{self, Wanted};

/// How soon the footer knows of an edit while nothing else happens.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// More lines of what has changed only hide the rest.
const MOST_CHANGES: usize = 12;

/// The settings of a session as files.
#[derive(Debug)]
pub(crate) struct Watch {
    around: Surroundings,
    wanted: Wanted,
    /// What the user wants whatever the settings say.
    switch: Option<Switch>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    files: Vec<PathBuf>,
    stamps: Vec<Stamp>,
    /// Why the settings that are there now are not in force.
    problem: Option<String>,
    /// What has changed since the session began.
    changes: Vec<String>,
}

impl Watch {
    pub(super) fn new(around: Surroundings, wanted: Wanted, switch: Option<Switch>) -> Self {
        Self { around, wanted, switch, state: Mutex::default() }
    }

    /// Opens the session as the settings and the user want it.
    pub(super) fn open(&self, host: &Host) -> anyhow::Result<Stage> {
        if self.switch == Some(Switch::Off) {
            return Ok(Stage::Off);
        }
        let mut state = self.lock();
        let places = self.places()?;
        state.look(watched(&places));
        let ground = wire::ground(&self.around, &self.wanted)?;
        if !self.is_on(&ground.resolved) {
            return Ok(Stage::Off);
        }
        let wired = wire::session(&self.around, &self.wanted, ground, Arc::clone(&host.desk) as _)?;
        Ok(Stage::Open(Box::new(wired)))
    }

    /// Where the settings of the session lie.
    pub(super) fn places(&self) -> anyhow::Result<Places> {
        wire::places(&self.around, &self.wanted.project, self.wanted.settings.as_deref())
    }

    /// Where the logs lie.
    pub(super) fn around(&self) -> &Surroundings {
        &self.around
    }

    /// Why the settings that are there now are not in force.
    pub(super) fn problem(&self) -> Option<String> {
        self.lock().problem.clone()
    }

    /// What has changed since the session began, in the order in which it did.
    pub(super) fn changes(&self) -> Vec<String> {
        self.lock().changes.clone()
    }

    fn is_on(&self, resolved: &Resolved) -> bool {
        self.switch.map_or(resolved.enabled, |switch| switch == Switch::On)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn look(&mut self, files: Vec<PathBuf>) {
        self.stamps = files.iter().map(|file| Stamp::of(file)).collect();
        self.files = files;
    }

    /// Whether a file is not what it was; looking again finds nothing new then.
    fn has_changed(&mut self) -> bool {
        let stamps: Vec<Stamp> = self.files.iter().map(|file| Stamp::of(file)).collect();
        let changed = stamps != self.stamps;
        self.stamps = stamps;
        changed
    }
}

/// The files that settings are looked for in, also while one of them cannot be read.
fn watched(places: &Places) -> Vec<PathBuf> {
    let sandbox = places.sandbox_directory();
    let mut files = vec![
        sandbox.join("projects.json"),
        sandbox.join("default.json"),
        places.machine_file(),
        places.project_file(),
    ];
    files.extend(places.settings.clone());
    files
}

impl Host {
    /// Looks every second, until the host is gone.
    pub(super) fn keep_watching(self: &Arc<Self>) {
        let host: Weak<Self> = Arc::downgrade(self);
        let watching = move || {
            loop {
                thread::sleep(LOOK_EVERY);
                let Some(host) = host.upgrade() else { return };
                host.refresh();
            }
        };
        if let Err(error) = thread::Builder::new().name("settings".to_owned()).spawn(watching) {
            // Edits still take effect with the next request.
            crate::exit::say(&format!("portcullis: watching the settings: {error}"));
        }
    }

    /// Puts settings in force that were edited since they were read.
    pub(super) fn refresh(&self) {
        let Some(watch) = self.watch.get() else { return };
        let mut state = watch.lock();
        if !state.has_changed() {
            return;
        }
        let (level, text) = match self.apply(watch) {
            Ok(changes) => {
                state.problem = None;
                let text = match changes.as_slice() {
                    [] => "the settings were edited; nothing that counts here has changed".to_owned(),
                    changes => format!("the settings have changed: {}", changes.join("; ")),
                };
                state.changes.extend(changes);
                (NoticeLevel::Info, text)
            }
            Err(error) => {
                let problem = visible(&format!("{error:#}"));
                let text =
                    format!("the edited settings are NOT in force, those before them still are: {problem}");
                state.problem = Some(problem);
                (NoticeLevel::Error, text)
            }
        };
        drop(state);
        // A client that is gone needs no news.
        let _sent = self.sender.notify(&HostNotification::Event(EventNotification::Notice { level, text }));
        self.tell_status();
    }

    /// Sends the status, because it has changed.
    pub(super) fn tell_status(&self) {
        let event = EventNotification::Status { status: self.status() };
        let _sent = self.sender.notify(&HostNotification::Event(event));
    }

    fn apply(&self, watch: &Watch) -> anyhow::Result<Vec<String>> {
        let ground = wire::ground(&watch.around, &watch.wanted)?;
        match (self.stage().as_ref(), watch.is_on(&ground.resolved)) {
            (Stage::Open(wired), true) => {
                let before = wired.session.basis();
                let changes = differences(&before.resolved, &ground.resolved);
                let (basis, lists) = wire::basis(&watch.around, &watch.wanted, ground.resolved)?;
                wired.session.reload(basis)?;
                wired.keeper.refresh(&ground.found, lists);
                Ok(changes)
            }
            (Stage::Open(_), false) => {
                self.cancel_all();
                self.enter(Stage::Off);
                Ok(vec!["the sandbox is off (`enabled` is false)".to_owned()])
            }
            (Stage::Off, true) => {
                let wired = wire::session(&watch.around, &watch.wanted, ground, Arc::clone(&self.desk) as _)?;
                self.enter(Stage::Open(Box::new(wired)));
                Ok(vec!["the sandbox is on".to_owned()])
            }
            (Stage::Off, false) | (Stage::Closed(_), _) => Ok(Vec::new()),
        }
    }
}

/// What is another in `after`, a line for each.
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
        ("unreachable", texts(&before.denied_domains), texts(&after.denied_domains)),
        ("rule", rules(before), rules(after)),
    ];
    let mut changes = Vec::new();
    for (what, before, after) in lists {
        let added = after.iter().filter(|item| !before.contains(item)).map(|item| format!("+ {what} {item}"));
        let gone = before.iter().filter(|item| !after.contains(item)).map(|item| format!("- {what} {item}"));
        changes.extend(added.chain(gone).map(|line| visible(&line)));
    }
    if policies(before) != policies(after) || before.combine != after.combine {
        changes.push("other policies".to_owned());
    }
    for (what, changed) in [
        ("limits", before.limits != after.limits),
        ("environment", before.environment != after.environment),
        ("questions", before.ask != after.ask),
        ("kept answers", before.grants != after.grants),
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
