//! Finds the end of a wrapper's options.

use portcullis_decision::request::Word;

/// The options of a program, as far as needed to skip them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Grammar {
    /// Short options without a value.
    pub(crate) flags: &'static str,
    /// Short options with a value, in the same word or the next one.
    pub(crate) values: &'static str,
    /// Short options whose value can only be in the same word.
    pub(crate) attached: &'static str,
    /// Long options without a value.
    pub(crate) long_flags: &'static [&'static str],
    /// Long options whose value may be the next word.
    pub(crate) long_values: &'static [&'static str],
    /// The number of words before the command.
    pub(crate) operands: usize,
    /// True if `NAME=value` may precede the command.
    pub(crate) assigns: bool,
    /// Short options with which the program runs no command.
    pub(crate) asking: &'static str,
}

/// The part after the options.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// The command that is run.
    Command {
        /// The index of its first word.
        at: usize,
        /// `NAME=value` words before it.
        assigned: Vec<Word>,
    },
    /// There is no command.
    Nothing,
    /// It cannot be determined.
    Unknown,
}

/// Skips the options of a wrapper.
pub(crate) fn after_options(argv: &[Word], grammar: &Grammar) -> After {
    let mut at = 1;
    let mut options = true;
    let mut operands = grammar.operands;
    let mut assigned = Vec::new();
    while let Some(word) = argv.get(at) {
        if !word.literal && operands == 0 && !options {
            // The program itself is unknown; the caller marks the script as dynamic when it resolves it.
            return After::Command { at, assigned };
        }
        if !word.literal && operands == 0 {
            return After::Unknown;
        }
        let text = word.value.as_str();
        if options && text == "--" {
            options = false;
        } else if options && text.starts_with("--") {
            match long(text, grammar) {
                Some(words) => at += words,
                None => return After::Unknown,
            }
        } else if options && text.len() > 1 && text.starts_with('-') {
            match short(text, grammar) {
                Some(Short::Pass(words)) => at += words,
                Some(Short::Asks) => return After::Nothing,
                None => return After::Unknown,
            }
        } else if options && text == "-" && grammar.flags.contains('-') {
            // `env -` is `env -i`.
        } else if grammar.assigns && is_assignment(text) {
            options = false;
            assigned.push(word.clone());
        } else if operands > 0 {
            operands -= 1;
            options &= operands > 0;
        } else {
            return After::Command { at, assigned };
        }
        at += 1;
    }
    if at > argv.len() { After::Unknown } else { After::Nothing }
}

fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| !name.is_empty())
}

/// Returns how many further words a long option takes; `None` if the option is unknown.
fn long(text: &str, grammar: &Grammar) -> Option<usize> {
    let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
    if grammar.long_values.contains(&name) {
        return Some(usize::from(value.is_none()));
    }
    grammar.long_flags.contains(&name).then_some(0)
}

enum Short {
    /// The number of further words it takes.
    Pass(usize),
    /// The program runs no command.
    Asks,
}

fn short(text: &str, grammar: &Grammar) -> Option<Short> {
    let mut letters = text.chars().skip(1).peekable();
    while let Some(letter) = letters.next() {
        if grammar.asking.contains(letter) {
            return Some(Short::Asks);
        }
        if grammar.values.contains(letter) {
            return Some(Short::Pass(usize::from(letters.peek().is_none())));
        }
        if grammar.attached.contains(letter) {
            return Some(Short::Pass(0));
        }
        if !grammar.flags.contains(letter) {
            return None;
        }
    }
    Some(Short::Pass(0))
}

/// The source of a shell's script.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ShellRuns {
    /// The script after `-c`.
    Words(String),
    /// Standard input.
    StandardInput,
    /// A file, or a source that cannot be determined.
    Unknown,
}

/// Parses the command line of a shell.
pub(crate) fn shell(argv: &[Word]) -> ShellRuns {
    let mut words = argv.iter().skip(1);
    let mut inline = false;
    while let Some(word) = words.next() {
        let text = word.value.as_str();
        if !word.literal {
            return ShellRuns::Unknown;
        }
        match text {
            "--" | "-" => {
                return match words.next() {
                    Some(word) if inline => script(word),
                    Some(_) => ShellRuns::Unknown,
                    None => ShellRuns::StandardInput,
                };
            }
            "--norc" | "--noprofile" | "--posix" | "--login" | "--verbose" | "--restricted" => {}
            _ if text.starts_with("--") => return ShellRuns::Unknown,
            _ if text.starts_with(['-', '+']) => {
                inline |= text.starts_with('-') && text.contains('c');
                // Each `o` or `O` takes a word.
                let values = text.chars().filter(|letter| "oO".contains(*letter)).count();
                for _ in 0..values {
                    if words.next().is_none_or(|word| !word.literal) {
                        return ShellRuns::Unknown;
                    }
                }
            }
            _ if inline => return script(word),
            _ => return ShellRuns::Unknown,
        }
    }
    if inline { ShellRuns::Unknown } else { ShellRuns::StandardInput }
}

fn script(word: &Word) -> ShellRuns {
    if word.literal { ShellRuns::Words(word.value.clone()) } else { ShellRuns::Unknown }
}
