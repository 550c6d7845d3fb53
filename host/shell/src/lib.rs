//! Parses shell scripts without running them.
//!
//! The result lists the commands of a script, says which of their words are certain, and names the features that make
//! the script hard to judge.
//!
//! Owns: the parser from bash scripts to the `parsed-script` of the contract. Must never know: policies, files, the
//! environment. It is pure.
//!
//! Terms: a word is **literal** if bash passes exactly this text to the command, whatever files and variables exist. A
//! **wrapper** is a command that runs another command given in its words (`sudo`, `env`, `xargs`, `bash -c`); the inner
//! command is listed with the wrapper as its `parent`. A script is `dynamic` if it runs something that cannot be read
//! from its text.
//!
//! A verdict on the text of a command serves to show intent and to prompt the user; the kernel enforces the limits.
//! Still, the parser errs on the safe side: it refuses a script that could mean something else to bash ([`ReadError`]),
//! and a word that is not certain is not literal. The tests run scripts in a real bash and look for a command that the
//! parser missed.
//!
//! The parser cannot overflow the stack, loop or grow without bound: depth, size and number of commands are limited,
//! and the crate contains no unsafe code.
//!
//! ```
//! let script = portcullis_shell::read("cd src && sudo env X=1 'git' push --\"force\"").unwrap();
//! let last = script.commands.last().unwrap();
//! let words: Vec<_> = last.argv.iter().map(|word| word.value.as_str()).collect();
//! assert_eq!(words, ["git", "push", "--force"]);
//! assert!(portcullis_shell::read("echo $((").is_err());
//! ```

mod ansi;
mod command;
mod compound;
mod evaluating;
mod expansion;
mod heredoc;
mod redirect;
mod scan;
mod simple;
mod word;
mod wrapper;

#[cfg(test)]
mod tests;

use portcullis_decision::request::{ParsedScript, ScriptFeatures, SimpleCommand, Word};

use evaluating::Variables;
use scan::Reader;

pub use wrapper::is_wrapper;

/// The longest accepted script in bytes; the limit includes all scripts nested in it.
pub const SCRIPT_MAX: usize = 128 << 10;
/// The most commands in one script.
pub const COMMANDS_MAX: usize = 1_000;
/// The most words, assignments and redirections in one script.
pub const WORDS_MAX: usize = 10_000;
/// The deepest nesting of substitutions, compound commands and scripts in scripts.
///
/// Each level takes a few hundred bytes of stack.
pub const DEPTH_MAX: usize = 50;

/// The reason why a script is refused. Bash may still run it, or the part before the fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The script is malformed, or different shells read it differently.
    #[error("at byte {at} of the script: {what}")]
    Syntax {
        /// The byte offset, counted from 0.
        at: usize,
        /// The fault.
        what: &'static str,
    },
    /// The script is too large.
    #[error("the script is too large to be read: more than {what}")]
    Size {
        /// The limit that it exceeds.
        what: &'static str,
    },
}

/// Parses a bash script.
///
/// # Errors
/// If the script is malformed, ambiguous or too large.
pub fn read(script: &str) -> Result<ParsedScript, ReadError> {
    let mut found = Found::default();
    Reader::new(script, 0, None, &mut found)?.script()?;
    Ok(found.into_script())
}

/// Parses a command that is started without a shell.
///
/// # Errors
/// If a script in its words is malformed, ambiguous or too large.
pub fn read_argv(argv: &[String]) -> Result<ParsedScript, ReadError> {
    let mut found = Found::default();
    let words = argv.iter().map(|word| Word { value: word.clone(), literal: true }).collect();
    let index = found.reserve(None, String::new())?;
    found.fill(index, SimpleCommand { argv: words, ..nothing() });
    wrapper::resolve(&mut found, index, 0)?;
    Ok(found.into_script())
}

/// The result so far, over all nested scripts.
#[derive(Debug, Default)]
struct Found {
    commands: Vec<SimpleCommand>,
    features: ScriptFeatures,
    /// True if there is anything but lists of simple commands.
    has_compounds: bool,
    variables: Variables,
    /// Total bytes of the scripts read.
    bytes: usize,
    words: usize,
}

impl Found {
    /// Reserves the entry of a command that is about to be read, so that commands inside it come after it.
    fn reserve(&mut self, parent: Option<u32>, joined_by: String) -> Result<u32, ReadError> {
        if self.commands.len() >= COMMANDS_MAX {
            return Err(ReadError::Size { what: "1,000 commands" });
        }
        let index = u32::try_from(self.commands.len()).unwrap_or(u32::MAX);
        self.commands.push(SimpleCommand { parent, joined_by, ..nothing() });
        Ok(index)
    }

    /// Fills the reserved entry of a command.
    fn fill(&mut self, index: u32, read: SimpleCommand) {
        if let Some(place) = self.commands.get_mut(index as usize) {
            place.argv = read.argv;
            place.assignments = read.assignments;
            place.redirects = read.redirects;
        }
    }

    fn count_word(&mut self) -> Result<(), ReadError> {
        self.words += 1;
        if self.words > WORDS_MAX { Err(ReadError::Size { what: "10,000 words" }) } else { Ok(()) }
    }

    fn into_script(mut self) -> ParsedScript {
        self.features.dynamic |= self.variables.meet();
        ParsedScript { commands: self.commands, features: self.features, plain: !self.has_compounds }
    }
}

fn nothing() -> SimpleCommand {
    SimpleCommand {
        argv: Vec::new(),
        assignments: Vec::new(),
        redirects: Vec::new(),
        joined_by: String::new(),
        parent: None,
        program: None,
    }
}
