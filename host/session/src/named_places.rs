//! Questions about closed places that a command names, before it starts.
//!
//! Commands do not see closed regions (homes), so the host does not learn of a look-up there, and a program only
//! reports a missing file. So the words of a script are checked first: an existing path in a closed region leads to a
//! question about its place, and a yes shows the place to the command from its start. After a no, or if nobody can be
//! asked, the command runs without it, and a note names the closed place.
//!
//! Paths in the project's own files count as named too, see [`referenced_paths`]. So does a directory that git or
//! `mkdir -p` is about to create.
//!
//! A script can build a path from variables; its place then stays closed while the command runs. If the command fails
//! and its output names a file that it did not find, the host asks about that file afterwards.

use std::path::{Path, PathBuf};

use portcullis_approvals::Cancel;
use portcullis_approvals::question::grantable;
use portcullis_decision::grant::PathPattern;
use portcullis_decision::pattern::FilePattern;
use portcullis_decision::profile::{FileRight, FileRights};
use portcullis_decision::request::{
    Action, Content, FileAccess, FileFacts, FileOperation, Origin, PathKind, SimpleCommand, Word,
};
use portcullis_decision::{
    Caller, Decision, Effect, Fact, Grant, GrantPattern, GrantScope, Reader, RefusalOrigin, RefusalText,
    Request, allow_path, path_text,
};
use portcullis_file_gate::{FileError, Purpose};
use portcullis_session_sandbox::closed_names::CLOSED;
use portcullis_session_sandbox::new_directories::NewDirectory;
use portcullis_text::escape;

use crate::authorized::Granted;
use crate::command_call::CommandCall;
use crate::effective_policy::EffectivePolicy;
use crate::known_places::{Bounds, place_of};
use crate::paths;
use crate::referenced_paths::{self, Reference};
use crate::rejudge::{exclusive, is_still_allowed, may_complete};
use crate::session::Session;

/// Maximum number of questions about one command before it starts.
const MOST_QUESTIONS: usize = 4;
/// Maximum number of words that are looked up, and of paths that files of the project give.
const MOST_WORDS: usize = 64;

/// The answers about the closed places that a command names.
#[derive(Debug, Default)]
pub(crate) struct NamedPlaces {
    /// Grants for this command alone.
    pub(crate) opened: Vec<Grant>,
    /// Directories that were made for it.
    pub(crate) made: Vec<NewDirectory>,
    /// Notes for the model, if the command fails.
    pub(crate) notes: Vec<String>,
    /// The places that answers have opened.
    pub(crate) allowed: Vec<PathBuf>,
}

/// Asks about the closed places that an allowed command names.
pub(crate) fn ask(session: &Session, granted: &Granted, call: Option<&str>, cancel: &Cancel) -> NamedPlaces {
    let mut asked = Vec::new();
    let mut questions = Questions::new(session, call, cancel, &mut asked);
    if !session.setup.inmate.is_agent() {
        let effective = session.effective_policy();
        named(session, &granted.request).into_iter().for_each(|named| questions.ask(&effective, named));
    }
    questions.answers
}

/// Asks about closed places in which a failed command did not find a file, according to its output: the paths of
/// `missing` that exist and were not asked about when it started. If no answer can open a file, a note says why.
/// `asked` contains the places that were asked about since.
pub(crate) fn ask_about_missing(
    session: &Session,
    (request, call): (&Request, &CommandCall<'_>),
    missing: &[String],
    asked: &mut Vec<PathBuf>,
    cancel: &Cancel,
) -> NamedPlaces {
    let mut questions = Questions::new(session, call.call, cancel, asked);
    if missing.is_empty() || session.setup.inmate.is_agent() {
        return questions.answers;
    }
    let effective = session.effective_policy();
    questions.before = named(session, request).into_iter().map(|named| named.path).collect();
    for said in missing {
        let path = path_text::normalize(&call.cwd.join(said));
        let said = Some(said.clone());
        questions.ask(&effective, Named { path, right: FileRight::Read, makes: false, said });
    }
    questions.answers
}

/// The questions about one command.
struct Questions<'a> {
    session: &'a Session,
    call: Option<&'a str>,
    cancel: &'a Cancel,
    /// The places that were asked about.
    asked: &'a mut Vec<PathBuf>,
    /// The paths that were asked about, or could have been, when the command started.
    before: Vec<PathBuf>,
    answers: NamedPlaces,
}

