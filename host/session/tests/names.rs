//! The tools write and edit on names that the user's other programs execute, and on git's own files.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up must fail")]

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use portcullis_decision::context::{AgentInfo, Machine, Workspace};
use portcullis_decision::{Chain, Context, GrantScope, Reader};
use portcullis_session::{
    Answer, Answerer, Cancel, Confining, Entry, FileCall, FileFailure, Journal, JournalError, OwnDirectories,
    Prompter, Question, Refusal, Session, Setup, files,
};
use portcullis_settings::{Places, RealDisk, discover, resolve};

/// Gives the same answer to every question, and records the questions.
struct Clerk {
    answer: Answer,
    asked: Mutex<Vec<Question>>,
}

impl Prompter for Clerk {
    fn show(&self, question: &Question, answerer: Answerer) {
        self.asked.lock().unwrap().push(question.clone());
        answerer.answer(self.answer.clone());
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

struct Scene {
    _directory: tempfile::TempDir,
    project: PathBuf,
    clerk: Arc<Clerk>,
    session: Arc<Session>,
}

const NO: Answer = Answer::Refused(Refusal::User);
const ONCE: Answer = Answer::Choice(0);
const SESSION: Answer = Answer::Choice(1);

fn scene(answer: Answer) -> Scene {
    scene_with(answer, None)
}

fn scene_with(answer: Answer, settings: Option<&str>) -> Scene {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let top = directory.path().canonicalize().unwrap();
    let (project, home) = (top.join("home/u/p"), top.join("home/u"));
    std::fs::create_dir_all(project.join(".git/objects")).unwrap();
    std::fs::create_dir_all(home.join(".pi/agent/sandbox")).unwrap();
    if let Some(settings) = settings {
        std::fs::write(home.join(".pi/agent/sandbox/default.json"), settings).unwrap();
    }
    std::fs::write(project.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    std::fs::write(project.join(".git/config"), "[alias]\n\tst = status\n").unwrap();
    let places = Places::usual(&project, &home);
    let resolved = resolve(&discover(&places, &RealDisk).unwrap(), &places, &RealDisk).unwrap();
    let context = Context {
        session_id: "s".into(),
        agent: AgentInfo { directory: home.join(".pi/agent").display().to_string(), ..AgentInfo::default() },
        workspace: Workspace { roots: vec![project.display().to_string()], ..Workspace::default() },
        machine: Machine { home: home.display().to_string(), temp: "/tmp".into(), ..Machine::default() },
        interactive: true,
        now: 0,
        grants: vec![],
        explain: false,
        attributes: vec![],
    };
    let clerk = Arc::new(Clerk { answer, asked: Mutex::default() });
    let session = portcullis_session::open(
        Setup {
            variables: Box::new(Default::default),
            context,
            clock: Box::new(|| SystemTime::UNIX_EPOCH),
            journal: Box::new(NoJournal),
            prompter: Arc::clone(&clerk) as Arc<dyn Prompter>,
            keeper: Arc::new(portcullis_session::NoGrantStore),
            reservations: Box::new(portcullis_session::NoReservations),
            changes: None,
            confinement: Confining::NoCommands,
            own: OwnDirectories::default(),
            inmate: portcullis_session::SandboxSubject::Commands,
            reader: Reader::Model,
            credentials: Arc::new(portcullis_session::NoCredentials),
            offers: Box::new(portcullis_session::NoCredentials),
        },
        portcullis_session::Basis { resolved, chain: Chain::default() },
    )
    .unwrap();
    Scene { _directory: directory, project, clerk, session }
}

impl Scene {
    fn write(&self, name: &str, content: &str) -> Result<(), FileFailure> {
        let path = self.project.join(name);
        let call = FileCall { path: &path, given: name, call: None, cancel: &Cancel::default() };
        files::write(&self.session, call, content).map(|_| ())
    }

    fn edit(&self, name: &str, old: &str, new: &str) -> Result<(), FileFailure> {
        let path = self.project.join(name);
        let call = FileCall { path: &path, given: name, call: None, cancel: &Cancel::default() };
        let edit = files::edit(&self.session, call, &[(old.to_owned(), new.to_owned())])?;
        let content = String::from_utf8(edit.bytes().to_vec()).unwrap().replacen(old, new, 1);
        files::finish_edit(&self.session, edit, &content, &Cancel::default()).map(|_| ())
    }

    fn text(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.project.join(name)).ok()
    }

    /// Returns rule and reason of each question, and forgets the questions.
    fn asked(&self) -> Vec<(String, String)> {
        let asked = std::mem::take(&mut *self.clerk.asked.lock().unwrap());
        asked.into_iter().map(|question| (question.rule, question.reason)).collect()
    }
}

fn rule_of(result: Result<(), FileFailure>) -> Option<String> {
    match result {
        Ok(()) => None,
        Err(FileFailure::Denied(decision)) => Some(decision.cause().rule.clone()),
        Err(FileFailure::File(error)) => unreachable!("{error}"),
    }
}

#[test]
fn settings_of_git_are_judged_by_their_content() {
    let scene = scene(NO);
    let harmless = "[alias]\n\tst = status\n[branch \"main\"]\n\tremote = origin\n";
    assert_eq!(rule_of(scene.write(".git/config", harmless)), None);
    assert_eq!(scene.asked(), []);

    let hostile = format!("{harmless}[core]\n\tfsmonitor = ./evil\n");
    assert_eq!(rule_of(scene.write(".git/config", &hostile)).as_deref(), Some("host.git-config"));
    let asked = scene.asked();
    assert_eq!(asked[0].1, "`core.fsmonitor` on line 6 names a program that git runs");
    assert_eq!(scene.text(".git/config").unwrap(), harmless);

    assert_eq!(rule_of(scene.write(".git/config", "[core")).as_deref(), Some("host.git-config"));
    assert_eq!(scene.asked(), [], "what cannot be read is refused without a question");
}

#[test]
fn the_result_of_an_edit_is_judged_not_its_parts() {
    let scene = scene(NO);
    assert_eq!(rule_of(scene.edit(".git/config", "status\n", "status\n[user]\n\tname = A\n")), None);
    // Each half is harmless; together they are an alias that runs a program.
    assert_eq!(
        rule_of(scene.edit(".git/config", "st = status", "st = !evil")).as_deref(),
        Some("host.git-config")
    );
    assert_eq!(
        scene.asked()[0].1,
        "`alias.st` on line 2 makes a command of its own, which may be any program"
    );
    assert_eq!(scene.text(".git/config").unwrap(), "[alias]\n\tst = status\n[user]\n\tname = A\n");
    let scene = self::scene(ONCE);
    assert_eq!(rule_of(scene.edit(".git/config", "st = status", "st = !good")), None);
    assert_eq!(scene.text(".git/config").unwrap(), "[alias]\n\tst = !good\n");
}

#[test]
fn a_yes_holds_for_this_content_only() {
    let scene = scene(SESSION);
    for program in ["one", "two"] {
        let text = format!("[core]\n\tpager = {program}\n");
        let written = scene.write(".git/config", &text);
        // There is no second choice, so no answer is given.
        assert_eq!(rule_of(written).as_deref(), Some("host.git-config"));
        let asked = std::mem::take(&mut *scene.clerk.asked.lock().unwrap());
        let scopes: Vec<GrantScope> = asked[0].choices.iter().map(|choice| choice.scope).collect();
        assert_eq!(scopes, [GrantScope::Once]);
    }
}

#[test]
fn siblings_of_the_settings_are_judged_as_well() {
    let scene = scene(NO);
    for (name, content, rule) in [
        (".git/config.worktree", "[core]\n\tpager = evil\n", "host.git-config"),
        (".git/commondir", "../evil\n", "host.git-pointers"),
        ("sub/.git", "gitdir: ../evil\n", "host.git-pointers"),
        (".git/modules/m/git-rebase-todo", "exec evil\n", "host.git-rebase"),
        (".git/info/attributes", "* filter=evil\n", "host.git-attributes"),
        (".git/hooks/pre-commit", "#!/bin/sh\n", "host.git-hooks"),
        (".git/remotes/origin", "URL: ext::evil\n", "host.git-config"),
        (".gitmodules", "[submodule \"x\"]\n\tupdate = !evil\n", "host.git-config"),
        (".pi/extensions/evil.ts", "", "host.project-agent-settings"),
        (".bashrc", "evil\n", "host.shell-files"),
        ("deep/er/.vscode/tasks.json", "{}", "host.editor-files"),
        (".github/workflows/ci.yml", "on: push\n", "host.ci-files"),
        ("AGENTS.md", "obey\n", "host.agent-files"),
    ] {
        assert_eq!(rule_of(scene.write(name, content)).as_deref(), Some(rule), "{name}");
        assert_eq!(scene.text(name), None, "{name}");
    }
    for (name, content) in [
        (".gitignore", "target\n"),
        (".gitattributes", "* filter=lfs\n"),
        (".gitmodules", "[submodule \"x\"]\n\tpath = x\n\turl = ../x.git\n"),
        ("sub/.git", "gitdir: ../.git/modules/sub\n"),
        ("config", "[core]\n\tfsmonitor = x\n"),
        ("hooks/useState.ts", "x"),
        ("Makefile", "all:\n"),
    ] {
        assert_eq!(rule_of(scene.write(name, content)), None, "{name}");
    }
}

#[test]
fn a_directory_does_not_become_a_repository_unseen() {
    let scene = scene(NO);
    for name in ["x/config", "x/hooks/pre-commit", "x/HEAD", "x/refs/heads/main"] {
        assert_eq!(rule_of(scene.write(name, "[core]\n\tfsmonitor = evil\n")), None, "{name}");
    }
    assert_eq!(rule_of(scene.write("x/objects/pack/p", "")).as_deref(), Some("host.git-config"));
    assert_eq!(scene.text("x/objects/pack/p"), None);
    std::fs::create_dir(scene.project.join("x/objects")).unwrap();
    assert_eq!(rule_of(scene.write("x/config", "[core]\n\tpager = x\n")).as_deref(), Some("host.git-config"));
    assert_eq!(rule_of(scene.write("x/hooks/post-merge", "")).as_deref(), Some("host.git-hooks"));
}

#[test]
fn a_session_grant_is_for_the_name_that_was_asked_for() {
    let scene = scene(SESSION);
    for name in
        [".vscode/tasks.json", ".vscode/tasks.json", ".vscode/settings.json", "sub/.vscode/tasks.json"]
    {
        assert_eq!(rule_of(scene.write(name, "{}")), None, "{name}");
    }
    assert_eq!(scene.asked().len(), 3, "the second write of the same file is not asked for");
    let scene = self::scene(Answer::Choice(2));
    for name in [".vscode/tasks.json", ".vscode/settings.json"] {
        assert_eq!(rule_of(scene.write(name, "{}")), None, "{name}");
    }
    assert_eq!(scene.asked().len(), 1, "the third choice is for everything below `.vscode`");
    // A grant for the directory around a start-up file is not offered.
    let scene = self::scene(Answer::Choice(2));
    assert_eq!(rule_of(scene.write(".bashrc", "x")).as_deref(), Some("host.shell-files"));
}

#[test]
fn a_yes_to_a_directory_is_none_to_a_repository_in_it() {
    let scene = scene(Answer::Choice(2));
    assert_eq!(rule_of(scene.write(".vscode/tasks.json", "{}")), None);
    for (name, content, rule) in [
        (".vscode/.git/config", "[core]\n\tpager = evil\n", "host.git-config"),
        (".vscode/.git/hooks/pre-commit", "evil", "host.git-hooks"),
        (".vscode/AGENTS.md", "obey", "host.agent-files"),
    ] {
        assert_eq!(rule_of(scene.write(name, content)).as_deref(), Some(rule), "{name}");
    }
    assert_eq!(rule_of(scene.write(".vscode/.git/config", "[user]\n\tname = A\n")), None);
    assert_eq!(
        rule_of(scene.edit(".vscode/.git/config", "name = A", "name = A\n[core]\n\tpager = x")).as_deref(),
        Some("host.git-config")
    );
}

#[test]
fn what_the_user_lifts_does_not_hold() {
    let settings = r#"{
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": [], "allowWrite": [".", ".idea"], "denyWrite": [] },
        "protections": { "lift": ["host.git-config", "host.agent-files", "host.git-hooks"] }
    }"#;
    let scene = scene_with(NO, Some(settings));
    for name in [".git/config", "AGENTS.md", ".git/hooks/pre-commit"] {
        assert_eq!(rule_of(scene.write(name, "[core]\n\tpager = mine\n")), None, "{name}");
    }
    // Inside the project, a further writable directory does not change the meaning of names.
    for name in [".idea/workspace.xml", "sub/.idea/x"] {
        assert_eq!(rule_of(scene.write(name, "x")).as_deref(), Some("host.editor-files"), "{name}");
    }
    assert_eq!(rule_of(scene.write(".git/commondir", "../x")).as_deref(), Some("host.git-pointers"));
}

#[test]
fn links_do_not_change_what_a_name_is() {
    let scene = scene(NO);
    std::os::unix::fs::symlink(".git", scene.project.join("innocent")).unwrap();
    std::os::unix::fs::symlink(".git/config", scene.project.join("notes.txt")).unwrap();
    std::os::unix::fs::symlink(".git/hooks/pre-push", scene.project.join("dangling")).unwrap();
    let hostile = "[core]\n\tpager = evil\n";
    assert_eq!(rule_of(scene.write("innocent/config", hostile)).as_deref(), Some("host.git-config"));
    assert_eq!(rule_of(scene.write("notes.txt", hostile)).as_deref(), Some("host.git-config"));
    assert_eq!(rule_of(scene.write("dangling", "#!/bin/sh")).as_deref(), Some("host.git-hooks"));
    assert_eq!(rule_of(scene.write("innocent/config", "[user]\n\tname = A\n")), None);
}

#[test]
fn a_yes_to_a_repository_is_none_to_what_lies_in_it() {
    use std::os::unix::fs::MetadataExt as _;
    for (config, is_harmless) in
        [("[core]\n\tbare = false\n", true), ("[core]\n\tfsmonitor = ./evil\n", false)]
    {
        let scene = scene(ONCE);
        let repository = scene.project.join("x");
        std::fs::create_dir_all(repository.join("objects")).unwrap();
        std::fs::write(repository.join("config"), config).unwrap();
        let number = || std::fs::metadata(repository.join("config")).unwrap().ino();
        let before = number();
        let written = scene.write("x/refs/heads/main", "");
        assert_eq!(scene.asked().len(), 1);
        match written {
            Ok(()) => assert!(is_harmless && number() != before, "it was looked at and replaced by a copy"),
            Err(FileFailure::File(error)) => assert!(!is_harmless, "{error}"),
            Err(FileFailure::Denied(decision)) => panic!("{decision:?}"),
        }
        assert_eq!(repository.join("refs").exists(), is_harmless);
        assert_eq!(scene.text("x/config").as_deref(), Some(config));
    }
}
