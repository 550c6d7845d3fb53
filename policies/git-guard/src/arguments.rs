//! The command line of git: its own options, the verb, the verb's options and words.

use portcullis_sdk::{SimpleCommand, Word};

/// Options of git itself that take the next word.
const WITH_VALUE: [&str; 8] = [
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--attr-source",
    "--super-prefix",
    "--config-env",
];
/// Options of git itself that stand alone. What is in neither list may take the verb for its value.
const ALONE: [&str; 23] = [
    "-v",
    "--version",
    "-h",
    "--help",
    "--exec-path",
    "--html-path",
    "--man-path",
    "--info-path",
    "-p",
    "--paginate",
    "-P",
    "--no-pager",
    "--no-replace-objects",
    "--no-lazy-fetch",
    "--no-optional-locks",
    "--no-advice",
    "--bare",
    "--literal-pathspecs",
    "--glob-pathspecs",
    "--noglob-pathspecs",
    "--icase-pathspecs",
    "--no-literal-pathspecs",
    "--no-attr-source",
];

/// A call of git, taken apart.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Call {
    /// Values of `-c` and `--config-env`.
    pub(crate) settings: Vec<String>,
    /// The verb; empty: none.
    pub(crate) verb: String,
    /// What follows the verb.
    pub(crate) words: Vec<String>,
    /// Whether a word is not known.
    pub(crate) unclear: bool,
    /// Whether an option of git itself is not known, so that the verb may be another one.
    pub(crate) odd: bool,
}

impl Call {
    /// Takes a command apart; none when it is not git.
    pub(crate) fn of(command: &SimpleCommand) -> Option<Self> {
        let name = command.name()?;
        if name != "git" {
            // `git-push` and the like lie in git's own directory.
            let verb = name.strip_prefix("git-")?;
            let mut call = Self { verb: verb.to_owned(), ..Self::default() };
            call.take_words(command.arguments());
            return Some(call);
        }
        let mut call = Self::default();
        let mut words = command.arguments();
        while let Some(word) = words.next() {
            let Some(word) = word else {
                call.unclear = true;
                continue;
            };
            if word == "-c" || word == "--config-env" {
                match words.next() {
                    Some(Some(value)) => call.settings.push(value.to_owned()),
                    Some(None) => call.unclear = true,
                    None => {}
                }
            } else if let Some(value) = word.strip_prefix("--config-env=") {
                call.settings.push(value.to_owned());
            } else if WITH_VALUE.contains(&word) {
                call.unclear |= words.next() == Some(None);
            } else if !word.starts_with('-') {
                call.verb = word.to_owned();
                break;
            } else if !ALONE.contains(&word) && !word.contains('=') {
                call.odd = true;
            }
        }
        call.take_words(words);
        Some(call)
    }

    /// A call that other words of a command line come to; none when they are not git.
    pub(crate) fn of_words(words: &[String]) -> Option<Self> {
        let argv = words.iter().map(|value| Word { value: value.clone(), literal: true }).collect();
        Self::of(&SimpleCommand {
            argv,
            assignments: Vec::new(),
            redirects: Vec::new(),
            joined_by: String::new(),
            parent: None,
            program: None,
        })
    }

    fn take_words<'a>(&mut self, words: impl Iterator<Item = Option<&'a str>>) {
        for word in words {
            match word {
                Some(word) => self.words.push(word.to_owned()),
                None => self.unclear = true,
            }
        }
    }

    /// Whether an option is given: `--force`, also shortened, or the letter of `-fu`.
    pub(crate) fn has(&self, long: &str, short: Option<char>) -> bool {
        self.options().any(|word| {
            let name = word.split('=').next().unwrap_or_default();
            // Git takes any beginning of a long option that no other one has.
            let is_long = name.len() > 3 && long.starts_with(name) && name.starts_with("--");
            let is_short = !word.starts_with("--") && short.is_some_and(|short| word.contains(short));
            is_long || is_short
        })
    }

    /// Words that begin with `-`, up to `--`.
    fn options(&self) -> impl Iterator<Item = &str> {
        self.words
            .iter()
            .map(String::as_str)
            .take_while(|word| *word != "--")
            .filter(|word| word.starts_with('-'))
    }

    /// Words that are no options.
    pub(crate) fn operands(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(String::as_str).filter(|word| !word.starts_with('-'))
    }
}
