//! Questions after a failed command, about accesses that could not be asked about while it ran.
//!
//! Commands do not see closed regions, and no tier reports a look-up there. In the tier without a broker, the kernel
//! refuses writes outside without reporting them either. The only hint is the error output of the command
//! ([`StderrHints`]), which the agent may have made up. So each path in it is looked up. One that the command did not
//! find becomes a question if it exists in a closed region, see [`named_places`]. One that it could not write becomes a
//! question if commands can see it, cannot write it, and no rule denies writing it; the question is the same as for a
//! tool that writes there. With a made-up line the agent gets no question that it could not get by trying.
//!
//! A "yes" allows the path for one more run of the same command, if the user also wants that run: the effects of the
//! first run remain, and running the command twice can be worse than not at all.

use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use portcullis_approvals::Cancel;
use portcullis_approvals::question::grantable;
use portcullis_decision::host_rules::listed;
use portcullis_decision::profile::FileRight;
use portcullis_decision::request::{Action, Content, FileAccess, FileFacts, FileOperation, Origin, PathKind};
use portcullis_decision::{Caller, Effect, Fact, Grant, GrantScope, RefusalText, Request, path_text};
use portcullis_file_gate::{Located, Purpose};
use portcullis_sandbox::{NameAccess, Terminal, Tier};
use portcullis_sandbox_runtime::Exit;
use portcullis_session_sandbox::stderr_hints::{Hints, Named, StderrHints};

use crate::authorized::Granted;
use crate::command_call::CommandCall;
use crate::commands;
use crate::effective_policy::EffectivePolicy;
use crate::links::other_names;
use crate::named_places;
use crate::paths;
use crate::refused;
use crate::session::Session;
use crate::started::{CommandFailure, Ended, Started};

/// Maximum number of questions about one command, over all its runs; each is about another path.
const MOST_QUESTIONS: usize = 5;
/// Maximum number of missing directories in a path; each is looked up.
const MOST_LEVELS: usize = 40;
/// Maximum number of runs of a command.
const MOST_RUNS: usize = 3;

/// The note for a command that could not give a file to another user.
const ONE_USER: &str = "Commands have only their own user here, so `chown` to another user fails. \
     Let files keep their owner, for example `tar --no-same-owner`, or `user root;` in the settings of nginx.";

/// The questions about one command so far, over all its runs.
#[derive(Debug, Default)]
struct DenialQuestions {
    asked: Vec<PathBuf>,
    opened: Vec<Grant>,
    runs: usize,
    notes: Vec<String>,
}

/// A command that the user wants to run again, with the grants for that run.
#[derive(Debug)]
struct Rerun {
    granted: Granted,
    opened: Vec<Grant>,
}

/// A path that commands can see but not write.
struct DeniedPath {
    located: Located,
    /// The canonical form of the path that was named: the place itself, or a name in it that does not exist yet.
    named: PathBuf,
}

/// Returns true if error output leads to questions about writing.
///
/// A user interface must be present, and commands must be unable to ask while they run.
#[must_use]
pub fn asks_about_writing(session: &Session) -> bool {
    let cannot_ask = matches!(session.effective_policy().tier(), Tier::Namespaces | Tier::Profile);
    session.setup.context.interactive && cannot_ask
}

/// The caller's part in the runs of a command: its streams, and its output.
pub trait Runs {
    /// The caller's end of the output of a run.
    type Output;
    /// The reason why the caller cannot continue.
    type Error;

    /// Makes the first three file descriptors of the next run, and the caller's end of its output.
    ///
    /// # Errors
    /// When they cannot be made.
    fn streams(&mut self) -> Result<([OwnedFd; 3], Self::Output), Self::Error>;

    /// Waits until a run has ended and its output is passed on. Returns the hints in its error output, if it is read.
    ///
    /// # Errors
    /// When the output cannot be passed on.
    fn finish(&mut self, started: Started, output: Self::Output)
    -> Result<(Ended, StderrHints), Self::Error>;

    /// Reports that the command could not be run again.
    fn not_run_again(&mut self, failure: &CommandFailure);
}

/// Follows a command until it has ended, and the further runs of it that the user wants.
///
/// Returns the end of the last run, and the notes for the model.
///
/// # Errors
/// Those of `runs`.
pub fn follow<R: Runs>(
    session: &Session,
    call: &CommandCall<'_>,
    first: (Started, R::Output),
    runs: &mut R,
    cancel: &Cancel,
) -> Result<(Ended, Vec<String>), R::Error> {
    let mut past = DenialQuestions::default();
    let (mut started, mut output) = first;
    past.opened.clone_from(&started.opened);
    loop {
        let (ended, heard) = runs.finish(started, output)?;
        let Some(again) = ask(session, call, (&ended, heard), &mut past, cancel) else {
            return Ok((ended, past.notes));
        };
        let (stdio, next) = runs.streams()?;
        output = next;
        started = match start(session, call.clone(), again, stdio, cancel) {
            Ok(started) => started,
            Err(failure) => {
                runs.not_run_again(&failure);
                return Ok((ended, past.notes));
            }
        };
    }
}

