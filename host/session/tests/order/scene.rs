//! A project with sessions in it, and the old way to write a file beside them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::SystemTime;

use portcullis_config::{Places, RealDisk, discover, resolve};
use portcullis_confine::NameOrder;
use portcullis_decision::context::{AgentInfo, Machine, Workspace};
use portcullis_decision::profile::Profile;
use portcullis_decision::request::{
    Action, ActionKinds, Content, FileAccess, FileOperation, Origin, PathKind, PathRef, Text, Zone,
};
use portcullis_decision::verdict::{Cause, OutputEvaluation, ToolOutput};
use portcullis_decision::{
    Base, Chain, Context, Evaluation, Member, Mode, Permit, Policy, PolicyError, Request, RuleSet, Verdict,
};
use portcullis_file_gate::{FileError, Gate, Located, Purpose, Views, WriteOptions};
use portcullis_names::{Change, Class, Site, class, git};
use portcullis_session::{
    Answerer, Basis, Cancel, Confining, Desk, Entry, FileCall, FileFailure, Inmate, Journal, JournalError,
    NoKeeper, NoReservations, Question, Refusal, Session, Setup,
};

/// Allows every command, and has no rules: files are the base's.
struct Commands;

impl Policy for Commands {
    fn name(&self) -> &str {
        "commands"
    }
    fn digest(&self) -> &str {
        "d"
    }
    fn handles(&self) -> ActionKinds {
        ActionKinds { command: true, ..ActionKinds::default() }
    }
    fn evaluate(&self, _: &Request, _: &Context) -> Result<Evaluation, PolicyError> {
        Ok(Evaluation { verdict: Verdict::Allow(Vec::new()), cause: Cause::default(), trace: vec![] })
    }
    fn standing(&self, _: &Context) -> Result<Option<Profile>, PolicyError> {
        Ok(None)
    }
    fn for_command(&self, _: &Request, _: &Context) -> Result<Option<Profile>, PolicyError> {
        Ok(None)
    }
    fn inspect(&self, _: &ToolOutput, _: &Context) -> Result<Option<OutputEvaluation>, PolicyError> {
        Ok(None)
    }
    fn brief(&self, _: &Context) -> Result<String, PolicyError> {
        Ok(String::new())
    }
}

/// Says no to every question.
struct Refusing;

impl Desk for Refusing {
    fn show(&self, _: &Question, answerer: Answerer) {
        answerer.answer(portcullis_session::Answer::Refused(Refusal::User));
    }
    fn withdraw(&self, _id: u64, _why: &str) {}
    fn notice(&self, _text: &str) {}
}

struct NoJournal;

impl Journal for NoJournal {
    fn before(&self, _: &Entry<'_>) -> Result<(), JournalError> {
        Ok(())
    }
    fn after(&self, _: SystemTime, _: &str, _: &str) {}
}

/// A project in a home directory.
pub(crate) struct Scene {
    directory: tempfile::TempDir,
    pub(crate) project: PathBuf,
    home: PathBuf,
    pub(crate) attack: PathBuf,
}

impl Scene {
    /// Makes one with a repository, a submodule's working tree and the compiled attack; none without a compiler.
    pub(crate) fn new() -> Option<Self> {
        // Not below `/tmp`, which the sandbox replaces.
        let directory = tempfile::Builder::new().prefix("portcullis-test-").tempdir_in("/var/tmp");
        let directory = directory.expect("a directory");
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("opened to all");
        let top = directory.path().canonicalize().expect("a path");
        let (home, project) = (top.join("home/u"), top.join("home/u/p"));
        for made in [project.join("sub"), project.join("q"), home.join(".pi/agent")] {
            fs::create_dir_all(made).expect("a directory");
        }
        let attack = project.join("attack");
        let source = top.join("attack.c");
        fs::write(&source, include_str!("attack.c")).expect("written");
        let compiled = Command::new("cc").args(["-O1", "-o"]).args([&attack, &source]).status();
        let scene = Self { directory, project, home, attack };
        scene.git(&["init", "-q"]);
        fs::write(scene.project.join("sub/.git"), "gitdir: ../.git/modules/x\n").expect("a link to a module");
        compiled.is_ok_and(|status| status.success()).then_some(scene)
    }

    /// Runs the user's own git in the project.
    pub(crate) fn git(&self, words: &[&str]) {
        let mut git = Command::new("git");
        git.args(words).current_dir(&self.project).env("HOME", &self.home).env("GIT_CONFIG_NOSYSTEM", "1");
        // Whether it succeeds is the repository's business.
        drop(git.output().expect("git runs"));
    }

    /// A file that appears when git has run a program that was named to it.
    pub(crate) fn mark(&self) -> PathBuf {
        self.directory.path().join("mark")
    }

