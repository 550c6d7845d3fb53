//! Answers of collectors over HTTP.

use std::net::TcpListener;
use std::time::Duration;

use portcullis_export::{ExportError, SendError, Step};

use crate::collector::{Collector, OK, Reply};
use crate::world::{World, destination, write};

#[test]
fn all_records_arrive_once_and_in_order() {
    let world = World::new();
    let collector = Collector::start(|_, _| OK);
    write(&world.log("one"), 600);
    assert_eq!(world.drain(&collector.destination()), 1200);
    let expected: Vec<String> = (1..=1200).map(|number| format!("one:{number}")).collect();
    assert_eq!(collector.ids(), expected);
    let received = collector.received();
    assert!(received.iter().all(|one| !one.is_repeated));
    // Who decided is in decisions and in outcomes.
    assert!(received.iter().all(|one| one.attribute("portcullis.rule") == Some("guard.echo")));
    assert_eq!(received[1].attribute("portcullis.decision"), Some("one:1"));

    assert_eq!(world.drain(&collector.destination()), 0, "nothing is sent twice");
    write(&world.log("two"), 1);
    assert_eq!(world.drain(&collector.destination()), 2);
    assert_eq!(&collector.ids()[1200..], ["two:1", "two:2"]);
}

#[test]
fn an_outcome_after_a_restart_knows_its_decider() {
    let world = World::new();
    let collector = Collector::start(|_, _| OK);
    let log = world.log("one");
    let verdict = portcullis_audit::VerdictLine { policy: "guard".to_owned(), ..Default::default() };
    let verdict = log.verdict(verdict).unwrap();
    assert_eq!(world.drain(&collector.destination()), 1);
    let outcome = portcullis_audit::OutcomeLine { verdict, result: "done".to_owned(), ..Default::default() };
    log.outcome(outcome).unwrap();
    assert_eq!(world.drain(&collector.destination()), 1);
    assert_eq!(collector.received()[1].attribute("portcullis.policy"), Some("guard"));
}

#[test]
fn what_may_have_arrived_is_sent_again_and_says_so() {
    let world = World::new();
    let collector = Collector::start(|_, count| if count == 0 { Reply::TakeInSilence } else { OK });
    let log = world.log("one");
    write(&log, 2);
    let mut exporter = world.exporter(&collector.destination()).unwrap();
    let error = exporter.step().unwrap_err();
    assert!(matches!(error, ExportError::Send(SendError::Unclear { .. })), "{error:?}");
    assert!(exporter.cursor().failure.is_some());
    drop(exporter);
    // A new process knows it, and new records do not say it.
    write(&log, 1);
    assert_eq!(world.drain(&collector.destination()), 6);
    let repeated: Vec<bool> = collector.received().iter().map(|one| one.is_repeated).collect();
    let expected: Vec<bool> = [[false; 4].as_slice(), &[true; 4], &[false; 2]].concat();
    assert_eq!(repeated, expected);
    let exporter = world.exporter(&collector.destination()).unwrap();
    let cursor = exporter.cursor();
    assert_eq!((cursor.sent, cursor.repeated, cursor.failure.clone()), (6, 4, None));
}

#[test]
fn what_cannot_have_arrived_does_not_say_so() {
    let world = World::new();
    write(&world.log("one"), 1);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let closed = destination(&format!("format = \"otlp\"\nto = \"http://127.0.0.1:{port}/\""));
    let error = world.exporter(&closed).unwrap().step().unwrap_err();
    assert!(matches!(error, ExportError::Send(SendError::NotSent { .. })), "{error:?}");
    assert!(error.to_string().contains(&format!("127.0.0.1:{port}")), "{error}");

    let busy = "503 Service Unavailable\r\nretry-after: 7\r\n\r\nlater";
    let collector = Collector::start(move |_, count| if count == 0 { Reply::Refuse(busy) } else { OK });
    let mut exporter = world.exporter(&collector.destination()).unwrap();
    let error = exporter.step().unwrap_err();
    assert_eq!(error.wait(), Some(Duration::from_secs(7)));
    assert!(error.to_string().contains("503") && error.to_string().ends_with(": later"), "{error}");
    drop(exporter);
    assert_eq!(world.drain(&collector.destination()), 2);
    assert!(collector.received().iter().all(|one| !one.is_repeated));
}