/// Asks about the paths in `heard` that the command did not find or could not write.
///
/// If one is allowed, also asks whether to run the command again, and returns it if so.
fn ask(
    session: &Session,
    call: &CommandCall<'_>,
    (ended, heard): (&Ended, StderrHints),
    past: &mut DenialQuestions,
    cancel: &Cancel,
) -> Option<Rerun> {
    let Hints { unwritten, missing, is_owner_refused } = heard.into_hints();
    if is_owner_refused {
        past.note(ONE_USER.to_owned());
    }
    if !has_failed(ended) {
        return None;
    }
    let mut allowed = ask_about_missing(session, call, &missing, past, cancel);
    for named in unwritten.into_iter().filter(|_| asks_about_writing(session)) {
        if past.asked.len() == MOST_QUESTIONS || cancel.is_cancelled() {
            break;
        }
        let Some(place) = place_of(&session.effective_policy(), call.cwd, &named) else { continue };
        if let Some(grant) = ask_about(session, &named, &place, call.call, past, cancel) {
            allowed.push(place.named);
            past.opened.push(grant);
        }
    }
    if allowed.is_empty() || cancel.is_cancelled() {
        return None;
    }
    ask_to_run(session, call, ended, &allowed, past, cancel)
}

/// Asks about closed places in which the command looked for files. Returns the places that the user opened for one more
/// run of the command. If the answers hold for longer, a note tells the model to run the command again.
fn ask_about_missing(
    session: &Session,
    call: &CommandCall<'_>,
    missing: &[String],
    past: &mut DenialQuestions,
    cancel: &Cancel,
) -> Vec<PathBuf> {
    let Ok(request) = commands::request(session, call) else { return Vec::new() };
    let answers =
        named_places::ask_about_missing(session, (&request, call), missing, &mut past.asked, cancel);
    answers.notes.into_iter().for_each(|note| past.note(note));
    if answers.opened.is_empty() {
        let allowed: Vec<String> = answers.allowed.iter().map(|path| path_text::encode(path)).collect();
        if !allowed.is_empty() {
            past.note(format!("The user has now allowed {}: run the command again.", listed(&allowed)));
        }
        return Vec::new();
    }
    past.opened.extend(answers.opened);
    answers.allowed
}

/// Runs a command again. `stdio` becomes its first three file descriptors.
fn start(
    session: &Session,
    call: CommandCall<'_>,
    again: Rerun,
    stdio: [OwnedFd; 3],
    cancel: &Cancel,
) -> Result<Started, CommandFailure> {
    commands::start_granted(session, again.granted, call, &again.opened, (Terminal::None, stdio), cancel)
}

/// Returns the place that must be writable to write a name: the file itself, or the closest existing directory.
///
/// Returns `None` if commands cannot see it, can write it already, or it cannot be a mount point.
fn place_of(effective: &EffectivePolicy, cwd: &Path, named: &Named) -> Option<DeniedPath> {
    let path = cwd.join(&named.path);
    let mut tops = path.ancestors().skip(usize::from(named.is_for_its_name)).take(MOST_LEVELS);
    let (top, located) = tops.find_map(|top| {
        let located = effective.gate.locate(top, Purpose::ForWriting).ok()?;
        (located.kind() != PathKind::Missing).then_some((top, located))
    })?;
    let rest = path.strip_prefix(top).ok()?;
    if !rest.components().all(|part| matches!(part, Component::Normal(_))) {
        return None;
    }
    let named: PathBuf = located.canonical().components().chain(rest.components()).collect();
    let is_place = match located.kind() {
        PathKind::Directory => !holds_regions(effective, located.canonical()),
        PathKind::File => rest.as_os_str().is_empty(),
        PathKind::Missing | PathKind::Symlink | PathKind::Other => false,
    };
    let is_seen =
        |path: &Path| effective.rules.answer(path, FileRight::Read, Caller::Command).effect == Effect::Allow;
    let is_unwritable = match effective.tier() {
        // A profile denies what asks, and leaves no trace in the tree of mounts.
        Tier::Profile => {
            let answer = effective.rules.answer(&named, FileRight::Write, Caller::Command);
            answer.effect == Effect::Ask
        }
        Tier::Full | Tier::Namespaces | Tier::Landlock | Tier::None => located.is_on_read_only_mount(),
    };
    let is_closed = is_place && !is_the_kernels(located.canonical()) && is_unwritable;
    (is_closed && is_seen(located.canonical()) && is_seen(&named)).then_some(DeniedPath { located, named })
}

