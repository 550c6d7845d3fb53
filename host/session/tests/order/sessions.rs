//! Sessions in the projects of a scene.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use portcullis_decision::context::{AgentInfo, Machine, Workspace};
use portcullis_decision::pattern::FilePattern;
use portcullis_decision::profile::{FileRights, FileRule, Profile};
use portcullis_decision::request::ActionKinds;
use portcullis_decision::verdict::{Cause, OutputEvaluation, ToolOutput};
use portcullis_decision::{
    Chain, Context, Effect, Evaluation, Member, Mode, Policy, PolicyError, Reader, Request, Verdict,
};
use portcullis_exec_surface::RULES;
use portcullis_sandbox::NameOrder;
use portcullis_session::{
    Answer, Answerer, Basis, ChoiceKind, Confining, Entry, Journal, JournalError, NoGrantStore,
    NoReservations, OwnDirectories, Prompter, Question, Refusal, SandboxSubject, Session, Setup,
};
use portcullis_settings::{Places, RealDisk, discover, resolve};

use crate::scene::Scene;

/// Allows every command, and reading one directory; abstains on other files.
struct Commands {
    readable: PathBuf,
}

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
        let rule = FileRule {
            id: "readable".to_owned(),
            pattern: FilePattern::Tree(self.readable.clone()),
            rights: FileRights::READ,
            effect: Effect::Allow,
            conceal: false,
            condition: String::new(),
            reason: String::new(),
            setting: String::new(),
        };
        Ok(Some(Profile { files: vec![rule], ..Profile::default() }))
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

/// Says yes to paths outside the project, and no if a rule on names asks as well.
#[derive(Default)]
pub(crate) struct Outside {
    /// Called before the "yes".
    before: Mutex<Option<Arc<dyn Fn() + Send + Sync>>>,
    /// Says yes as well where a rule on names asks.
    about_names: bool,
}

impl Outside {
    /// Returns a prompter that says yes to everything.
    pub(crate) fn and_names() -> Self {
        Self { about_names: true, ..Self::default() }
    }

    /// Calls `before` while each of the next questions is open.
    pub(crate) fn ask(&self, before: Arc<dyn Fn() + Send + Sync>) {
        *self.before.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
    }
}

impl Prompter for Outside {
    fn show(&self, question: &Question, answerer: Answerer) {
        let is_about_names = |id: &str| question.rule == id || question.reason.contains(id);
        let yes = question.choices.iter().position(|choice| choice.kind == ChoiceKind::Allow);
        let yes = yes.filter(|_| self.about_names || !RULES.iter().any(|rule| is_about_names(rule.id)));
        let before = self.before.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(before) = before.filter(|_| yes.is_some()) {
            before();
        }
        answerer.answer(yes.map_or(Answer::Refused(Refusal::User), Answer::Choice));
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

impl Scene {
    /// Opens a session in `project` as a separate process would; its commands may read the other project.
    pub(crate) fn session(&self, name: &str, project: &Path, prompter: Arc<Outside>) -> Arc<Session> {
        let temp = self.place().join(name);
        fs::create_dir(&temp).expect("a directory");
        let places = Places::usual(project, &self.home);
        let resolved = resolve(&discover(&places, &RealDisk).expect("settings"), &places, &RealDisk);
        let mut resolved = resolved.expect("resolved");
        resolved.required_tier = self.least;
        // This rule would refuse the attack before the lock on name changes has to.
        resolved.lifted.push("host.new-dot-files".to_owned());
        let order = NameOrder::open(&places.state_directory.join("names")).expect("an order of names");
        let setup = Setup {
            variables: Box::new(Default::default),
            context: self.context(project),
            clock: Box::new(|| SystemTime::UNIX_EPOCH),
            journal: Box::new(NoJournal),
            prompter,
            keeper: Arc::new(NoGrantStore),
            reservations: Box::new(NoReservations),
            changes: None,
            confinement: Confining::Sandbox {
                executable: std::env::current_exe().expect("own path"),
                temp,
                order,
            },
            own: OwnDirectories::default(),
            inmate: SandboxSubject::Commands,
            reader: Reader::Model,
            credentials: Arc::new(portcullis_session::NoCredentials),
            offers: Box::new(portcullis_session::NoCredentials),
        };
        let member =
            Member { policy: Arc::new(Commands { readable: self.project.clone() }), mode: Mode::Enforce };
        let chain = Chain { members: vec![member], ..Chain::default() };
        let basis = Basis { resolved, chain };
        portcullis_session::open(setup, basis).expect("a session")
    }

    pub(crate) fn context(&self, project: &Path) -> Context {
        let agent = self.home.join(".pi/agent").display().to_string();
        let home = self.home.display().to_string();
        Context {
            session_id: "s".into(),
            agent: AgentInfo { directory: agent, ..AgentInfo::default() },
            workspace: Workspace { roots: vec![project.display().to_string()], ..Workspace::default() },
            machine: Machine { home, temp: "/tmp".into(), uid: own_number(), ..Machine::default() },
            interactive: true,
            now: 0,
            grants: vec![],
            explain: false,
            attributes: vec![],
        }
    }
}

fn own_number() -> u32 {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata("/proc/self").expect("procfs").uid()
}
