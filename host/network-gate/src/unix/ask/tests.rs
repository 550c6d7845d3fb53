use std::net::IpAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use portcullis_decision::ConnectionRefusal;
use portcullis_decision::request::{
    Action, Direction, Endpoint, NetworkAccess, Origin, ProcessInfo, Transport,
};
use portcullis_decision::{Decision, Request};

use super::*;
use crate::Upstream;
use crate::judge::{AddressRuling, Checks, Ended, Running, Stages};

/// A judge that sends its questions to the test and receives the answers from it.
struct Shown {
    questions: Mutex<Sender<(u64, Vec<String>)>>,
    answers: Mutex<Receiver<bool>>,
    withdrawn: Mutex<Vec<u64>>,
    /// Hosts that are never asked about together with others.
    apart: Mutex<Vec<String>>,
    /// Hosts that are decided.
    settled: Mutex<Vec<String>>,
    /// Commands that have ended.
    ended: Mutex<Vec<u32>>,
}

impl Judge for Shown {
    fn decide(&self, attempt: &ConnectionAttempt) -> Judgement {
        let is_settled = self.settled.lock().unwrap().contains(&attempt.access.target.to_string());
        if is_settled {
            Judgement::Deny(refusal("settled"))
        } else {
            Judgement::Ask(undecided(attempt.clone()))
        }
    }

    fn review(&self, undecided: Box<Undecided>) -> Judgement {
        self.decide(&undecided.attempt)
    }

    fn ask(&self, round: u64, attempts: Vec<Undecided>) -> Vec<Judgement> {
        let hosts: Vec<String> = attempts.iter().map(|one| one.attempt.access.target.to_string()).collect();
        self.questions.lock().unwrap().send((round, hosts.clone())).unwrap();
        self.answers.lock().unwrap().recv().unwrap();
        let apart = self.apart.lock().unwrap();
        let is_next = |host: &String| apart.contains(host) && hosts.first() != Some(host);
        let answer = |(one, host)| match is_next(host) {
            true => Judgement::Ask(Box::new(one)),
            false => Judgement::Deny(refusal("answered")),
        };
        attempts.into_iter().zip(&hosts).map(answer).collect()
    }

    fn withdraw(&self, round: u64) {
        self.withdrawn.lock().unwrap().push(round);
    }

    fn address(&self, _attempt: &ConnectionAttempt, _address: IpAddr) -> AddressRuling {
        AddressRuling::Unnamed
    }

    fn budget(&self, _attempt: &ConnectionAttempt) -> u64 {
        0
    }

    fn checks(&self) -> Checks {
        Checks::default()
    }

    fn stages(&self) -> Stages {
        Stages::default()
    }

    fn upstream(&self, _attempt: &ConnectionAttempt) -> Option<Upstream> {
        None
    }

    fn broker(&self) -> Result<Option<Arc<portcullis_credential_broker::Broker>>, ConnectionRefusal> {
        Ok(None)
    }

    fn credential_used(&self, _request: &str, _name: &str, _head: &portcullis_decision::request::HttpHead) {}

    fn running(&self) -> Running {
        Running::Several
    }

    fn has_ended(&self, command: u32) -> bool {
        self.ended.lock().unwrap().contains(&command)
    }

    fn overloaded(&self, _why: &str) {}

    fn ended(&self, _attempt: &ConnectionAttempt, _request: &str, _ended: &Ended) {}
}

/// Returns an attempt that the user must decide on.
pub(in crate::unix) fn undecided(attempt: ConnectionAttempt) -> Box<Undecided> {
    let action = Action::Network(attempt.access.clone());
    let request = Request { id: "1".into(), parent: None, origin: Origin::Process, action, facts: vec![] };
    Box::new(Undecided { attempt, request, decision: Decision::host_denial("test", ""), revision: 0 })
}

fn refusal(reason: &str) -> ConnectionRefusal {
    ConnectionRefusal::by_host("test", reason)
}

