//! Lays out a question as text for a terminal of a given size.
//!
//! An answer is accepted only if the whole question is on the screen: the subject controls the length of the text, and
//! could push the beginning of the question off the screen.

use portcullis_session::{Answer, Choice, ChoiceKind, Question, Refusal};
use portcullis_text::escape_message;

/// Prefix of each line of foreign text, so that no such line looks like one of ours.
pub const QUOTED: &str = "  | ";
/// Number of rows for the input line and the note above it.
const KEPT_ROWS: usize = 2;
/// The assumed size of a terminal of unknown size, the smallest usual one.
const LEAST: Size = Size { columns: 80, rows: 24 };

/// The size of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    columns: usize,
    rows: usize,
}

impl Size {
    /// Asks the kernel for the size.
    pub fn of_terminal(terminal: impl std::os::fd::AsFd) -> Self {
        let known = rustix::termios::tcgetwinsize(terminal);
        known.map_or(LEAST, |size| Self::new(size.ws_col.into(), size.ws_row.into()))
    }

    /// Returns a size with the default for each dimension that is 0.
    pub fn new(columns: usize, rows: usize) -> Self {
        let or = |known, usual| if known == 0 { usual } else { known };
        Self { columns: or(columns, LEAST.columns), rows: or(rows, LEAST.rows) }
    }

    /// Wraps a text, with `indent` before each line. Non-ASCII characters may be twice as wide.
    pub fn wrapped(self, indent: &str, text: &str) -> Vec<String> {
        let room = self.columns.saturating_sub(indent.len() + QUOTED.len()).max(2);
        let mut lines = Vec::new();
        let text = escape_message(text);
        for part in text.split('\n') {
            let (mut line, mut width) = (String::new(), 0);
            for character in part.chars() {
                let wide = if character.is_ascii() { 1 } else { 2 };
                if width + wide > room {
                    // The break takes the place of one space.
                    if character == ' ' && !line.ends_with(' ') {
                        lines.push(format!("{indent}{line}"));
                        (line, width) = (String::new(), 0);
                        continue;
                    }
                    let rest = if character == ' ' { String::new() } else { last_word(&mut line) };
                    lines.push(format!("{indent}{line}"));
                    width = rest.chars().map(|character| if character.is_ascii() { 1 } else { 2 }).sum();
                    line = rest;
                }
                line.push(character);
                width += wide;
            }
            lines.push(format!("{indent}{line}").trim_end().to_owned());
        }
        lines
    }

    /// Like [`Self::wrapped`], for a line that starts with our words and ends with foreign text.
    ///
    /// Foreign text is for example a tool name or a path.
    pub fn headed(self, indent: &str, text: &str) -> Vec<String> {
        let lines = self.wrapped(indent, text).into_iter().enumerate();
        let behind = |line: String| format!("{QUOTED}{}", line.strip_prefix(indent).unwrap_or(&line));
        lines.map(|(place, line)| if place == 0 { line } else { behind(line) }).collect()
    }
}

/// Removes and returns the last word of a line, unless that leaves less than half of it.
///
/// The space stays, so that no character of foreign text is lost.
fn last_word(line: &mut String) -> String {
    match line.rfind(' ') {
        Some(space) if (space + 1) * 2 > line.len() => line.split_off(space + 1),
        Some(_) | None => String::new(),
    }
}

/// The layout of a question.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PromptLayout {
    /// Its lines, none wider than the terminal.
    pub lines: Vec<String>,
    /// The text to type for each choice, with the index of the choice.
    pub answers: Vec<(String, usize)>,
}

impl PromptLayout {
    /// Lays out `question` below `heading`. Answers end with `number`, which only the terminal shows.
    pub fn new(heading: &str, question: &Question, number: &str, footer: &str, size: Size) -> Self {
        let page = Page { question, number, size };
        let widest = question.choices.iter().map(|choice| choice.width).max().unwrap_or(0);
        // If not all choices fit on the screen, the wider ones are left out.
        let narrower = |width| page.whole(heading, footer, |_, choice| choice.width <= width);
        let first = || page.whole(heading, footer, |place, _| place == 0);
        let mut sheets = (0..=widest).rev().map(narrower).chain(std::iter::once_with(first));
        let fitting = sheets.find(|sheet| sheet.lines.len() + KEPT_ROWS <= size.rows);
        fitting.unwrap_or_else(|| page.short(heading, footer))
    }

