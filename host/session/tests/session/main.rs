//! A whole session as a table: requests in, decisions out, with a test policy and a test prompter.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up must fail")]

mod faults;
mod output;
mod questions;
mod version_control;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use portcullis_decision::context::{AgentInfo, Machine, Workspace};
use portcullis_decision::grant::PathPattern;
use portcullis_decision::pattern::FilePattern;
use portcullis_decision::profile::{FileRights, Profile};
use portcullis_decision::request::{Action, ActionKinds, Origin, Redirect, ToolCall};
use portcullis_decision::verdict::{
    Cause, GrantOption, OutputEvaluation, Question as PolicyQuestion, ToolOutput,
};
use portcullis_decision::{
    Chain, Context, Effect, Evaluation, Grant, GrantPattern, GrantScope, Member, Mode, Policy, PolicyError,
    Reader, Request, Verdict,
};
use portcullis_session::{
    Answer, Answerer, Basis, Cancel, ChoiceKind, Confining, Entry, FileCall, FileFailure, GrantPlace,
    GrantStore, Journal, JournalError, Output, OwnDirectories, Prompter, Question, Refusal, Session, Setup,
    commands, escalation, files,
};
use portcullis_settings::{Places, RealDisk, discover, resolve};

/// Gives the same answer to each request of the kinds that it handles; has no rules.
struct Answering {
    handles: ActionKinds,
    answer: fn(&Request) -> Verdict,
}

