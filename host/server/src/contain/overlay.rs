//! Questions drawn over the screen of another program: which one is shown, which keys count, which output is held back.
//!
//! Pure terminal logic: bytes in, bytes out.

use std::collections::VecDeque;
use std::io::Write;
use std::time::{Duration, Instant};

use portcullis_bootstrap::control::answer_number;
use portcullis_session::{Answer, Question, Refusal};

use crate::prompt_layout::{PromptLayout, Size};

/// Pause in typing after which keys count, so that keys typed for pi do not answer a question.
const QUIET: Duration = Duration::from_millis(700);
/// Maximum size of held-back output; more stays in pi's terminal until the question is answered.
const MOST_HELD: usize = 1 << 20;
/// Maximum number of bytes in one read; more is pasted text, or a terminal's reply to a query.
const MOST_KEYS: usize = 8;
/// Maximum length of an answer.
const LONGEST_LINE: usize = 16;

/// Maximum length of a "no" with its reason.
const LONGEST_REASON: usize = 200;

/// Returns the maximum length of a line that begins like this.
fn longest(line: &str) -> usize {
    if line.starts_with(['n', 'N']) { LONGEST_REASON } else { LONGEST_LINE }
}

/// Ends states that the program may have left open: a different screen mode, an escape sequence, printing, VT52 mode.
const ALONE: &[u8] = b"\x1b\x03\x18\x1b\\\x1b[4i\x1b<";
/// Removes images from the screen on terminals that support them: an image can cover the text or lie behind it.
const NO_PICTURES: &[u8] = b"\x1b_Ga=d,d=A\x1b\\";
/// Switches to the alternate screen. If the program is on it already, its content is lost, and the program must redraw.
const OTHER_SCREEN: &[u8] = b"\x1b[?1049h";
/// Switches back to the program's screen.
const FIRST_SCREEN: &[u8] = b"\x1b[?1049l";
/// Resets the program's settings: colours, character sets, margins, a hidden cursor, extended key codes.
const PLAIN: &[u8] = b"\x1b[0m\x1b(B\x0f\x1b[?6l\x1b[?7h\x1b[4l\x1b[r\x1b[?25h\x1b[>4;0m";
/// Resets settings that could hide text.
///
/// These are redefined colours, output that is held back or sent to the status line, reverse video, side margins, and
/// protected cells.
const SEEN: &[u8] =
    b"\x1b]104\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\\x1b[?2026l\x1b[0$}\x1b[?5l\x1b[?69l\x1bW\x1b[0\"q";
/// Clears the screen, in colours that the program cannot have changed.
const CLEAR: &[u8] = b"\x1b[0;37;40m\x1b[2J\x1b[H";
/// Clears the screen, in the default colours.
const LEFT: &[u8] = b"\x1b[0m\x1b[2J\x1b[H";
const HEADING: &str = "Portcullis asks, outside of pi:";
const HOW: &str = "Type an answer and press Enter when `>` is there; Esc is No.";

/// The id of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Id {
    /// The session.
    pub(super) seat: u64,
    /// The question within the session.
    pub(super) question: u64,
}

/// Questions, shown one at a time.
pub(super) struct Overlay<W = std::fs::File> {
    screen: W,
    size: Size,
    entries: VecDeque<Entry>,
    shown: Option<Shown>,
    held: Vec<u8>,
    modes: Modes,
    /// Whether the program must redraw its screen.
    is_spoilt: bool,
    /// Number of writes of the program.
    writes: u64,
    is_closed: bool,
}

struct Entry {
    id: Id,
    question: Question,
    reply: Reply,
}

/// Receives the answer; dropping it refuses the question.
type Reply = Box<dyn FnOnce(Answer) + Send>;

/// State of the first entry, which is on the screen.
struct Shown {
    since: Instant,
    last_key: Instant,
    /// Whether keys count.
    is_ready: bool,
    /// The suffix of an answer.
    number: String,
    sheet: PromptLayout,
    line: String,
}

impl<W: Write> Overlay<W> {
    pub(super) fn new(screen: W, size: Size) -> Self {
        let (entries, held) = (VecDeque::new(), Vec::new());
        let (modes, is_spoilt, writes, is_closed) = (Modes::default(), false, 0, false);
        Self { screen, size, entries, shown: None, held, modes, is_spoilt, writes, is_closed }
    }