#[test]
fn a_refused_record_does_not_hold_up_the_others() {
    let world = World::new();
    let too_large = "413 Payload Too Large\r\n\r\n";
    let collector = Collector::start(move |records, _| {
        if records.iter().any(|one| one.id == "one:77") { Reply::Refuse(too_large) } else { OK }
    });
    write(&world.log("one"), 50);
    let mut exporter = world.exporter(&collector.destination()).unwrap();
    let Step::Sent { records, refused } = exporter.step().unwrap() else { panic!("idle") };
    let (count, reason) = refused.unwrap();
    assert_eq!((records, count), (100, 1));
    assert!(reason.contains("413"), "{reason}");
    let ids = collector.ids();
    assert!(ids.len() == 99 && !ids.contains(&"one:77".to_owned()), "{ids:?}");
    assert_eq!((exporter.cursor().sent, exporter.cursor().refused), (99, 1));
    assert_eq!(exporter.step().unwrap(), Step::Idle);
}

#[test]
fn rejected_records_of_an_accepted_batch_are_counted() {
    let world = World::new();
    let partial =
        "200 OK\r\n\r\n{\"partialSuccess\":{\"rejectedLogRecords\":\"2\",\"errorMessage\":\"too old\"}}";
    let collector = Collector::start(move |_, _| Reply::Take(partial));
    write(&world.log("one"), 5);
    let mut exporter = world.exporter(&collector.destination()).unwrap();
    let Step::Sent { records: 10, refused: Some((2, reason)) } = exporter.step().unwrap() else { panic!() };
    assert_eq!(reason, "too old");
    assert_eq!((exporter.cursor().sent, exporter.cursor().refused), (8, 2));
}

#[test]
fn records_follow_no_redirect() {
    let world = World::new();
    let elsewhere = Collector::start(|_, _| OK);
    let location: &'static str =
        format!("307 Temporary Redirect\r\nlocation: http://127.0.0.1:{}/\r\n\r\n", elsewhere.port).leak();
    let collector = Collector::start(move |_, _| Reply::Refuse(location));
    write(&world.log("one"), 1);
    let error = world.exporter(&collector.destination()).unwrap().step().unwrap_err();
    assert!(error.to_string().contains("307"), "{error}");
    assert!(elsewhere.received().is_empty());
}

#[test]
fn headers_are_sent_and_come_from_files() {
    let world = World::new();
    let collector = Collector::start(|_, _| OK);
    let token = world.root.path().join("token");
    let with_header = destination(&format!(
        "format = \"otlp\"\nto = \"http://127.0.0.1:{}/v1/logs\"\nheaders = {{ Authorization = {{ file = \"{}\" }} }}",
        collector.port,
        token.display()
    ));
    write(&world.log("one"), 1);
    let error = world.exporter(&with_header).unwrap().step().unwrap_err();
    assert!(error.to_string().contains("the header `Authorization`"), "{error}");
    std::fs::write(&token, "Bearer abc\n").unwrap();
    assert_eq!(world.drain(&with_header), 2);
    let head = collector.heads.lock().unwrap()[0].to_lowercase();
    assert!(head.starts_with("post /v1/logs ") && head.contains("authorization: bearer abc"), "{head}");
}

#[test]
fn one_process_sends_to_a_destination() {
    let world = World::new();
    let collector = Collector::start(|_, _| OK);
    let first = world.exporter(&collector.destination()).unwrap();
    assert!(matches!(world.exporter(&collector.destination()), Err(ExportError::Busy)));
    drop(first);
    assert!(world.exporter(&collector.destination()).is_ok());
}
