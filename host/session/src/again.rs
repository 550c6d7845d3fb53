//! Asking after a command, where nothing could be asked while it ran: in the tier without a broker.
//!
//! There the kernel refuses writes outside and tells nobody. All that is known is what the command said before it
//! failed ([`Heard`]), which the agent may have made up. So whatever it names is looked up in the files as commands see
//! them, and only what they truly cannot write there, may see, and no rule forbids, becomes a question: the same that
//! a tool's write would be. What comes of a made-up line is a question that the agent could have had by trying.
//!
//! A yes opens the place for one more run of the very same command, if the user wants that run as well: what the command
//! has done already stays done, and doing it twice may be worse than not at all.

use std::path::{Component, Path, PathBuf};

use portcullis_confine::{Attempt, Exit, Terminal, Tier};
use portcullis_decision::profile::FileRight;
use portcullis_decision::request::{
    Action, Attribute, Content, FileAccess, FileFacts, FileOperation, Origin, PathKind,
};
use portcullis_decision::{Caller, Effect, Grant, GrantScope, Request, Ruling, path_text};
use portcullis_file_gate::{Located, Purpose};
use portcullis_text::escape_confusables;

use crate::authorized::Granted;
use crate::cancel::Cancel;
use crate::commands::{CommandCall, CommandFailure, Ended, Started};
use crate::force::Force;
use crate::heard::{Heard, Named};
use crate::paths;
use crate::question::grantable;
use crate::refused;
use crate::session::Session;

/// Name of the attribute that says what a command named before it failed: a JSON text.
const SAID: &str = "host:said-afterwards";
/// Name of the attribute of a command that is to be run once more: a JSON list of the paths that are open now.
const AGAIN: &str = "host:run-again";
/// The rule that wants it asked.
const RULE: &str = "host.run-again";

/// Most questions about places for one command, over all its runs; each is another place.
const MOST_QUESTIONS: usize = 5;
/// How many directories of a path may be missing: each is looked for.
const MOST_LEVELS: usize = 40;
/// How often a command is run again: what needs more is better written anew.
const MOST_RUNS: usize = 3;

/// What was asked about one command so far, over all its runs.
#[derive(Debug, Default)]
pub struct Afterwards {
    asked: Vec<PathBuf>,
    opened: Vec<Grant>,
    runs: usize,
    notes: Vec<String>,
}

impl Afterwards {
    /// What the model is to be told of it.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// A command that the user wants to be run once more, and what is open to it then.
#[derive(Debug)]
pub struct Again {
    granted: Granted,
    opened: Vec<Grant>,
}

/// A place that commands see and cannot write.
struct Place {
    located: Located,
    /// What was named, canonical: the place itself, or a name in it that is not there yet.
    named: PathBuf,
}

impl Session {
    /// Whether what commands say is worth listening to: somebody can be asked, and nobody asks while they run.
    #[must_use]
    pub fn asks_afterwards(&self) -> bool {
        self.setup.context.interactive && self.force().tier() == Tier::Namespaces
    }

    /// Asks about what a command could not write, as far as `heard` tells, and where something was allowed whether the
    /// command is to be run again; none if it is not.
    pub fn ask_afterwards(
        &self,
        call: &CommandCall<'_>,
        (ended, heard): (&Ended, Heard),
        past: &mut Afterwards,
        cancel: &Cancel,
    ) -> Option<Again> {
        if !self.asks_afterwards() || !has_failed(ended) {
            return None;
        }
        let mut allowed = Vec::new();
        for named in heard.into_named() {
            if past.asked.len() == MOST_QUESTIONS || cancel.is_cancelled() {
                break;
            }
            let Some(place) = self.place_of(&self.force(), call.cwd, &named) else { continue };
            if let Some(grant) = self.ask_about(&named, &place, call.call, past, cancel) {
                allowed.push(place.named);
                past.opened.push(grant);
            }
        }
        if allowed.is_empty() || cancel.is_cancelled() {
            return None;
        }
        self.ask_to_run(call, ended, &allowed, past, cancel)
    }