    pub(super) fn is_asking(&self) -> bool {
        self.shown.is_some()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Returns true if no more output can be held back.
    pub(super) fn is_full(&self) -> bool {
        self.held.len() >= MOST_HELD
    }

    /// Adds a question. It is shown once those before it are answered.
    pub(super) fn ask(&mut self, id: Id, question: &Question, reply: Reply, now: Instant) {
        if self.is_closed {
            return reply(Answer::Refused(Refusal::NoUser));
        }
        self.entries.push_back(Entry { id, question: question.clone(), reply });
        if self.shown.is_none() {
            self.put(ALONE);
            self.put(NO_PICTURES);
            if !self.modes.is_on_other_screen {
                self.put(OTHER_SCREEN);
            }
            self.put(NO_PICTURES);
            self.put(PLAIN);
            self.put(SEEN);
            self.show(now);
        }
    }

    /// Lays out the question again if the size of the terminal has changed.
    pub(super) fn fit(&mut self, size: Size) {
        if std::mem::replace(&mut self.size, size) != size && self.shown.is_some() {
            self.lay_out();
            self.draw("");
        }
    }

    /// Withdraws a question.
    pub(super) fn withdraw(&mut self, id: Id, now: Instant) {
        let Some(place) = self.entries.iter().position(|entry| entry.id == id) else { return };
        self.entries.remove(place);
        if place == 0 {
            self.go_on(now);
        }
    }

    /// Refuses all questions, now and later.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
        self.entries.clear();
        self.go_on(Instant::now());
    }

    /// Accepts output of the program.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        self.writes += 1;
        match self.shown {
            Some(_) => self.held.extend_from_slice(bytes),
            None => {
                self.modes.follow(bytes);
                self.put(bytes);
            }
        }
    }

    /// Returns true, once, if the program must redraw its screen.
    pub(super) fn take_spoilt(&mut self) -> bool {
        std::mem::take(&mut self.is_spoilt)
    }

    /// Returns a number that grows with each write of the program.
    pub(super) fn writes(&self) -> u64 {
        self.writes
    }

    /// Handles typed bytes. Returns false if they are for the program.
    pub(super) fn key(&mut self, typed: &[u8], now: Instant) -> bool {
        let Some(shown) = &mut self.shown else { return false };
        let was_quiet = now.duration_since(shown.last_key.max(shown.since)) >= QUIET;
        shown.last_key = now;
        shown.is_ready |= was_quiet;
        if !shown.is_ready {
            return true;
        }
        match typed {
            [0x03] | [0x1b] => self.refuse(Refusal::User, now),
            _ if typed.len() > MOST_KEYS || typed.contains(&0x1b) => {}
            _ => typed.iter().for_each(|&key| self.press(key, now)),
        }
        true
    }

    /// Handles the passing of time: keys start to count, or the question times out.
    pub(super) fn tick(&mut self, now: Instant) {
        let timeout = self.entries.front().and_then(|entry| entry.question.timeout_ms);
        let Some(shown) = &mut self.shown else { return };
        if timeout.is_some_and(|time| now.duration_since(shown.since) >= Duration::from_millis(time.into())) {
            return self.refuse(Refusal::Timeout, now);
        }
        if !shown.is_ready && now.duration_since(shown.last_key.max(shown.since)) >= QUIET {
            shown.is_ready = true;
            self.put(b"> ");
        }
    }

    fn press(&mut self, key: u8, now: Instant) {
        let Some(shown) = &mut self.shown else { return };
        match key {
            b'\r' | b'\n' => self.take_line(now),
            0x7f | 0x08 if shown.line.pop().is_some() => self.put(b"\x08 \x08"),
            b' '..=b'~'
                if shown.line.len() < longest(&shown.line) && (key != b' ' || !shown.line.is_empty()) =>
            {
                shown.line.push(char::from(key));
                self.put(&[key]);
            }
            _ => {}
        }
    }

    fn take_line(&mut self, now: Instant) {
        let Some(shown) = &mut self.shown else { return };
        let line = std::mem::take(&mut shown.line);
        match shown.sheet.answer(&line) {
            Some(answer) => self.reply(answer, now),
            None => self.draw("not an answer; type an answer with its number\r\n"),
        }
    }

    fn refuse(&mut self, why: Refusal, now: Instant) {
        self.reply(Answer::Refused(why), now);
    }

    fn reply(&mut self, with: Answer, now: Instant) {
        if let Some(entry) = self.entries.pop_front() {
            (entry.reply)(with);
        }
        self.go_on(now);
    }

    /// Shows the next question, or restores the program's screen.
    fn go_on(&mut self, now: Instant) {
        if self.shown.take().is_none() {
            return;
        }
        if !self.entries.is_empty() {
            return self.show(now);
        }
        self.put(LEFT);
        if self.modes.is_on_other_screen {
            self.is_spoilt = true;
        } else {
            self.put(FIRST_SCREEN);
        }
        self.put(if self.modes.is_cursor_hidden { b"\x1b[?25l" } else { b"\x1b[?25h" });
        self.put(if self.modes.is_cut { b"\x1b[?7l" } else { b"\x1b[?7h" });
        let held = std::mem::take(&mut self.held);
        self.modes.follow(&held);
        self.put(&held);
    }

    fn show(&mut self, now: Instant) {
        // Without a random number no question can be answered safely.
        let Ok(number) = answer_number() else { return self.close() };
        let sheet = PromptLayout::default();
        self.shown =
            Some(Shown { since: now, last_key: now, is_ready: false, number, sheet, line: String::new() });
        self.lay_out();
        self.draw("");
    }

    fn lay_out(&mut self) {
        let (Some(shown), Some(entry)) = (&mut self.shown, self.entries.front()) else { return };
        let footer = match self.entries.len() - 1 {
            0 => HOW.to_owned(),
            waiting => format!("{HOW} {waiting} more wait."),
        };
        shown.sheet = PromptLayout::new(HEADING, &entry.question, &shown.number, &footer, self.size);
    }

    /// Draws the question, a note on the last input, and the text typed so far.
    fn draw(&mut self, note: &str) {
        let Some(shown) = &self.shown else { return };
        let mark = if shown.is_ready { "> " } else { "" };
        let text = format!("{}\r\n{note}{mark}{}", shown.sheet.lines.join("\r\n"), shown.line);
        self.put(CLEAR);
        self.put(text.as_bytes());
    }

    fn put(&mut self, bytes: &[u8]) {
        // Ignore errors: if the terminal is gone, a signal ends pi.
        let _shown = self.screen.write_all(bytes).and_then(|()| self.screen.flush());
    }
}

