//! The command line of git: its own options, the verb, and the verb's options and words.

use portcullis_sdk::{CommandLine, OptionValue, SimpleCommand, Word};

/// A parsed call of git.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Call {
    line: CommandLine,
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
        let line = command.line().filter(|line| line.program == "git")?;
        let verb = line.operands.iter().find(|operand| operand.text.is_some());
        let at = verb.map_or(command.argv.len(), |verb| verb.at);
        let (before, after) = command.argv.split_at_checked(at + 1).unwrap_or((&command.argv, &[]));
        let is_setting = |name: &str| name == "-c" || name == "--config-env";
        let settings = line.options.iter().filter(|option| option.at < at && is_setting(&option.name));
        let value =
            |value: &OptionValue| if let OptionValue::Text(text) = value { Some(text.clone()) } else { None };
        Some(Self {
            settings: settings.filter_map(|option| value(&option.value)).collect(),
            verb: verb.and_then(|verb| verb.text.clone()).unwrap_or_default(),
            words: after.iter().filter(|word| word.literal).map(|word| word.value.clone()).collect(),
            unclear: command.argv.iter().any(|word| !word.literal),
            odd: verb.is_some_and(|verb| !verb.certain) && before.iter().all(|word| word.literal),
            line,
        })
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

    /// Returns true if an option is given in any spelling: `--force`, abbreviated, or the letter of `-fu`.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.line.has(name)
    }

    /// Returns the words after the verb that are neither options nor their values.
    pub(crate) fn operands(&self) -> impl Iterator<Item = &str> {
        self.line.operands.iter().filter_map(|operand| operand.text.as_deref()).skip(1)
    }
}