struct Stand {
    asking: Arc<Asking>,
    shown: Arc<Shown>,
    questions: Receiver<(u64, Vec<String>)>,
    answer: Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Stand {
    fn new() -> Self {
        let (asked, questions) = channel();
        let (answer, answers) = channel();
        let shown = Arc::new(Shown {
            questions: Mutex::new(asked),
            answers: Mutex::new(answers),
            withdrawn: Mutex::default(),
            apart: Mutex::default(),
            settled: Mutex::default(),
            ended: Mutex::default(),
        });
        let asking = Arc::new(Asking::default());
        let running = Arc::clone(&asking);
        let thread = Some(std::thread::spawn(move || running.run()));
        Self { asking, shown, questions, answer, thread }
    }

    fn put(&self, host: &str, command: u32) -> oneshot::Receiver<Judgement> {
        let judge: Arc<dyn Judge> = Arc::clone(&self.shown) as _;
        self.asking.put(&judge, undecided(attempt(host, command))).unwrap()
    }

    fn question(&self) -> (u64, Vec<String>) {
        let (round, mut hosts) = self.questions.recv_timeout(Duration::from_secs(5)).unwrap();
        hosts.sort();
        (round, hosts)
    }
}

impl Drop for Stand {
    fn drop(&mut self) {
        self.asking.close();
        // Answers a question that is still open.
        let _unheard = self.answer.send(true);
        self.thread.take().unwrap().join().unwrap();
    }
}

fn attempt(host: &str, command: u32) -> ConnectionAttempt {
    let access = NetworkAccess {
        transport: Transport::Tcp,
        direction: Direction::Outbound,
        target: Endpoint::Domain(host.to_owned()),
        port: 443,
        stage: Stage::Connect,
        process: ProcessInfo::default(),
    };
    ConnectionAttempt { access, command, want: Want::Connect, credential: None }
}

fn reason(answer: oneshot::Receiver<Judgement>) -> String {
    match answer.blocking_recv().unwrap() {
        Judgement::Deny(refusal) => refusal.reason,
        other @ (Judgement::Allow(_) | Judgement::Ask(_)) => format!("{other:?}"),
    }
}

#[test]
fn what_one_command_waits_for_is_one_question_and_another_command_waits() {
    let stand = Stand::new();
    let waiting = [stand.put("a", 1), stand.put("b", 1), stand.put("a", 1)];
    let other = stand.put("c", 2);
    assert_eq!(stand.question().1, ["a", "a", "b"]);
    stand.answer.send(true).unwrap();
    for answer in waiting {
        assert_eq!(reason(answer), "answered");
    }
    assert_eq!(stand.question().1, ["c"]);
    stand.answer.send(true).unwrap();
    assert_eq!(reason(other), "answered");
}

#[test]
fn what_a_question_was_not_about_is_asked_next() {
    let stand = Stand::new();
    stand.shown.apart.lock().unwrap().push("b".to_owned());
    let (first, second, third) = (stand.put("a", 1), stand.put("b", 1), stand.put("c", 1));
    assert_eq!(stand.question().1, ["a", "b", "c"]);
    stand.answer.send(true).unwrap();
    assert_eq!((reason(first), reason(third)), ("answered".to_owned(), "answered".to_owned()));
    assert_eq!(stand.question().1, ["b"]);
    stand.answer.send(true).unwrap();
    assert_eq!(reason(second), "answered");
}

#[test]
fn what_an_answer_covers_is_not_asked_again() {
    let stand = Stand::new();
    let first = stand.put("a", 1);
    stand.question();
    let second = stand.put("a", 1);
    let third = stand.put("b", 1);
    stand.shown.settled.lock().unwrap().push("a".to_owned());
    stand.answer.send(true).unwrap();
    assert_eq!(reason(first), "answered");
    assert_eq!(reason(second), "settled");
    assert_eq!(stand.question().1, ["b"]);
    stand.answer.send(true).unwrap();
    assert_eq!(reason(third), "answered");
}

#[test]
fn what_a_command_has_left_behind_is_not_asked_about() {
    let stand = Stand::new();
    let first = stand.put("a", 1);
    stand.question();
    let (left, other) = (stand.put("b", 2), stand.put("c", 1));
    stand.shown.ended.lock().unwrap().push(2);
    stand.answer.send(true).unwrap();
    assert_eq!(reason(first), "answered");
    assert_eq!(reason(left), "the command that opened the connection has ended");
    assert_eq!(stand.question().1, ["c"]);
    stand.answer.send(true).unwrap();
    assert_eq!(reason(other), "answered");
}

#[test]
fn a_question_that_nobody_waits_for_is_withdrawn_once() {
    let stand = Stand::new();
    let (first, second) = (stand.put("a", 1), stand.put("b", 1));
    let (round, _) = stand.question();
    drop(first);
    stand.asking.one_gave_up();
    assert!(stand.shown.withdrawn.lock().unwrap().is_empty(), "one still waits");
    drop(second);
    stand.asking.one_gave_up();
    stand.asking.one_gave_up();
    assert_eq!(*stand.shown.withdrawn.lock().unwrap(), [round]);
    stand.answer.send(true).unwrap();
}

#[test]
fn who_gives_up_before_the_question_is_not_asked_for() {
    let stand = Stand::new();
    let asked = stand.put("a", 1);
    stand.question();
    drop(stand.put("b", 1));
    stand.asking.one_gave_up();
    stand.answer.send(true).unwrap();
    assert_eq!(reason(asked), "answered");
    let next = stand.put("c", 1);
    assert_eq!(stand.question().1, ["c"]);
    stand.answer.send(true).unwrap();
    assert_eq!(reason(next), "answered");
}

#[test]
fn ten_thousand_wait_twice_as_many_do_not_and_a_question_is_of_a_size_to_be_read() {
    let stand = Stand::new();
    let judge: Arc<dyn Judge> = Arc::clone(&stand.shown) as _;
    let waiting: Vec<_> = (0..20_000)
        .filter_map(|number| stand.asking.put(&judge, undecided(attempt(&format!("h{number}"), 1))).ok())
        .collect();
    assert_eq!(waiting.len(), WAITING_MAX);
    const { assert!(WAITING_MAX > 10_000) };
    assert_eq!(stand.question().1.len(), PLACES_MAX);
    drop(waiting);
    stand.asking.one_gave_up();
    stand.answer.send(true).unwrap();
}

#[test]
fn what_waits_at_the_end_is_lost() {
    let stand = Stand::new();
    let asked = stand.put("a", 1);
    let (round, _) = stand.question();
    let waiting = stand.put("b", 1);
    stand.asking.close();
    assert!(waiting.blocking_recv().is_err());
    assert_eq!(*stand.shown.withdrawn.lock().unwrap(), [round]);
    let judge: Arc<dyn Judge> = Arc::clone(&stand.shown) as _;
    assert!(stand.asking.put(&judge, undecided(attempt("c", 1))).is_err());
    drop(asked);
}

#[test]
fn a_command_leads_to_so_many_questions_and_no_more() {
    let stand = Stand::new();
    let ask = |host: &str, command| {
        let waiting = stand.put(host, command);
        assert_eq!(stand.question().1, [host]);
        stand.answer.send(true).unwrap();
        assert_eq!(reason(waiting), "answered");
    };
    for number in 0..QUESTIONS {
        ask(&format!("h{number}"), 1);
    }
    assert!(reason(stand.put("more", 1)).contains("as many questions"));
    ask("other", 2);
    assert!(reason(stand.put("again", 1)).contains("as many questions"));
    stand.asking.forget(1);
    ask("anew", 1);
}

#[test]
fn the_questions_of_unknown_commands_are_counted_for_the_session() {
    let stand = Stand::new();
    for number in 0..QUESTIONS {
        let waiting = stand.put(&format!("h{number}"), 0);
        stand.question();
        stand.answer.send(true).unwrap();
        assert_eq!(reason(waiting), "answered");
        stand.asking.forget(0);
    }
    assert!(reason(stand.put("more", 0)).contains("as many questions"));
}