/// Terminal modes set by the program, as far as they must be restored after a question.
#[derive(Debug, Default, PartialEq, Eq)]
struct Modes {
    is_cursor_hidden: bool,
    /// Whether long lines are cut off instead of wrapped.
    is_cut: bool,
    is_on_other_screen: bool,
    /// The incomplete escape sequence at the end of the last output.
    rest: Vec<u8>,
}

/// Maximum length of a sequence of interest.
const LONGEST_SEQUENCE: usize = 32;

impl Modes {
    fn follow(&mut self, bytes: &[u8]) {
        let mut all = std::mem::take(&mut self.rest);
        all.extend_from_slice(bytes);
        let mut parts = all.split(|&byte| byte == 0x1b);
        // Skip the text before the first sequence.
        parts.next();
        let mut last: &[u8] = &[];
        for part in parts {
            self.take(part);
            last = part;
        }
        let is_open = all.contains(&0x1b) && !last.iter().any(u8::is_ascii_alphabetic);
        if is_open && last.len() < LONGEST_SEQUENCE {
            self.rest = [b"\x1b", last].concat();
        }
    }

    /// Handles sequences such as `[?25l`.
    fn take(&mut self, sequence: &[u8]) {
        let Some(modes) = sequence.strip_prefix(b"[?") else { return };
        let Some(end) = modes.iter().position(u8::is_ascii_alphabetic) else { return };
        let (numbers, is_set) = match modes.split_at(end) {
            (numbers, [b'h', ..]) => (numbers, true),
            (numbers, [b'l', ..]) => (numbers, false),
            _ => return,
        };
        for number in numbers.split(|&byte| byte == b';') {
            match number {
                b"25" => self.is_cursor_hidden = !is_set,
                b"7" => self.is_cut = !is_set,
                b"47" | b"1047" | b"1049" => self.is_on_other_screen = is_set,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;
