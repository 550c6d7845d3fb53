use std::sync::{Arc, Mutex};

use portcullis_decision::{GrantPattern, GrantScope};
use portcullis_session::{Choice, ChoiceKind};

use super::*;

fn question(id: u64) -> Question {
    let choice = Choice {
        key: 'o',
        kind: ChoiceKind::Allow,
        label: "Allow once".to_owned(),
        covers: None,
        width: 0,
        target: None,
        place: None,
        scope: GrantScope::Once,
        pattern: GrantPattern::Command(Vec::new()),
        lifetime: 0,
    };
    Question {
        id,
        call: None,
        title: format!("title {id}"),
        subject: "subject".to_owned(),
        asker: "pi itself".to_owned(),
        reason: "reason".to_owned(),
        policy: "policy".to_owned(),
        rule: "rule".to_owned(),
        quote: None,
        choices: vec![choice],
        timeout_ms: Some(60_000),
    }
}

/// A screen with a program on it, and what was answered.
struct Scene {
    overlay: Overlay<Vec<u8>>,
    answers: Arc<Mutex<Vec<(u64, Answer)>>>,
    start: Instant,
}

impl Scene {
    fn new() -> Self {
        Self { overlay: Overlay::new(Vec::new()), answers: Arc::default(), start: Instant::now() }
    }

    fn at(&self, milliseconds: u64) -> Instant {
        self.start + Duration::from_millis(milliseconds)
    }

    fn ask(&mut self, id: u64, at: u64) {
        let answers = Arc::clone(&self.answers);
        let reply = Box::new(move |answer| answers.lock().unwrap().push((id, answer)));
        self.overlay.ask(
            Id { seat: 0, question: id },
            &question(id),
            reply,
            self.start + Duration::from_millis(at),
        );
    }

    fn key(&mut self, keys: &[u8], at: u64) -> bool {
        self.overlay.key(keys, self.at(at))
    }

    fn answers(&self) -> Vec<(u64, Answer)> {
        self.answers.lock().unwrap().clone()
    }

    fn screen(&self) -> String {
        String::from_utf8_lossy(&self.overlay.screen).into_owned()
    }
}

fn no() -> Answer {
    Answer::Refused(Refusal::User)
}

#[test]
fn what_was_typed_for_the_program_answers_nothing() {
    let mut scene = Scene::new();
    assert!(!scene.key(b"o\r", 0), "it is the program's");
    scene.ask(1, 10);
    for at in [20, 300, 900, 1_500] {
        assert!(scene.key(b"o\r", at), "nobody gets it");
    }
    assert_eq!(scene.answers(), []);
    // It was quiet for so long.
    assert!(scene.key(b"o", 2_300));
    assert!(scene.key(b"\r", 2_310));
    assert_eq!(scene.answers(), [(1, Answer::Choice(0))]);
    assert!(!scene.key(b"o\r", 2_400));
}

#[test]
fn what_no_finger_typed_answers_nothing() {
    let mut scene = Scene::new();
    scene.ask(1, 0);
    // Pasted text, a terminal's answer to a query, a mouse.
    for keys in [&b"o\ro\ro\ro\ro\r"[..], b"\x1b[?62;c", b"\x1b[<0;1;1M", b"\x1bo\r"] {
        scene.key(keys, 5_000);
    }
    assert_eq!(scene.answers(), []);
    scene.key(b"x\r", 6_000);
    assert!(scene.screen().contains("none of the answers"));
    scene.key(b"xo\x7f\x7fo\r", 7_000);
    assert_eq!(scene.answers(), [(1, Answer::Choice(0))]);
    for (id, keys) in [(2, &b"\r"[..]), (3, b"n\r"), (4, b"\x1b"), (5, b"\x03")] {
        scene.ask(id, 10_000 * id);
        scene.key(keys, 10_000 * id + 1_000);
        assert_eq!(scene.answers().last(), Some(&(id, no())));
    }
}

#[test]
fn questions_come_one_by_one() {
    let mut scene = Scene::new();
    scene.ask(1, 0);
    scene.ask(2, 0);
    scene.ask(3, 0);
    assert!(scene.screen().contains("title 1") && !scene.screen().contains("title 2"));
    let (now, first) = (scene.at(10), Id { seat: 0, question: 1 });
    scene.overlay.withdraw(Id { seat: 1, question: 1 }, now);
    assert!(!scene.screen().contains("title 2"), "it was another session's");
    scene.overlay.withdraw(first, now);
    assert!(scene.screen().contains("title 2"));
    scene.overlay.tick(scene.start + Duration::from_secs(59));
    assert_eq!(scene.answers(), []);
    scene.overlay.tick(scene.start + Duration::from_secs(61));
    assert_eq!(scene.answers(), [(2, Answer::Refused(Refusal::Timeout))]);
    scene.overlay.close();
    assert!(!scene.overlay.is_asking());
    scene.ask(4, 70_000);
    assert_eq!(scene.answers().last(), Some(&(4, Answer::Refused(Refusal::Nobody))));
}

#[test]
fn output_is_kept_back_and_the_screen_comes_back_as_it_was() {
    let mut scene = Scene::new();
    scene.overlay.write(b"before\x1b[?25");
    scene.overlay.write(b"l");
    scene.ask(1, 0);
    scene.overlay.write(b"meanwhile");
    assert!(!scene.screen().contains("meanwhile"));
    scene.key(b"\r", 1_000);
    let screen = scene.screen();
    assert!(screen.ends_with("\x1b[?1049l\x1b[?25l\x1b[?7hmeanwhile"), "{screen:?}");
    assert!(!scene.overlay.take_spoilt());

    // A program that draws on the other screen itself has to do it again.
    let mut scene = Scene::new();
    scene.overlay.write(b"\x1b[?1049h\x1b[?7;1000l");
    scene.ask(1, 0);
    scene.key(b"\r", 1_000);
    assert!(scene.screen().ends_with("\x1b[?25h\x1b[?7l") && scene.overlay.take_spoilt());
    assert!(!scene.screen().contains("\x1b[?1049l") && !scene.overlay.take_spoilt());
}