    /// Opens a session as a process of its own would.
    pub(crate) fn session(&self, name: &str) -> Arc<Session> {
        let temp = self.directory.path().join(name);
        fs::create_dir(&temp).expect("a directory");
        let places = Places::usual(&self.project, &self.home);
        let resolved = resolve(&discover(&places, &RealDisk).expect("settings"), &places, &RealDisk);
        let mut resolved = resolved.expect("resolved");
        // It would refuse the attack before the order of names has to.
        resolved.lifted.push("host.new-dot-files".to_owned());
        let order = NameOrder::open(&places.state_directory.join("names")).expect("an order of names");
        let setup = Setup {
            variables: Box::new(Vec::new),
            context: self.context(),
            clock: Box::new(|| SystemTime::UNIX_EPOCH),
            journal: Box::new(NoJournal),
            desk: Arc::new(Refusing),
            keeper: Arc::new(NoKeeper),
            reservations: Box::new(NoReservations),
            confinement: Confining::Sandbox {
                executable: std::env::current_exe().expect("own path"),
                temp,
                order,
            },
            inmate: Inmate::Commands,
        };
        let member = Member { policy: Arc::new(Commands), mode: Mode::Enforce };
        let chain = Chain { members: vec![member], ..Chain::default() };
        let basis = Basis { resolved, chain };
        Session::open(setup, basis).expect("a session")
    }

    fn context(&self) -> Context {
        let agent = self.home.join(".pi/agent").display().to_string();
        let home = self.home.display().to_string();
        Context {
            session_id: "s".into(),
            agent: AgentInfo { directory: agent, ..AgentInfo::default() },
            workspace: Workspace { roots: vec![self.project.display().to_string()], ..Workspace::default() },
            machine: Machine { home, temp: "/tmp".into(), uid: own_number(), ..Machine::default() },
            interactive: true,
            now: 0,
            grants: vec![],
            explain: false,
            attributes: vec![],
        }
    }

    /// Writes a file by the session's tool.
    pub(crate) fn write(&self, session: &Session, name: &str, content: &str) -> Result<(), FileFailure> {
        let path = self.project.join(name);
        let call = FileCall { path: &path, given: name, call: None, cancel: &Cancel::default() };
        session.write_file(call, content).map(|_| ())
    }

    /// Writes a file in the old order: judged first, then made and given its name, whatever has happened meanwhile.
    pub(crate) fn write_in_old_order(
        &self,
        gate: &Gate,
        name: &str,
        content: &str,
    ) -> Result<bool, FileError> {
        let located = gate.locate(&self.project.join(name), Purpose::ForWriting)?;
        if self.is_harmful(located.canonical(), content) {
            return Ok(false);
        }
        let permit = self.permit(&located, content);
        gate.write(located, permit, content.as_bytes(), WriteOptions::default()).map(|_| true)
    }

    /// Whether a file with this content would do harm by what the rules on names say now.
    pub(crate) fn is_harmful(&self, path: &Path, content: &str) -> bool {
        let roots = [self.project.clone()];
        let exists = |path: &Path| path.symlink_metadata().is_ok();
        let is_link = |path: &Path| path.is_symlink();
        let site = Site { exists: &exists, is_link: &is_link, ..Site::of(&roots[0], &roots) };
        match class(path, Change::Write, &site) {
            Class::Free => false,
            Class::Judged(_, kind) => {
                git::judge(kind, path, None, content.as_bytes(), &site) != git::Judgement::Harmless
            }
            Class::Walk | Class::Completes(_) | Class::Asked(_) | Class::Denied(_) => true,
        }
    }

    fn permit(&self, located: &Located, content: &str) -> Permit {
        let text = located.canonical_text().to_owned();
        let path = PathRef {
            given: text.clone(),
            absolute: text.clone(),
            canonical: text.clone(),
            zone: Zone::Workspace,
            relative: text,
            kind: PathKind::Missing,
        };
        let operation = FileOperation::Write(Content::Text(Text::cut(content)));
        let action = Action::File(FileAccess { path, operation, facts: located.facts() });
        let request =
            Request { id: "1".into(), parent: None, origin: Origin::Agent, action, attributes: vec![] };
        let base = Base { workspace: vec![self.project.clone()], ..Base::default() };
        let rules = RuleSet::compile(Vec::new(), base, &[]);
        let decision = Chain::default().decide(&request, &self.context(), &rules, &[]);
        decision.permit(&request).expect("a permit for what is free")
    }
}

pub(crate) fn gate() -> Gate {
    Gate::new(Views::Host).expect("a gate")
}

fn own_number() -> u32 {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata("/proc/self").expect("procfs").uid()
}