/// Asks about a place, unless it was asked about before. Returns the grant for one run if the user allows it.
fn ask_about(
    session: &Session,
    said: &Named,
    place: &DeniedPath,
    call: Option<&str>,
    past: &mut DenialQuestions,
    cancel: &Cancel,
) -> Option<Grant> {
    // A rule on the name itself counts as well as a rule on the place.
    let of_name = session.decide(&request_for(session, said, &place.named, PathKind::File));
    if of_name.effect() == Effect::Deny {
        past.note(refused::after_question(session, NameAccess::Write, &place.named, &of_name));
        return None;
    }
    let top = place.located.canonical();
    let mut request = request_for(session, said, top, place.located.kind());
    request.facts.extend(other_names_at(session, place));
    if past.asked.iter().any(|asked| asked == top) || session.decide(&request).effect() == Effect::Allow {
        return None;
    }
    past.asked.push(top.to_owned());
    match session.authorize(request, call, cancel).granted() {
        Ok(granted) => {
            let pattern = grantable(&granted.request.action).into_iter().next()?;
            let now = session.context_for(&granted.request, &[]).now;
            Some(Grant { scope: GrantScope::Once, pattern, granted_at: now, expires_at: 0 })
        }
        Err(decision) => {
            past.note(refused::after_question(session, NameAccess::Write, &place.named, &decision));
            None
        }
    }
}

fn request_for(session: &Session, said: &Named, canonical: &Path, kind: PathKind) -> Request {
    let path = paths::reference(&session.setup.context, &said.path, canonical, canonical, kind);
    let operation = FileOperation::Write(Content::Unknown);
    let access = FileAccess { path, operation, facts: FileFacts::default() };
    let mut request = session.request(Origin::Process, Action::File(access));
    request.facts.push(Fact::NamedBeforeFailure(said.path.clone()));
    request
}

fn other_names_at(session: &Session, place: &DeniedPath) -> Option<Fact> {
    let is_file = place.located.kind() == PathKind::File;
    is_file.then(|| other_names(session, place.located.canonical())).flatten()
}

fn ask_to_run(
    session: &Session,
    call: &CommandCall<'_>,
    ended: &Ended,
    allowed: &[PathBuf],
    past: &mut DenialQuestions,
    cancel: &Cancel,
) -> Option<Rerun> {
    if past.runs == MOST_RUNS {
        past.note(format!("The command was run {} times, and is not run again.", MOST_RUNS + 1));
        return None;
    }
    let mut request = commands::request(session, call).ok()?;
    let open: Vec<String> = allowed.iter().map(|path| path_text::encode(path)).collect();
    request.facts.push(Fact::RunAgain(open.clone()));
    let places = listed(&open);
    match session.authorize(request, call.call, cancel).granted() {
        Ok(granted) => {
            past.runs += 1;
            past.note(format!(
                "The command could not use {places} ({ended}). The user has allowed that, and it was run again \
                 from its beginning: the output of both runs is here, and the effects of the first one remain."
            ));
            Some(Rerun { granted, opened: past.opened.clone() })
        }
        Err(decision) => {
            past.note(format!(
                "The command could not use {places}, and was not run again: {}. What the user has allowed for \
                 longer than one command holds for the next one.",
                RefusalText::for_decision(&decision).why()
            ));
            None
        }
    }
}

impl DenialQuestions {
    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

/// Returns true if the command failed by itself.
///
/// One that succeeded needs no further access, and one that was killed would be killed again.
fn has_failed(ended: &Ended) -> bool {
    let by_itself = match ended.exit {
        Exit::Code(code) => code != 0,
        Exit::Signal(_) => true,
        Exit::Lost => false,
    };
    by_itself && ended.met.is_none()
}

/// Returns true if the directory contains a closed region, a workspace or the temporary directory.
///
/// These would be opened with it.
fn holds_regions(effective: &EffectivePolicy, directory: &Path) -> bool {
    let base = effective.rules.base();
    let mut tops = base.closed.iter().chain(&base.workspace).chain(base.own_tops());
    tops.any(|top| top.starts_with(directory))
}

/// Returns true for paths in kernel file systems, which hold no ordinary files.
fn is_the_kernels(path: &Path) -> bool {
    ["/dev", "/proc", "/sys"].iter().any(|top| path.starts_with(top))
}