impl Policy for Answering {
    fn name(&self) -> &str {
        "answering"
    }
    fn digest(&self) -> &str {
        "d"
    }
    fn handles(&self) -> ActionKinds {
        self.handles
    }
    fn evaluate(&self, request: &Request, _: &Context) -> Result<Evaluation, PolicyError> {
        Ok(Evaluation { verdict: (self.answer)(request), cause: Cause::default(), trace: vec![] })
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

/// Asks about every tool.
fn asking() -> Arc<dyn Policy> {
    let handles = ActionKinds { tool: true, ..ActionKinds::default() };
    Arc::new(Answering { handles, answer: |_| Verdict::Ask(PolicyQuestion::default()) })
}

/// Asks about every file and offers a grant for ten seconds.
fn lending() -> Arc<dyn Policy> {
    let handles = ActionKinds { file: true, ..ActionKinds::default() };
    let answer = |request: &Request| {
        let Action::File(access) = &request.action else { unreachable!("only files are handled") };
        let path = FilePattern::Exact(PathBuf::from(&access.path.canonical));
        let option = GrantOption {
            label: String::new(),
            scope: GrantScope::Session,
            pattern: GrantPattern::Path(PathPattern { pattern: path, rights: FileRights::ALL }),
            lifetime: 10,
        };
        Verdict::Ask(PolicyQuestion { options: vec![option], ..PolicyQuestion::default() })
    };
    Arc::new(Answering { handles, answer })
}

/// Allows commands outside the sandbox.
fn allowing_escalation() -> Arc<dyn Policy> {
    let handles = ActionKinds { escalation: true, ..ActionKinds::default() };
    Arc::new(Answering { handles, answer: |_| Verdict::Allow(Vec::new()) })
}

/// Gives the same answer to every question, or leaves the questions open.
#[derive(Default)]
struct Scripted {
    answer: Option<Answer>,
    open: Mutex<Vec<(String, Answerer)>>,
    shown: AtomicUsize,
    seen: Mutex<Vec<Question>>,
    notices: Mutex<Vec<String>>,
    withdrawn: Mutex<Vec<u64>>,
}

impl Prompter for Scripted {
    fn show(&self, question: &Question, answerer: Answerer) {
        self.shown.fetch_add(1, Ordering::SeqCst);
        self.seen.lock().unwrap().push(question.clone());
        match &self.answer {
            Some(answer) => answerer.answer(answer.clone()),
            None => self.open.lock().unwrap().push((question.subject.clone(), answerer)),
        }
    }
    fn withdraw(&self, id: u64, _why: &str) {
        self.withdrawn.lock().unwrap().push(id);
    }
    fn notice(&self, text: &str) {
        self.notices.lock().unwrap().push(text.to_owned());
    }
}

/// Records the stored grants, or fails to store.
#[derive(Default)]
struct MemoryKeeper {
    kept: Mutex<Vec<(String, Grant)>>,
    full: std::sync::atomic::AtomicBool,
}

impl GrantStore for MemoryKeeper {
    fn places(&self) -> Vec<GrantPlace> {
        let place = |key, scope, id: &str| GrantPlace {
            id: id.into(),
            key,
            scope,
            label: format!("Allow for {id}"),
            target: format!("{id}.json"),
        };
        vec![place('P', GrantScope::Project, "project"), place('A', GrantScope::User, "all")]
    }

    fn keep(&self, place: &str, grant: &Grant) -> Result<(), String> {
        if self.full.load(Ordering::SeqCst) {
            return Err("the disk is full".into());
        }
        self.kept.lock().unwrap().push((place.to_owned(), grant.clone()));
        Ok(())
    }
}

#[derive(Clone, Default)]
struct Recorded {
    lines: Arc<Mutex<Vec<String>>>,
    full: bool,
}

impl Journal for Recorded {
    fn before(&self, entry: &Entry<'_>) -> Result<(), JournalError> {
        if self.full {
            return Err(JournalError("the disk is full".into()));
        }
        self.lines.lock().unwrap().push(format!("{} {}", entry.request.id, entry.decision.effect()));
        Ok(())
    }
    fn after(&self, _: SystemTime, request: &str, outcome: &str) {
        self.lines.lock().unwrap().push(format!("{request} {outcome}"));
    }
}

struct Scene {
    _directory: tempfile::TempDir,
    project: PathBuf,
    places: Places,
    prompter: Arc<Scripted>,
    keeper: Arc<MemoryKeeper>,
    journal: Recorded,
    session: Arc<Session>,
    seconds: Arc<AtomicU64>,
}

fn scene(answer: Option<Answer>, journal: Recorded, interactive: bool) -> Scene {
    scene_with(asking(), answer, journal, interactive)
}

fn scene_with(
    policy: Arc<dyn Policy>,
    answer: Option<Answer>,
    journal: Recorded,
    interactive: bool,
) -> Scene {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let (project, home) = (directory.path().join("home/u/p"), directory.path().join("home/u"));
    std::fs::create_dir_all(&project).unwrap();
    std::fs::create_dir_all(home.join(".pi/agent")).unwrap();
    std::fs::write(home.join(".pi/agent/auth.json"), "secret").unwrap();
    std::fs::write(home.join("outside.txt"), "outside").unwrap();
    std::fs::write(project.join("inside.txt"), "inside").unwrap();
    let places = Places::usual(&project, &home);
    let resolved = resolve(&discover(&places, &RealDisk).unwrap(), &places, &RealDisk).unwrap();
    let context = Context {
        session_id: "s".into(),
        agent: AgentInfo { directory: home.join(".pi/agent").display().to_string(), ..AgentInfo::default() },
        workspace: Workspace { roots: vec![project.display().to_string()], ..Workspace::default() },
        machine: Machine { home: home.display().to_string(), temp: "/tmp".into(), ..Machine::default() },
        interactive,
        now: 0,
        grants: vec![],
        explain: false,
        attributes: vec![],
    };
    let seconds = Arc::new(AtomicU64::new(1_000));
    let clock = Arc::clone(&seconds);
    let prompter = Arc::new(Scripted { answer, ..Scripted::default() });
    let keeper = Arc::new(MemoryKeeper::default());
    let setup = Setup {
        variables: Box::new(Default::default),
        context,
        clock: Box::new(move || SystemTime::UNIX_EPOCH + Duration::from_secs(clock.load(Ordering::SeqCst))),
        journal: Box::new(journal.clone()),
        prompter: Arc::clone(&prompter) as Arc<dyn Prompter>,
        keeper: Arc::clone(&keeper) as Arc<dyn GrantStore>,
        reservations: Box::new(portcullis_session::NoReservations),
        changes: None,
        confinement: Confining::NoCommands,
        own: OwnDirectories::default(),
        inmate: portcullis_session::SandboxSubject::Commands,
        reader: Reader::Model,
        credentials: Arc::new(portcullis_session::NoCredentials),
        offers: Box::new(portcullis_session::NoCredentials),
    };
    let chain = Chain { members: vec![Member { policy, mode: Mode::Enforce }], ..Chain::default() };
    let session = portcullis_session::open(setup, Basis { resolved, chain }).unwrap();
    Scene { _directory: directory, project, places, prompter, keeper, journal, session, seconds }
}

fn tool(session: &Session, name: &str) -> Request {
    let call = ToolCall { name: name.into(), provider: "mcp:x".into(), input: "{}".into() };
    session.request(Origin::Agent, Action::Tool(call))
}

fn read(scene: &Scene, path: &Path) -> Result<String, FileFailure> {
    let given = path.display().to_string();
    let call = FileCall { path, given: &given, call: None, cancel: &Cancel::default() };
    files::read(&scene.session, call).map(|file| String::from_utf8(file.content.bytes).unwrap())
}

fn choice(scope: GrantScope) -> Option<Answer> {
    // The first choice is "once", the second the narrowest grant for the session.
    Some(Answer::Choice(if scope == GrantScope::Once { 0 } else { 1 }))
}

fn basis(scene: &Scene) -> Basis {
    let places = &scene.places;
    let resolved = resolve(&discover(places, &RealDisk).unwrap(), places, &RealDisk).unwrap();
    let member = Member { policy: asking(), mode: Mode::Enforce };
    Basis { resolved, chain: Chain { members: vec![member], ..Chain::default() } }
}

#[test]
fn once_asks_again_and_a_session_grant_does_not() {
    for (scope, expected) in [(GrantScope::Once, 2), (GrantScope::Session, 1)] {
        let scene = scene(choice(scope), Recorded::default(), true);
        for _ in 0..2 {
            let authorized = scene.session.authorize(tool(&scene.session, "t"), None, &Cancel::default());
            assert_eq!(authorized.decision.effect(), Effect::Allow);
            assert!(authorized.permit.is_some());
        }
        assert_eq!(scene.prompter.shown.load(Ordering::SeqCst), expected, "{scope:?}");
    }
}

#[test]
fn what_is_lent_for_a_time_is_asked_for_again_after_it() {
    let find = |scene: &Scene| scene.project.parent().unwrap().join("outside.txt");
    // "Once", then the two grants for the session that the host offers, then that of the policy.
    let scene = scene_with(lending(), Some(Answer::Choice(3)), Recorded::default(), true);
    for (seconds, asked) in [(1_000, 1), (1_009, 1), (1_010, 2), (1_019, 2), (1_020, 3)] {
        scene.seconds.store(seconds, Ordering::SeqCst);
        read(&scene, &find(&scene)).unwrap();
        assert_eq!(scene.prompter.shown.load(Ordering::SeqCst), asked, "after {seconds} s");
    }
}

#[test]
fn a_refusal_gives_no_permit() {
    let scene = scene(Some(Answer::Refused(Refusal::User)), Recorded::default(), true);
    let authorized = scene.session.authorize(tool(&scene.session, "t"), None, &Cancel::default());
    assert_eq!(authorized.decision.effect(), Effect::Deny);
    assert!(authorized.permit.is_none());
    assert!(authorized.decision.cause().reason.ends_with("you said no"));
}

#[test]
fn an_answer_that_is_no_choice_refuses() {
    let scene = scene(Some(Answer::Choice(99)), Recorded::default(), true);
    let authorized = scene.session.authorize(tool(&scene.session, "t"), None, &Cancel::default());
    assert_eq!(authorized.decision.effect(), Effect::Deny);
}

#[test]
fn with_nobody_there_nothing_is_shown_and_ask_is_deny() {
    let scene = scene(choice(GrantScope::Once), Recorded::default(), false);
    let authorized = scene.session.authorize(tool(&scene.session, "t"), None, &Cancel::default());
    assert_eq!(authorized.decision.effect(), Effect::Deny);
    assert_eq!(scene.prompter.shown.load(Ordering::SeqCst), 0);
}

#[test]
fn what_cannot_be_written_down_is_not_done() {
    let scene = scene(choice(GrantScope::Once), Recorded { full: true, ..Recorded::default() }, true);
    let error = read(&scene, &scene.project.join("inside.txt")).unwrap_err();
    assert!(error.to_string().contains("the disk is full"), "{error}");
}

#[test]
fn verdicts_are_written_before_outcomes() {
    let scene = scene(None, Recorded::default(), true);
    assert_eq!(read(&scene, &scene.project.join("inside.txt")).unwrap(), "inside");
    assert_eq!(*scene.journal.lines.lock().unwrap(), ["r1 allow", "r1 done"]);
}

#[test]
fn files_follow_the_rules() {
    let scene = scene(choice(GrantScope::Once), Recorded::default(), true);
    let home = scene.project.parent().unwrap();
    assert_eq!(read(&scene, &home.join("outside.txt")).unwrap(), "outside");
    assert_eq!(scene.prompter.shown.load(Ordering::SeqCst), 1, "outside is asked for");
    let denied = read(&scene, &home.join(".pi/agent/auth.json")).unwrap_err();
    assert!(matches!(denied, FileFailure::Denied(_)), "{denied}");
    std::os::unix::fs::symlink(home.join(".pi/agent/auth.json"), scene.project.join("link")).unwrap();
    let denied = read(&scene, &scene.project.join("link")).unwrap_err();
    assert!(matches!(denied, FileFailure::Denied(_)), "{denied}");
    assert_eq!(scene.prompter.shown.load(Ordering::SeqCst), 1, "a deny is not asked for");
}

#[test]
fn what_is_not_there_is_judged_all_the_same() {
    let scene = scene(Some(Answer::Refused(Refusal::User)), Recorded::default(), true);
    let home = scene.project.parent().unwrap();
    let outside = read(&scene, &home.join("missing")).unwrap_err();
    assert!(matches!(outside, FileFailure::Denied(_)), "{outside}");
    let inside = read(&scene, &scene.project.join("missing")).unwrap_err();
    assert!(matches!(inside, FileFailure::File(_)), "{inside}");
}

#[test]
fn a_grant_settles_the_other_questions_that_it_covers() {
    let scene = scene(None, Recorded::default(), true);
    let ask = |name: &'static str| {
        let session = Arc::clone(&scene.session);
        std::thread::spawn(move || {
            let request = tool(&session, name);
            session.authorize(request, None, &Cancel::default()).decision.effect()
        })
    };
    let (first, second, other) = (ask("t"), ask("t"), ask("u"));
    until(|| scene.prompter.open.lock().unwrap().len() == 3);
    let questions = std::mem::take(&mut *scene.prompter.open.lock().unwrap());
    let (mut about_t, about_u): (Vec<_>, Vec<_>) =
        questions.into_iter().partition(|(subject, _)| subject.starts_with('t'));
    let (_, answerer) = about_t.pop().unwrap();
    answerer.answer(Answer::Choice(1));
    assert_eq!(first.join().unwrap(), Effect::Allow);
    assert_eq!(second.join().unwrap(), Effect::Allow);
    assert_eq!(scene.prompter.withdrawn.lock().unwrap().len(), 1);
    assert_eq!(scene.session.waiting(), 1);
    // Dropping the others refuses them.
    drop(about_u);
    assert_eq!(other.join().unwrap(), Effect::Deny);
}

#[test]
fn a_no_is_one_to_every_question_about_the_very_same_thing() {
    let scene = scene(None, Recorded::default(), true);
    let ask = |name: &'static str| {
        let session = Arc::clone(&scene.session);
        std::thread::spawn(move || {
            let request = tool(&session, name);
            session.authorize(request, None, &Cancel::default()).decision.effect()
        })
    };
    let same: Vec<_> = (0..72).map(|_| ask("t")).collect();
    let other = ask("u");
    until(|| scene.prompter.open.lock().unwrap().len() == 73);
    let mut questions = std::mem::take(&mut *scene.prompter.open.lock().unwrap());
    let place = questions.iter().position(|(subject, _)| subject.starts_with('t')).unwrap();
    questions.remove(place).1.answer(Answer::Refused(Refusal::User));
    for waiting in same {
        assert_eq!(waiting.join().unwrap(), Effect::Deny);
    }
    assert_eq!(scene.prompter.withdrawn.lock().unwrap().len(), 71);
    assert_eq!(scene.session.waiting(), 1, "the other one still waits");
    // The "no" was for these questions, not for later ones.
    let again = ask("t");
    until(|| scene.session.waiting() == 2);
    drop(questions);
    drop(std::mem::take(&mut *scene.prompter.open.lock().unwrap()));
    assert_eq!((again.join().unwrap(), other.join().unwrap()), (Effect::Deny, Effect::Deny));
}