    /// Starts a command once more. `stdio` becomes its first three descriptors.
    ///
    /// # Errors
    /// As for [`Session::start_command`].
    pub fn start_again(
        &self,
        call: CommandCall<'_>,
        again: Again,
        stdio: [std::os::fd::OwnedFd; 3],
        cancel: &Cancel,
    ) -> Result<Started, CommandFailure> {
        self.start_granted(again.granted, call, &again.opened, (Terminal::None, stdio), cancel)
    }

    /// Where a name would have to be written: in the file that it is, or in the closest directory there is. None where
    /// commands do not see that, can write it, or it is no place for a mount.
    fn place_of(&self, force: &Force, cwd: &Path, named: &Named) -> Option<Place> {
        let path = cwd.join(&named.path);
        let mut tops = path.ancestors().skip(usize::from(named.is_for_its_name)).take(MOST_LEVELS);
        let (top, located) = tops.find_map(|top| {
            let located = force.gate.locate(top, Purpose::ForWriting).ok()?;
            (located.kind() != PathKind::Missing).then_some((top, located))
        })?;
        let rest = path.strip_prefix(top).ok()?;
        if !rest.components().all(|part| matches!(part, Component::Normal(_))) {
            return None;
        }
        let named: PathBuf = located.canonical().components().chain(rest.components()).collect();
        let is_place = match located.kind() {
            PathKind::Directory => !holds_regions(force, located.canonical()),
            PathKind::File => rest.as_os_str().is_empty(),
            PathKind::Missing | PathKind::Symlink | PathKind::Other => false,
        };
        let is_seen =
            |path: &Path| force.rules.answer(path, FileRight::Read, Caller::Command).effect == Effect::Allow;
        let is_closed = is_place && !is_the_kernels(located.canonical()) && located.is_on_read_only_mount();
        (is_closed && is_seen(located.canonical()) && is_seen(&named)).then_some(Place { located, named })
    }

    /// Asks about a place, unless it was asked about already; the grant for one run if it was allowed.
    fn ask_about(
        &self,
        said: &Named,
        place: &Place,
        call: Option<&str>,
        past: &mut Afterwards,
        cancel: &Cancel,
    ) -> Option<Grant> {
        // What a rule says of the name itself counts as well as what it says of the place.
        let of_name = self.decide(&self.request_for(said, &place.named, PathKind::File));
        if of_name.effect() == Effect::Deny {
            past.note(refused::after_question(Attempt::Write, &place.named, &of_name));
            return None;
        }
        let top = place.located.canonical();
        let mut request = self.request_for(said, top, place.located.kind());
        request.attributes.extend(self.other_names_at(place));
        if past.asked.iter().any(|asked| asked == top) || self.decide(&request).effect() == Effect::Allow {
            return None;
        }
        past.asked.push(top.to_owned());
        match self.authorize(request, call, cancel).granted() {
            Ok(granted) => {
                let (pattern, _) = grantable(&granted.request.action).into_iter().next()?;
                let now = self.context_for(&granted.request, &[]).now;
                Some(Grant { scope: GrantScope::Once, pattern, granted_at: now, expires_at: 0 })
            }
            Err(decision) => {
                past.note(refused::after_question(Attempt::Write, &place.named, &decision));
                None
            }
        }
    }

    fn request_for(&self, said: &Named, canonical: &Path, kind: PathKind) -> Request {
        let path = paths::reference(&self.setup.context, &said.path, canonical, canonical, kind);
        let operation = FileOperation::Write(Content::Unknown);
        let access = FileAccess { path, operation, facts: FileFacts::default() };
        let mut request = self.request(Origin::Process, Action::File(access));
        let value = serde_json::Value::String(said.path.clone()).to_string();
        request.attributes.push(Attribute { name: SAID.to_owned(), value });
        request
    }

    fn other_names_at(&self, place: &Place) -> Option<Attribute> {
        let is_file = place.located.kind() == PathKind::File;
        is_file.then(|| self.other_names(place.located.canonical())).flatten()
    }

