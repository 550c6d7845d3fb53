use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use portcullis_approvals::{Answerer, NoGrantStore, Prompter, Question};
use portcullis_decision::request::{Direction, ProcessInfo, Transport};
use portcullis_decision::verdict::{Cause, OutputEvaluation, Question as PolicyQuestion, ToolOutput};
use portcullis_decision::{
    Chain, Context, Evaluation, Member, Mode, Policy, PolicyError, Profile, Reader, Verdict,
};
use portcullis_session_sandbox::confining::Confining;
use portcullis_session_sandbox::own_directories::OwnDirectories;
use portcullis_session_sandbox::sandbox_subject::SandboxSubject;
use portcullis_settings::{Places, RealDisk, discover, resolve};

use super::*;
use crate::basis::Basis;
use crate::journal::{Entry, Journal, JournalError};
use crate::reservations::NoReservations;
use crate::setup::Setup;

/// Asks about each connection, and counts how often it is called.
#[derive(Default)]
struct Asking(Arc<AtomicUsize>);

impl Policy for Asking {
    fn name(&self) -> &str {
        "asking"
    }
    fn digest(&self) -> &str {
        "d"
    }
    fn handles(&self) -> ActionKinds {
        ActionKinds { network: true, ..ActionKinds::default() }
    }
    fn evaluate(&self, _: &Request, _: &Context) -> Result<Evaluation, PolicyError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let verdict = Verdict::Ask(PolicyQuestion::default());
        Ok(Evaluation { verdict, cause: Cause::default(), trace: vec![] })
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

/// Allows once whatever is asked.
struct Once;

impl Prompter for Once {
    fn show(&self, _: &Question, answerer: Answerer) {
        answerer.answer(Answer::Choice(0));
    }
    fn withdraw(&self, _: u64, _: &str) {}
    fn notice(&self, _: &str) {}
}

struct Unwritten;

impl Journal for Unwritten {
    fn before(&self, _: &Entry<'_>) -> Result<(), JournalError> {
        Ok(())
    }
    fn after(&self, _: SystemTime, _: &str, _: &str) {}
}

fn attempt(host: &str) -> ConnectionAttempt {
    let (transport, direction, process) = (Transport::Tcp, Direction::Outbound, ProcessInfo::default());
    let (target, stage) = (Endpoint::Domain(host.to_owned()), Stage::Connect);
    let access = NetworkAccess { transport, direction, target, port: 443, stage, process };
    ConnectionAttempt { access, command: 7, want: Want::Connect, credential: None }
}

#[test]
fn a_connection_that_asks_is_decided_once() {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let (home, project) = (directory.path().join("u"), directory.path().join("u/p"));
    std::fs::create_dir_all(&project).unwrap();
    let places = Places::usual(&project, &home);
    let resolved = resolve(&discover(&places, &RealDisk).unwrap(), &places, &RealDisk).unwrap();
    let setup = Setup {
        credentials: Arc::new(crate::credential_reader::NoCredentials),
        offers: Box::new(crate::credential_reader::NoCredentials),
        variables: Box::new(Default::default),
        context: Context { interactive: true, ..Context::default() },
        clock: Box::new(|| SystemTime::UNIX_EPOCH),
        journal: Box::new(Unwritten),
        prompter: Arc::new(Once),
        keeper: Arc::new(NoGrantStore),
        reservations: Box::new(NoReservations),
        changes: None,
        confinement: Confining::NoCommands,
        own: OwnDirectories::default(),
        inmate: SandboxSubject::Commands,
        reader: Reader::Model,
    };
    let policy = Asking::default();
    let count = Arc::clone(&policy.0);
    let members = vec![Member { policy: Arc::new(policy), mode: Mode::Enforce }];
    let chain = Chain { members, ..Chain::default() };
    let session = Arc::new(Session::new(setup, Basis { resolved, chain }, None).unwrap());
    let judge = CommandJudge::shared(Arc::new(OnceLock::from(Arc::downgrade(&session))), None);
    let undecided = |judgement| match judgement {
        Judgement::Ask(undecided) => undecided,
        other @ (Judgement::Allow(_) | Judgement::Deny(_)) => panic!("{other:?}"),
    };

    let first = undecided(judge.decide(&attempt("a.test")));
    let second = undecided(judge.decide(&attempt("b.test")));
    assert_eq!(count.load(Ordering::SeqCst), 2);
    // Nothing has changed while it waited.
    let first = undecided(judge.review(first));
    let answers = judge.ask(1, vec![*first]);
    assert!(matches!(answers.as_slice(), [Judgement::Allow(_)]), "{answers:?}");
    assert_eq!(count.load(Ordering::SeqCst), 2, "it was decided again");
    // The answer could have covered the other one.
    undecided(judge.review(second));
    assert_eq!(count.load(Ordering::SeqCst), 3);
}

#[test]
fn notes_with_the_same_reason_are_one() {
    let note = |place: &str, why: &str| format!("network: no connection to {place}: {why}");
    let notes = vec![
        note("a.test:443", "you said no"),
        note("[2001:db8::1]:80", "you said no"),
        "something else: you said no".to_owned(),
        note("a.test:443", "you said no"),
        note("b.test:443", "a rule: it is denied"),
        "network: stopped on the way to a.test:443: you said no".to_owned(),
    ];
    let expected = [
        note("a.test:443, [2001:db8::1]:80", "you said no"),
        "something else: you said no".to_owned(),
        note("b.test:443", "a rule: it is denied"),
        "network: stopped on the way to a.test:443: you said no".to_owned(),
    ];
    assert_eq!(gathered(notes), expected);
}