#[test]
fn a_call_that_is_taken_back_withdraws_its_question() {
    let scene = scene(None, Recorded::default(), true);
    let cancel = Cancel::default();
    let (session, token) = (Arc::clone(&scene.session), cancel.clone());
    let waiting = std::thread::spawn(move || {
        let request = tool(&session, "t");
        session.authorize(request, None, &token).decision.effect()
    });
    until(|| scene.session.waiting() == 1);
    cancel.cancel();
    assert_eq!(waiting.join().unwrap(), Effect::Deny);
    assert_eq!(scene.prompter.withdrawn.lock().unwrap().len(), 1);
}

#[test]
fn commands_are_read_for_policies() {
    let scene = scene(None, Recorded::default(), true);
    let parsed = |script: &str| {
        let call = portcullis_session::CommandCall {
            program: portcullis_session::Program::Script(script.into()),
            cwd: &scene.project,
            environment: vec![],
            timeout: None,
            origin: Origin::Agent,
            call: None,
        };
        let action = commands::action(&scene.session, &call).unwrap();
        let Action::Command(command) = action else { panic!("{action:?}") };
        command.parsed
    };
    let script = parsed("./inside.txt >new 2>&1; cd /; ./inside.txt <inside.txt >/dev/null").unwrap();
    let inside = scene.project.join("inside.txt").display().to_string();
    let [first, _, last] = script.commands.as_slice() else { panic!("{script:?}") };
    assert_eq!(first.program.as_deref(), Some(inside.as_str()));
    let path = |redirect: &Redirect| redirect.path.as_ref().map(|path| path.canonical.clone());
    let new = scene.project.join("new").display().to_string();
    assert_eq!(first.redirects.iter().map(path).collect::<Vec<_>>(), [Some(new), None]);
    // After `cd` a relative path is unknown.
    assert_eq!(last.program, None);
    assert_eq!(last.redirects.first().and_then(path), None);
    assert!(parsed("echo $(").unwrap_err().contains("at byte"));
}

