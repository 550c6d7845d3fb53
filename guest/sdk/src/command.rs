//! Queries on the host's analysis of a command.

mod line;
mod matching;
mod rows;
#[rustfmt::skip]
mod table;

pub use line::{CommandLine, CommandOption, Operand, OptionValue};
pub use matching::CommandMatch;

use crate::{Action, CommandExecution, ParsedScript, Request, ScriptFeatures, SimpleCommand};

impl Request {
    /// Returns how surely this request runs a command that a pattern describes; `No` if it is no command.
    ///
    /// A pattern is a program with the words and options that matter, for example `git push --force`. It matches
    /// however the command is written: options in any spelling that the table of known programs has (`-f`, `-fu`,
    /// `--forc`, `--force-with-lease=x`), in any place before `--`, with further options and words
    /// (`git -C x push origin main --force`), and inside wrappers (`sudo`, `env`, `bash -c`, `npx`).
    ///
    /// Deny what certainly runs, and ask about what may: `Maybe` stands for a word that is unknown before the script
    /// runs, an unknown option that may change the meaning, an alias, and a script that cannot be read.
    pub fn matches(&self, pattern: &str) -> CommandMatch {
        match &self.action {
            Action::Command(command) | Action::Escalation(command) => command.matches(pattern),
            Action::File(_) | Action::Network(_) | Action::Socket(_) | Action::Tool(_) | Action::Other(_) => {
                CommandMatch::No
            }
        }
    }

    /// Returns true if it certainly runs a command that a pattern describes; see [`Request::matches`].
    pub fn runs(&self, pattern: &str) -> bool {
        self.matches(pattern) == CommandMatch::Yes
    }

    /// Returns true if it runs, or may run, a command that a pattern describes; see [`Request::matches`].
    pub fn could_run(&self, pattern: &str) -> bool {
        self.matches(pattern) != CommandMatch::No
    }
}

impl ParsedScript {
    /// Returns how surely a command of the script is one that a pattern describes; see [`Request::matches`].
    pub fn matches(&self, pattern: &str) -> CommandMatch {
        let listed = self.commands.iter().map(|command| command.matches(pattern)).max();
        let hidden = if self.hides() { CommandMatch::Maybe } else { CommandMatch::No };
        listed.unwrap_or(CommandMatch::No).max(hidden)
    }

    /// Returns true if a command of the script certainly is one with these words; see [`Request::matches`].
    pub fn runs(&self, words: &[&str]) -> bool {
        self.matches(&words.join(" ")) == CommandMatch::Yes
    }

    /// Returns true if the script may do more than its listed commands: it runs something unreadable, or redefines
    /// names of programs.
    pub fn hides(&self) -> bool {
        self.features.intersects(ScriptFeatures::DYNAMIC | ScriptFeatures::REDEFINITION)
    }
}

impl SimpleCommand {
    /// Returns the program's name without its directory; `None` if it is uncertain.
    pub fn name(&self) -> Option<&str> {
        let program = self.argv.first().filter(|word| word.literal)?;
        program.value.rsplit('/').next()
    }

    /// Returns how surely this command is one that a pattern describes; see [`Request::matches`].
    pub fn matches(&self, pattern: &str) -> CommandMatch {
        matching::of_words(pattern, &self.argv)
    }

    /// Returns the command's subcommands, options and operands; `None` if its program is uncertain.
    pub fn line(&self) -> Option<CommandLine> {
        CommandLine::parse(&self.argv)
    }

    /// Returns true if the command certainly begins with exactly these words. [`Request::matches`] also finds other
    /// spellings.
    pub fn begins_with(&self, words: &[&str]) -> bool {
        let Some((program, rest)) = words.split_first() else { return false };
        let mut own = self.argv.iter().skip(1);
        self.name() == Some(program)
            && rest.iter().all(|word| own.next().is_some_and(|own| own.literal && own.value == *word))
    }

    /// Returns the words after the program; `None` for uncertain ones.
    pub fn arguments(&self) -> impl Iterator<Item = Option<&str>> {
        self.argv.iter().skip(1).map(|word| word.literal.then_some(word.value.as_str()))
    }
}

impl CommandExecution {
    /// Returns how surely the script runs a command that a pattern describes; see [`Request::matches`].
    pub fn matches(&self, pattern: &str) -> CommandMatch {
        self.parsed.as_ref().map_or(CommandMatch::Maybe, |script| script.matches(pattern))
    }

    /// Returns true if a word of the script could name a program, however the script is written: for scripts that could
    /// not be analysed.
    pub fn mentions(&self, name: &str) -> bool {
        let plain: String = self.script.chars().filter(|character| !"'\"\\\n".contains(*character)).collect();
        plain.contains(name)
    }
}