    fn ask_to_run(
        &self,
        call: &CommandCall<'_>,
        ended: &Ended,
        allowed: &[PathBuf],
        past: &mut Afterwards,
        cancel: &Cancel,
    ) -> Option<Again> {
        if past.runs == MOST_RUNS {
            past.note(format!("The command was run {} times, and is not run again.", MOST_RUNS + 1));
            return None;
        }
        let mut request = self.command_request(call).ok()?;
        let open: Vec<String> = allowed.iter().map(|path| path_text::encode(path)).collect();
        let value = serde_json::Value::from(open.clone()).to_string();
        request.attributes.push(Attribute { name: AGAIN.to_owned(), value });
        let places = listed(&open);
        match self.authorize(request, call.call, cancel).granted() {
            Ok(granted) => {
                past.runs += 1;
                past.note(format!(
                    "The command could not write {places} ({ended}). The user has allowed that, and it was run again \
                     from its beginning: the output of both runs is here, and what the first one did stays done."
                ));
                Some(Again { granted, opened: past.opened.clone() })
            }
            Err(decision) => {
                past.note(format!(
                    "The command could not write {places}, and was not run again: {}. What the user has allowed for \
                     longer than one command holds for the next one.",
                    decision.cause().reason
                ));
                None
            }
        }
    }
}

impl Afterwards {
    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

/// A command that got on in spite of it needs nothing, and one that was ended would be again.
fn has_failed(ended: &Ended) -> bool {
    let by_itself = match ended.exit {
        Exit::Code(code) => code != 0,
        Exit::Signal(_) => true,
        Exit::Lost => false,
    };
    by_itself && ended.met.is_none()
}

/// Whether more than the directory itself would be opened with it: homes and the project lie below it.
fn holds_regions(force: &Force, directory: &Path) -> bool {
    let base = force.rules.base();
    let mut tops = base.closed.iter().chain(&base.workspace).chain([&base.temp]);
    tops.any(|top| top.starts_with(directory))
}

/// What lies there are no files.
fn is_the_kernels(path: &Path) -> bool {
    ["/dev", "/proc", "/sys"].iter().any(|top| path.starts_with(top))
}

/// Whether it is asked after a command whether it may write there.
pub(crate) fn is_afterwards(request: &Request) -> bool {
    request.attributes.iter().any(|attribute| attribute.name == SAID)
}

/// Whether it is asked whether a command is to be run once more.
pub(crate) fn is_again(request: &Request) -> bool {
    request.attributes.iter().any(|attribute| attribute.name == AGAIN)
}

/// Why it is asked, as far as the command has said it.
pub(crate) fn reason(request: &Request) -> Option<String> {
    let told = request.attributes.iter().find(|attribute| attribute.name == SAID)?;
    let said: String = serde_json::from_str(&told.value).unwrap_or_default();
    Some(format!(
        "a command failed, and its output says that it could not write `{}`",
        escape_confusables(&said)
    ))
}

/// What a yes is called that holds for the next run.
pub(crate) fn once(access: &FileAccess) -> String {
    let path = escape_confusables(&access.path.canonical);
    match access.path.kind {
        PathKind::Directory => {
            format!("Allow if the command is run again: all that it makes and writes below {path}")
        }
        PathKind::File | PathKind::Missing | PathKind::Symlink | PathKind::Other => {
            format!("Allow if the command is run again: writing {path}")
        }
    }
}

/// To run a command once more is the user's own choice, every time, whatever policies and grants allow.
pub(crate) fn ruling(request: &Request) -> Option<Ruling> {
    let told = request.attributes.iter().find(|attribute| attribute.name == AGAIN)?;
    let open: Vec<String> = serde_json::from_str(&told.value).unwrap_or_default();
    Some(Ruling {
        effect: Effect::Ask,
        policy: "host".to_owned(),
        rule: RULE.to_owned(),
        reason: format!(
            "it failed without {}; what it has done stays done, and is done again",
            listed(&open)
        ),
        setting: String::new(),
        conceal: false,
    })
}

fn listed(paths: &[String]) -> String {
    paths.iter().map(|path| format!("`{}`", escape_confusables(path))).collect::<Vec<_>>().join(", ")
}
