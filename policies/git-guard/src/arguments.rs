//! The command line of git: its own options, the verb, and the verb's options and words.

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
/// Options of git itself without a value. An option in neither list may take the verb as its value.
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

/// A parsed call of git.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Call {
    /// Values of `-c` and `--config-env`.
    pub(crate) settings: Vec<String>,
    /// The verb; empty for none.
    pub(crate) verb: String,
    /// The words after the verb.
    pub(crate) words: Vec<String>,
    /// Whether a word is uncertain.
    pub(crate) unclear: bool,
    /// Whether an option of git itself is unknown, so that the verb may be another one.
    pub(crate) odd: bool,
}

impl Call {
    /// Parses a command; `None` if it is not git.
    pub(crate) fn of(command: &SimpleCommand) -> Option<Self> {
        let name = command.name()?;
        if name != "git" {
            // `git-push` and the like are in git's own directory.
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

    /// Parses a call given as words of another command line; `None` if they are not git.
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

    /// Returns true if an option is given: `--force`, also abbreviated, or the letter of `-fu`.
    pub(crate) fn has(&self, long: &str, short: Option<char>) -> bool {
        self.options().any(|word| {
            let name = word.split('=').next().unwrap_or_default();
            // Git accepts any unambiguous abbreviation of a long option.
            let is_long = name.len() > 3 && long.starts_with(name) && name.starts_with("--");
            let is_short = !word.starts_with("--") && short.is_some_and(|short| word.contains(short));
            is_long || is_short
        })
    }

    /// Returns the words that begin with `-`, up to `--`.
    fn options(&self) -> impl Iterator<Item = &str> {
        self.words
            .iter()
            .map(String::as_str)
            .take_while(|word| *word != "--")
            .filter(|word| word.starts_with('-'))
    }

    /// Returns the words that are not options.
    pub(crate) fn operands(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(String::as_str).filter(|word| !word.starts_with('-'))
    }
}