impl<'a> Questions<'a> {
    fn new(
        session: &'a Session,
        call: Option<&'a str>,
        cancel: &'a Cancel,
        asked: &'a mut Vec<PathBuf>,
    ) -> Self {
        Self { session, call, cancel, asked, before: Vec::new(), answers: NamedPlaces::default() }
    }

    /// Asks about the place of a path, if it is closed.
    fn ask(&mut self, effective: &EffectivePolicy, named: Named) {
        let session = self.session;
        if named.said.is_some() && self.before.contains(&named.path) {
            return;
        }
        let is_read = named.right == FileRight::Read && !named.makes;
        let temp = &effective.rules.base().temp;
        if effective.rules.base().is_own(&named.path) {
            let is_missing = || effective.gate.locate(&named.path, Purpose::Existing).is_err();
            if lies_outside(effective, &named.path) && (named.said.is_some() || is_read && is_missing()) {
                self.explain_own((&named.path, temp), FileRight::Read);
            }
            return;
        }
        let Some(target) = Target::find(effective, &named.path, named.makes) else {
            // The gate opens no file of the machine in the temporary directory, so no question can follow there.
            let is_in_temp = named.path.starts_with(temp);
            if is_in_temp
                && lies_outside(effective, &named.path)
                && !is_seen(effective, &named.path, named.right)
            {
                self.explain_own((&named.path, temp), named.right);
            }
            return;
        };
        let right = if target.kind == PathKind::Missing { FileRight::Write } else { named.right };
        if target.kind == PathKind::Missing && is_seen(effective, &target.canonical, right) {
            // In the sandbox's own places, such as the private home, and where it writes around it, the command makes
            // it itself.
            let is_seen_around =
                || target.canonical.parent().is_some_and(|holder| is_seen(effective, holder, right));
            if !effective.rules.base().is_own(&target.canonical) && !is_seen_around() {
                self.answers.make(session, &target.canonical);
            }
            return;
        }
        let place = closed_place(session, effective, &named.path, &target, right)
            .filter(|_| lies_outside(effective, &named.path));
        let Some(mut place) = place else {
            return self.explain_denied(effective, &named.path, &target);
        };
        let is_known = self.asked.iter().any(|asked| place.top.starts_with(asked))
            || self.before.iter().any(|before| before.starts_with(&place.top));
        if is_known || self.asked.len() >= MOST_QUESTIONS || self.cancel.is_cancelled() {
            return;
        }
        self.asked.push(place.top.clone());
        // An answer to an earlier question may have opened it.
        if is_seen(&session.effective_policy(), &named.path, right) {
            return;
        }
        place.request.facts.extend(named.said.map(Fact::NamedBeforeFailure));
        let authorized = session.authorize(place.request, self.call, self.cancel);
        match (authorized.answer, authorized.granted()) {
            (Some(GrantScope::Once), Ok(granted)) => {
                let granted_at = session.context_for(&granted.request, &[]).now;
                let pattern = place.pattern;
                let grant = Grant { scope: GrantScope::Once, pattern, granted_at, expires_at: 0 };
                self.answers.opened.push(grant);
            }
            (_, Ok(_)) => {}
            (_, Err(decision)) => {
                self.answers.notes.push(note(session.setup.reader, &place.top, right, &decision));
                return;
            }
        }
        if target.kind == PathKind::Missing && place.top == target.canonical {
            self.answers.make(session, &target.canonical);
        }
        self.answers.allowed.push(place.top);
    }

    /// Notes that commands do not see a file of the user's, because they have a home and a `/tmp` of their own.
    fn explain_own(&mut self, (path, temp): (&Path, &Path), right: FileRight) {
        if path.symlink_metadata().is_err() || self.answers.notes.len() == MOST_QUESTIONS {
            return;
        }
        let whose = match self.session.setup.reader {
            Reader::Model => "a file of the user's",
            Reader::User => "a file of yours",
        };
        let (verb, allow) = match right {
            FileRight::Write => ("write", allow_path(path, true)),
            FileRight::Read | FileRight::Execute => ("read", allow_path(path, false)),
        };
        let own = if path.starts_with(temp) { "a `/tmp`" } else { "a home directory" };
        self.answers.notes.push(format!(
            "`{}` is {whose}, and commands have {own} of their own. To let commands {verb} it, {}",
            escape(&path.to_string_lossy()),
            self.session.setup.reader.run(&format!("portcullis allow {allow}"))
        ));
    }