#[test]
fn leaving_the_sandbox_is_off_by_default_and_a_question_each_time_otherwise() {
    let leave = |scene: &Scene| {
        let authorized =
            escalation::authorize(&scene.session, "make install", &scene.project, "c", &Cancel::default())
                .unwrap();
        assert_eq!(authorized.permit.is_some(), authorized.decision.effect() == Effect::Allow);
        (authorized.decision.effect(), authorized.decision.cause().rule.clone())
    };
    for interactive in [true, false] {
        // A policy that allows it neither enables it nor answers for the user.
        let scene =
            scene_with(allowing_escalation(), choice(GrantScope::Once), Recorded::default(), interactive);
        assert_eq!(leave(&scene), (Effect::Deny, "host.escalation-off".to_owned()));
        assert_eq!(scene.prompter.shown.load(Ordering::SeqCst), 0);

        let mut basis = basis(&scene);
        basis.resolved.escalation = portcullis_settings_format::Escalation::Ask;
        basis.chain.members = vec![Member { policy: allowing_escalation(), mode: Mode::Enforce }];
        scene.session.reload(basis).unwrap();
        let expected = if interactive { Effect::Allow } else { Effect::Deny };
        for count in 1..=2 {
            assert_eq!(leave(&scene), (expected, "host.escalation".to_owned()));
            assert_eq!(scene.prompter.shown.load(Ordering::SeqCst), if interactive { count } else { 0 });
        }
        for question in scene.prompter.seen.lock().unwrap().iter() {
            let yes = question.choices.iter().filter(|choice| choice.kind == ChoiceKind::Allow);
            let scopes: Vec<_> = yes.map(|choice| choice.scope).collect();
            assert_eq!(scopes, [GrantScope::Once], "no yes lasts");
            assert!(question.title.contains("OUTSIDE") && question.subject == "make install");
        }
        let others = scene.session.request(
            Origin::Agent,
            Action::Tool(ToolCall { name: "t".into(), provider: "mcp:x".into(), input: "{}".into() }),
        );
        assert_ne!(scene.session.decide(&others).cause().rule, "host.escalation");
    }
}

#[test]
fn a_reload_puts_other_rules_in_force_and_settles_what_they_answer() {
    let scene = scene(None, Recorded::default(), true);
    let find = |scene: &Scene| scene.project.parent().unwrap().join("outside.txt");
    let (session, path) = (Arc::clone(&scene.session), find(&scene));
    let waiting = std::thread::spawn(move || {
        let given = path.display().to_string();
        let call = FileCall { path: &path, given: &given, call: None, cancel: &Cancel::default() };
        files::read(&session, call).map(drop).unwrap_err().to_string()
    });
    until(|| scene.session.waiting() == 1);
    let settings = r#"{ "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": ["~/outside.txt"], "allowWrite": ["."], "denyWrite": [] } }"#;
    let file = scene.places.sandbox_directory().join("default.json");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, settings).unwrap();
    scene.session.reload(basis(&scene)).unwrap();
    assert!(
        waiting.join().unwrap().contains("filesystem.denyRead[0]"),
        "a new denial beats an open question"
    );
    assert_eq!(scene.session.waiting(), 0);
}

fn until(condition: impl Fn() -> bool) {
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(std::time::Instant::now() < deadline, "it did not happen within 20 s");
        std::thread::sleep(Duration::from_millis(2));
    }
}