    /// Returns the answer that was typed; `None` if it is none of the answers.
    pub fn answer(&self, typed: &str) -> Option<Answer> {
        if let Some(choice) = self.chosen(typed) {
            return Some(Answer::Choice(choice));
        }
        match typed.split_once(char::is_whitespace) {
            None => matches!(typed, "" | "n" | "N").then_some(Answer::Refused(Refusal::User)),
            Some((no, why)) => matches!(no, "n" | "N").then(|| Answer::RefusedBecause(why.trim().to_owned())),
        }
    }

    /// Returns the index of the choice that was typed.
    pub fn chosen(&self, typed: &str) -> Option<usize> {
        self.answers.iter().find(|(code, _)| code == typed).map(|(_, choice)| *choice)
    }
}

struct Page<'a> {
    question: &'a Question,
    number: &'a str,
    size: Size,
}

impl Page<'_> {
    /// Lays out the whole question, with the choices that are `offered`.
    fn whole(&self, heading: &str, footer: &str, offered: impl Fn(usize, &Choice) -> bool) -> PromptLayout {
        let mut lines = self.wrapped("", heading);
        lines.extend(self.asked());
        self.with_choices(lines, footer, offered)
    }

    /// Lays out the title, the context and the preview of a question, without its choices.
    fn asked(&self) -> Vec<String> {
        let Question { subject, context, preview, policy, .. } = self.question;
        let mut lines = match self.question.in_one_line() {
            Some(line) if line.len() + QUOTED.len() < self.size.columns => vec![line],
            Some(_) | None => {
                let mut lines = self.size.headed("", &format!("{}:", self.question.title));
                lines.extend(self.wrapped(QUOTED, self.question.place.as_ref().unwrap_or(subject)));
                lines
            }
        };
        lines.extend(self.size.headed("", context));
        lines.extend(preview.iter().flat_map(|preview| self.wrapped(QUOTED, preview)));
        if let Some(quote) = &self.question.quote {
            lines.extend(self.wrapped(QUOTED, &format!("{policy} says: “{quote}”")));
        }
        lines
    }

    /// Lays out the details, below the choices.
    fn details(&self) -> Vec<String> {
        let Question { asker, reason, rule, policy, choices, .. } = self.question;
        let mut text = format!("Why: {reason} [{rule} of {policy}]. Asked by {asker}.");
        let mut saved: Vec<String> = Vec::new();
        for choice in choices {
            let Some(target) = &choice.target else { continue };
            let entry = format!("[{}] {target}", choice.key);
            if !saved.contains(&entry) {
                saved.push(entry);
            }
        }
        if !saved.is_empty() {
            text.push_str(&format!(" Saved in: {}.", saved.join("; ")));
        }
        self.wrapped(QUOTED, &text)
    }

    /// Lays out a summary, for a screen that is too small.
    fn short(&self, heading: &str, footer: &str) -> PromptLayout {
        let Question { title, subject, .. } = self.question;
        let first = |indent: &str, text: &str| self.wrapped(indent, text).into_iter().next();
        let mut below = vec![String::new()];
        below.extend(self.wrapped(
            "",
            "This does not fit on the screen, so it cannot be allowed here: enlarge the window, or answer by \
             `portcullis asks` in another terminal.",
        ));
        let end = self.with_choices(below, footer, |_, choice| choice.kind == ChoiceKind::Deny);
        let mut lines: Vec<String> = first("", heading).into_iter().chain(first("", title)).collect();
        let shown = self.size.rows.saturating_sub(lines.len() + end.lines.len() + KEPT_ROWS).max(1);
        lines.extend(self.wrapped(QUOTED, subject).into_iter().take(shown));
        lines.extend(end.lines);
        PromptLayout { lines, ..end }
    }

    fn with_choices(
        &self,
        mut lines: Vec<String>,
        footer: &str,
        offered: impl Fn(usize, &Choice) -> bool,
    ) -> PromptLayout {
        lines.extend(self.size.headed("  ", "[n] No (default); `n WHY` tells the agent why"));
        let mut answers = Vec::new();
        let choices = self.question.choices.iter().enumerate();
        for (place, choice) in choices.filter(|(place, choice)| offered(*place, choice)) {
            let code = format!("{}{}", choice.code(), self.number);
            lines.extend(self.size.headed("  ", &format!("[{code}] {}", choice.spoken())));
            answers.push((code, place));
        }
        if !answers.is_empty() {
            lines.extend(self.details());
        }
        if !footer.is_empty() {
            lines.extend(self.wrapped("", footer));
        }
        PromptLayout { lines, answers }
    }

    fn wrapped(&self, indent: &str, text: &str) -> Vec<String> {
        self.size.wrapped(indent, text)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use portcullis_decision::{GrantPattern, GrantScope};

    const SMALL: Size = Size { columns: 80, rows: 24 };

    pub(crate) fn question(id: u64) -> Question {
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
            place: None,
            context: "context".to_owned(),
            preview: None,
            is_sensitive: false,
            asker: "pi itself".to_owned(),
            reason: "reason".to_owned(),
            policy: "policy".to_owned(),
            rule: "rule".to_owned(),
            quote: None,
            choices: vec![choice],
            timeout_ms: Some(60_000),
        }
    }

    fn sheet(subject: &str, size: Size) -> PromptLayout {
        let question = Question { subject: subject.to_owned(), ..question(1) };
        PromptLayout::new("Portcullis asks:", &question, "-1234", "Type one.", size)
    }

    #[test]
    fn what_fits_is_offered() {
        let sheet = sheet("subject", SMALL);
        assert_eq!((sheet.chosen("o-1234"), sheet.chosen("o"), sheet.chosen("n")), (Some(0), None, None));
        assert!(sheet.lines.iter().any(|line| line == "title 1 subject"), "{sheet:?}");
    }

    #[test]
    fn nothing_is_permitted_that_is_not_seen_whole() {
        // Enough lines to push the first of them off the screen, the last ones a fake question.
        let fake =
            ["", "Portcullis asks:", "title 1", "  | README.md"].map(|line| format!("{line:80}")).concat();
        let subject = format!("/etc/passwd{}{fake}", " ".repeat(80 * 28));
        let sheet = sheet(&subject, SMALL);
        assert!(
            subject.len() / SMALL.columns > SMALL.rows,
            "the control: it would push the title off the screen"
        );
        assert!(sheet.lines.len() + KEPT_ROWS <= SMALL.rows, "{sheet:#?}");
        assert_eq!(sheet.answers, []);
        let text = sheet.lines.join("\n");
        assert!(
            text.contains("title 1") && text.contains("  | /etc/passwd") && text.contains("enlarge"),
            "{text}"
        );
        // On a larger screen it is complete, and none of the fake lines looks like one of ours.
        let large = self::sheet(&subject, Size::new(80, 60));
        assert_eq!(large.chosen("o-1234"), Some(0));
        assert_eq!(large.lines.iter().filter(|line| line.starts_with("Portcullis asks:")).count(), 1);
        assert!(large.lines.iter().all(|line| line.chars().count() < 80), "{large:#?}");
    }

    #[test]
    fn no_piece_of_a_title_passes_for_a_line_of_ours() {
        let title = format!("Allow the tool `x`?{}[o-1234] Allow once`?", " ".repeat(80));
        let question = Question { title, ..question(1) };
        let sheet = PromptLayout::new("Portcullis asks:", &question, "-1234", "", SMALL);
        assert_eq!(sheet.chosen("o-1234"), Some(0));
        let like_an_answer = sheet.lines.iter().filter(|line| line.trim_start().starts_with("[o-1234]"));
        assert_eq!(like_an_answer.count(), 1, "{sheet:#?}");
    }

    #[test]
    fn where_there_is_no_room_for_all_answers_the_narrow_ones_are_offered() {
        let wide = |width| Choice {
            width,
            covers: Some(format!("/{}", "x".repeat(70 * 4))),
            ..question(1).choices.remove(0)
        };
        let choices = (0..4).map(wide).collect();
        let question = Question { choices, ..question(1) };
        let codes = |rows| {
            let sheet = PromptLayout::new("Portcullis asks:", &question, "-1", "", Size::new(80, rows));
            assert!(sheet.lines.len() + KEPT_ROWS <= rows, "{sheet:#?}");
            sheet.answers.into_iter().map(|(code, _)| code).collect::<Vec<_>>()
        };
        assert_eq!(codes(40), ["o-1", "o2-1", "o3-1", "o4-1"]);
        assert_eq!(codes(20), ["o-1", "o2-1"]);
        assert_eq!(codes(14), ["o-1"]);
        assert_eq!(codes(11), [""; 0]);
    }

    #[test]
    fn wide_characters_take_two_places() {
        let sheet = sheet(&"日".repeat(700), SMALL);
        assert_eq!(sheet.answers, [], "700 of them are 1400 columns: {sheet:#?}");
        assert_eq!(Size::new(0, 0), LEAST);
    }
}