    /// Notes which rule denies commands a file that exists.
    fn explain_denied(&mut self, effective: &EffectivePolicy, path: &Path, target: &Target) {
        let canonical = target.canonical.as_path();
        let answer = effective.rules.answer(canonical, FileRight::Read, Caller::Command);
        if answer.effect != Effect::Deny || self.answers.notes.len() == MOST_QUESTIONS {
            return;
        }
        let given = path_text::encode(path);
        let reference = paths::reference(&self.session.setup.context, &given, path, canonical, target.kind);
        let access =
            FileAccess { path: reference, operation: FileOperation::Read, facts: FileFacts::default() };
        let request = self.session.request(Origin::Process, Action::File(access));
        if let Err(decision) = self.session.authorize(request, self.call, self.cancel).granted() {
            let refusal = RefusalText::for_decision(&decision).read_by(self.session.setup.reader);
            self.answers.notes.push(closed(canonical, refusal));
        }
    }
}

impl NamedPlaces {
    /// Makes a directory that the command may make.
    fn make(&mut self, session: &Session, path: &Path) {
        match make(session, path) {
            Ok(made) => self.made.push(made),
            Err(why) => {
                self.notes.push(format!("`{}` cannot be made: {why}", escape(&path.to_string_lossy())))
            }
        }
    }
}

/// Makes a directory for a command. Refuses it if a rule on names would ask about it, or if it would complete a git
/// repository.
fn make(session: &Session, path: &Path) -> Result<NewDirectory, String> {
    let shown = path_text::encode(path);
    let given = paths::reference(&session.setup.context, &shown, path, path, PathKind::Directory);
    let access =
        FileAccess { path: given, operation: FileOperation::CreateDirectory, facts: FileFacts::default() };
    let request = session.request(Origin::Process, Action::File(access));
    let effective = session.effective_policy();
    let _alone = exclusive(session, &shown).map_err(|error| error.to_string())?;
    if !is_still_allowed(session, &effective, &request, &[]) || !may_complete(session, &effective, path) {
        return Err("programs of the user give this name a meaning".to_owned());
    }
    NewDirectory::make(path).map_err(|error| error.to_string())
}

/// A path in a closed region that a command names.
struct Named {
    path: PathBuf,
    right: FileRight,
    /// Whether the program makes a directory there if there is none.
    makes: bool,
    /// The path as the command's output names it, if the command has failed.
    said: Option<String>,
}

/// The file or directory at a named path, with links followed.
struct Target {
    canonical: PathBuf,
    kind: PathKind,
}

impl Target {
    /// Finds it in the host's own view. A missing one is found only if the program `makes` it.
    fn find(effective: &EffectivePolicy, path: &Path, makes: bool) -> Option<Self> {
        let existing = |path: &Path| effective.gate.locate_in_host_view(path, Purpose::Existing);
        match existing(path) {
            Ok(located) => Some(Self { canonical: located.canonical().to_owned(), kind: located.kind() }),
            Err(FileError::NotFound { .. }) if makes => {
                let holder =
                    existing(path.parent()?).ok().filter(|holder| holder.kind() == PathKind::Directory)?;
                Some(Self { canonical: holder.canonical().join(path.file_name()?), kind: PathKind::Missing })
            }
            Err(_) => None,
        }
    }
}

/// A question about a place.
struct ClosedPlace {
    top: PathBuf,
    request: Request,
    /// The paths that a yes opens to this command.
    pattern: GrantPattern,
}

