use std::sync::{Arc, Mutex};

use super::*;
use crate::prompt_layout::tests::question;

const SIZE: (usize, usize) = (80, 24);

/// A screen with a program on it, and the answers.
struct Scene {
    overlay: Overlay<Vec<u8>>,
    answers: Arc<Mutex<Vec<(u64, Answer)>>>,
    start: Instant,
}

impl Scene {
    fn new() -> Self {
        Self {
            overlay: Overlay::new(Vec::new(), Size::new(SIZE.0, SIZE.1)),
            answers: Arc::default(),
            start: Instant::now(),
        }
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

    /// Types an answer with the number on the screen.
    fn answer(&mut self, key: &str, at: u64) {
        let line = format!("{}\r", self.code(key));
        self.key(line.as_bytes(), at);
    }

    /// Returns the text to type for a key.
    fn code(&self, key: &str) -> String {
        let screen = self.screen();
        let (_, code) = screen.rsplit_once(&format!("[{key}-")).unwrap();
        format!("{key}-{}", code.split(']').next().unwrap())
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
    // No key was typed for long enough.
    scene.answer("o", 2_300);
    assert_eq!(scene.answers(), [(1, Answer::Choice(0))]);
    assert!(!scene.key(b"o\r", 2_400));
}

#[test]
fn what_no_finger_typed_answers_nothing() {
    let mut scene = Scene::new();
    scene.ask(1, 0);
    // Pasted text, a terminal's reply to a query, a mouse event.
    for keys in [&b"o\ro\ro\ro\ro\r"[..], b"\x1b[?62;c", b"\x1b[<0;1;1M", b"\x1bo\r"] {
        scene.key(keys, 5_000);
    }
    assert_eq!(scene.answers(), []);
    // A letter without the number of this question is no answer either.
    scene.key(b"o\r", 6_000);
    assert!(scene.screen().contains("not an answer"));
    assert_eq!(scene.answers(), []);
    scene.key(b"xo\x7f\x7f", 7_000);
    scene.answer("o", 7_100);
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
    assert_eq!(scene.answers().last(), Some(&(4, Answer::Refused(Refusal::NoUser))));
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

    // A program on the alternate screen must redraw.
    let mut scene = Scene::new();
    scene.overlay.write(b"\x1b[?1049h\x1b[?7;1000l");
    scene.ask(1, 0);
    scene.key(b"\r", 1_000);
    assert!(scene.screen().ends_with("\x1b[?25h\x1b[?7l") && scene.overlay.take_spoilt());
    assert!(!scene.screen().contains("\x1b[?1049l") && !scene.overlay.take_spoilt());
}

#[test]
fn what_is_asked_stays_on_the_screen() {
    let mut scene = Scene::new();
    let long = Question { subject: format!("/etc/{}", "x".repeat(2_800)), ..question(1) };
    let answers = Arc::clone(&scene.answers);
    let reply = Box::new(move |answer| answers.lock().unwrap().push((1, answer)));
    scene.overlay.ask(Id { seat: 0, question: 1 }, &long, reply, scene.start);
    let screen = scene.screen();
    let (_, drawn) = screen.rsplit_once("\x1b[H").unwrap();
    assert!(
        drawn.lines().count() < SIZE.1 && drawn.contains("title 1") && drawn.contains("/etc/"),
        "{drawn}"
    );
    assert!(!drawn.contains("[o-") && drawn.contains("enlarge"), "{drawn}");
    scene.overlay.fit(Size::new(80, 60));
    scene.answer("o", 2_000);
    assert_eq!(scene.answers(), [(1, Answer::Choice(0))]);
}

#[test]
fn no_picture_of_the_program_lies_over_a_question() {
    const GONE: &str = "\x1b_Ga=d,d=A\x1b\\";
    for (program, other) in [("text", true), ("\x1b[?1049h", false)] {
        let mut scene = Scene::new();
        scene.overlay.write(program.as_bytes());
        // An incomplete image sequence of the program is ended first.
        scene.overlay.write(b"\x1b_Ga=T,f=24,s=1,v=1,z=1,c=60,r=9;////\x1b\\\x1b_Ga=p,i=7");
        scene.ask(1, 0);
        let screen = scene.screen();
        let (_, after) = screen.split_once("i=7").unwrap();
        let (before, _) = after.split_once("title 1").unwrap();
        assert_eq!(before.matches(GONE).count(), 2, "{before:?}");
        assert!(before.find("\x1b\\") < before.find(GONE), "{before:?}");
        if let Some((first, second)) = before.split_once("\x1b[?1049h") {
            assert!(
                other && first.contains(GONE) && second.contains(GONE),
                "one for each screen: {before:?}"
            );
        }
    }
}

#[test]
fn what_the_program_has_hidden_is_shown() {
    let mut scene = Scene::new();
    // VT52 mode, printing, protected cells, side margins, black on black.
    scene.overlay.write(b"\x1b]10;#000000\x07\x1b]11;#000000\x07\x1b[?69h\x1b[5;9s\x1bV\x1b[?2l\x1b[5i");
    scene.ask(1, 0);
    let screen = scene.screen();
    let (_, after) = screen.split_once("\x1b[5i").unwrap();
    let (before, _) = after.split_once("title 1").unwrap();
    let place =
        |sequence: &str| before.find(sequence).unwrap_or_else(|| panic!("no {sequence:?} in {before:?}"));
    let all = ["\x1b[4i", "\x1b<", "\x1b]110\x1b\\", "\x1b]111\x1b\\", "\x1b[?69l", "\x1bW", "\x1b[0\"q"];
    let last = place("\x1b[0;37;40m\x1b[2J");
    assert!(all.map(place).is_sorted() && all.iter().all(|sequence| place(sequence) < last));
}