/// Returns the paths in closed regions that a command names by its words, without looking at the disk.
fn named(session: &Session, request: &Request) -> Vec<Named> {
    let Action::Command(command) = &request.action else { return Vec::new() };
    let (Ok(parsed), Some(mut cwd)) = (&command.parsed, path_text::decode(&command.cwd.canonical)) else {
        return Vec::new();
    };
    let home = PathBuf::from(&session.setup.context.machine.home);
    let effective = session.effective_policy();
    let base = effective.rules.base();
    let is_outside = |path: &Path| lies_outside(&effective, path);
    let mut found = Vec::new();
    let (mut referenced_left, mut room) = (MOST_WORDS, referenced_paths::ROOM);
    for simple in &parsed.commands {
        for (index, word) in simple.argv.iter().enumerate().skip(1).filter(|(_, word)| is_plain(word)) {
            let value = word.value.split_once('=').map_or(word.value.as_str(), |(_, value)| value);
            let Some(path) = path_of(value, &cwd, &home) else { continue };
            let right = wanted(simple, index).filter(|_| is_outside(&path) && found.len() < MOST_WORDS);
            let makes = makes_directories(simple);
            found.extend(right.map(|right| Named { path, right, makes, said: None }));
        }
        let words: Vec<&str> = simple.argv.iter().map(|word| word.value.as_str()).collect();
        let referenced = referenced_paths::find(&words, &cwd, &base.workspace, &mut room);
        let referenced = referenced.into_iter().filter(|reference| is_outside(&reference.path));
        let referenced: Vec<Named> = referenced
            .take(referenced_left)
            .map(|Reference { path, right }| Named { path, right, makes: false, said: None })
            .collect();
        referenced_left -= referenced.len();
        found.extend(referenced);
        if let [program, directory] = simple.argv.as_slice()
            && program.value == "cd"
            && is_plain(directory)
            && let Some(path) = path_of(&directory.value, &cwd, &home)
        {
            cwd = path;
        }
    }
    found
}

/// Returns true if a path lies in a closed region, and the project neither in it nor around it.
fn lies_outside(effective: &EffectivePolicy, path: &Path) -> bool {
    let base = effective.rules.base();
    let mut workspaces = base.workspace.iter();
    base.closed.iter().any(|region| region.is_absolute() && path.starts_with(region))
        && !workspaces.any(|workspace| path.starts_with(workspace) || workspace.starts_with(path))
}

/// Returns true if the program gets exactly this word, except for a home directory at its beginning.
fn is_plain(word: &Word) -> bool {
    let is_of_home = word.value.starts_with("~/") || word.value == "~";
    word.literal || is_of_home && !word.value.contains(['$', '`', '*', '?', '[', '{', '\\'])
}

/// Returns the path that a word may be, if it may be one.
fn path_of(word: &str, cwd: &Path, home: &Path) -> Option<PathBuf> {
    if word.is_empty() || word.starts_with('-') || word.contains("://") {
        return None;
    }
    let path = match word.strip_prefix('~') {
        Some("") => home.to_owned(),
        Some(below) => home.join(below.strip_prefix('/')?),
        None => cwd.join(word),
    };
    Some(path_text::normalize(&path))
}

/// Returns the right that a program wants to the path in its word number `index`, as far as is known of the program;
/// `None` if the word is only a text to it.
fn wanted(simple: &SimpleCommand, index: usize) -> Option<FileRight> {
    let words: Vec<&str> = simple.argv.iter().map(|word| word.value.as_str()).collect();
    let program = words.first().copied().unwrap_or_default();
    let program = program.rsplit('/').next().unwrap_or_default();
    let has = |wanted: &str| words.iter().skip(1).any(|word| word.starts_with(wanted));
    let is_last = index + 1 == words.len();
    let writes = match program {
        "echo" | "printf" | "export" | "alias" | "cd" => return None,
        "ln" if has("-s") && !is_last => return None,
        "rm" | "rmdir" | "mv" | "touch" | "mkdir" | "tee" | "truncate" | "chmod" | "chown" | "shred" => true,
        "cp" | "ln" | "install" | "rsync" => is_last,
        "sed" | "perl" => has("-i"),
        "git" => ["push", "worktree", "-C"].iter().any(|word| words.contains(word)),
        _ => false,
    };
    Some(if writes { FileRight::Write } else { FileRight::Read })
}

/// Returns the question about a path, if it lies in a closed region and no other rule matches it.
fn closed_place(
    session: &Session,
    effective: &EffectivePolicy,
    path: &Path,
    target: &Target,
    right: FileRight,
) -> Option<ClosedPlace> {
    let canonical = target.canonical.as_path();
    let answer = effective.rules.answer(canonical, FileRight::Read, Caller::Command);
    let is_directory = match target.kind {
        PathKind::Directory | PathKind::Missing => true,
        PathKind::File => false,
        PathKind::Symlink | PathKind::Other => return None,
    };
    if answer.effect != Effect::Ask || answer.rule != CLOSED {
        return None;
    }
    let settings = session.settings();
    // Dot names of a home are the state of tools, which look for them all day.
    let is_of_a_tool = |home: &PathBuf| {
        let first = canonical.strip_prefix(home).ok().and_then(|below| below.iter().next());
        first.is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
    };
    if settings.homes.iter().any(is_of_a_tool) {
        return None;
    }
    let bounds = Bounds { base: effective.rules.base(), homes: &settings.homes };
    let place = place_of(&bounds, canonical, is_directory, &[canonical.to_owned()]);
    if place.is_none() && is_directory {
        return None;
    }
    let given = path_text::encode(path);
    let reference = paths::reference(&session.setup.context, &given, path, canonical, target.kind);
    let (operation, rights) = match right {
        FileRight::Write if target.kind == PathKind::Missing => {
            (FileOperation::CreateDirectory, FileRights::READ_WRITE)
        }
        FileRight::Write => (FileOperation::Write(Content::Unknown), FileRights::READ_WRITE),
        FileRight::Read | FileRight::Execute if is_directory => (FileOperation::List, FileRights::READ),
        FileRight::Read | FileRight::Execute => (FileOperation::Read, FileRights::READ),
    };
    let access = FileAccess { path: reference, operation, facts: FileFacts::default() };
    let action = Action::File(access);
    let (top, pattern, fact) = match place {
        Some(place) => {
            let pattern =
                GrantPattern::Path(PathPattern { pattern: FilePattern::Tree(place.top.clone()), rights });
            (place.top.clone(), pattern, Fact::KnownPlace(place))
        }
        // A yes is for this file alone, and the question says so.
        None => {
            let top = canonical.to_owned();
            (top.clone(), grantable(&action).into_iter().next()?, Fact::QuestionPlace(top))
        }
    };
    let mut request = session.request(Origin::Process, action);
    request.facts.push(fact);
    Some(ClosedPlace { top, request, pattern })
}

/// Returns true if a program makes the directories that its words name.
fn makes_directories(simple: &SimpleCommand) -> bool {
    let words: Vec<&str> = simple.argv.iter().map(|word| word.value.as_str()).collect();
    let Some((program, rest)) = words.split_first() else { return false };
    match program.rsplit('/').next().unwrap_or_default() {
        "git" => ["clone", "init", "worktree"].iter().any(|verb| rest.contains(verb)),
        "mkdir" => rest.iter().any(|word| {
            *word == "--parents" || word.starts_with('-') && !word.starts_with("--") && word.contains('p')
        }),
        _ => false,
    }
}

/// Returns true if commands may already do this.
fn is_seen(effective: &EffectivePolicy, path: &Path, right: FileRight) -> bool {
    effective.rules.answer(path, right, Caller::Command).effect == Effect::Allow
}

/// Returns the note that a place is closed, with the ways to open it.
fn note(reader: Reader, top: &Path, right: FileRight, decision: &Decision) -> String {
    let refusal = RefusalText::for_decision(decision).read_by(reader);
    if refusal.origin != RefusalOrigin::Unanswered {
        return closed(top, refusal);
    }
    let (place, why) = (escape(&top.to_string_lossy()), refusal.why());
    let allow = allow_path(top, right == FileRight::Write);
    let run = reader.run(&format!("portcullis allow {allow}"));
    let ask = match reader {
        Reader::Model => "ask with the read tool, or ",
        Reader::User => "",
    };
    format!("`{place}` is closed to commands: {why}. To use it, {ask}{run}")
}

/// Returns the sentence that a path is closed, with the rule.
fn closed(path: &Path, refusal: RefusalText<'_>) -> String {
    let why = refusal.with_next_step(None);
    format!("`{}` is closed to commands: {why}", escape(&path.to_string_lossy()))
}
