//! Reads shell scripts without running them: which commands stand in them, which
//! of their words are certain, and what makes a script hard to judge.
//!
//! Owns: the reading of bash scripts into the `parsed-script` of the contract.
//! Must never know: policies, files, the environment. It is pure.
//!
//! Terms: a word is **literal** when bash passes exactly this text to the
//! command, whatever files and variables there are. A **wrapper** is a command
//! that runs another one which stands in its words (`sudo`, `env`, `xargs`,
//! `bash -c`); the inner command is listed with the wrapper as its `parent`.
//! What a wrapper runs and cannot be read is marked `dynamic`.
//!
//! A verdict on the text of a command is for intent and prompts; the kernel holds
//! the wall. Still the reading errs on one side: a script that could mean
//! something else to bash is refused ([`ReadError`]), and what is not certain is
//! not literal. The tests run scripts in a real bash and look for a command that
//! was not read.
//!
//! The reading cannot overflow the stack, loop or grow without bound: depth, size
//! and number of commands are counted, and nothing here is unsafe.
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

/// Longest script that is read, in bytes; also the sum of all scripts within it.
pub const SCRIPT_MAX: usize = 128 << 10;
/// Most commands of one script.
pub const COMMANDS_MAX: usize = 1_000;
/// Most words, assignments and redirections of one script.
pub const WORDS_MAX: usize = 10_000;
/// Deepest nesting of substitutions, compound commands and scripts in scripts.
/// Each level takes a few hundred bytes of stack.
pub const DEPTH_MAX: usize = 50;

/// Why a script has no reading. Bash may still run it, or the part before the
/// fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// It is malformed, or means different things to different shells.
    #[error("at byte {at} of the script: {what}")]
    Syntax {
        /// Where, counted from 0.
        at: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// It is larger than what is read.
    #[error("the script is too large to be read: more than {what}")]
    Size {
        /// Of what there is too much.
        what: &'static str,
    },
}

/// Reads a bash script.
///
/// # Errors
/// When it has no certain reading.
pub fn read(script: &str) -> Result<ParsedScript, ReadError> {
    let mut found = Found::default();
    Reader::new(script, 0, None, &mut found)?.script()?;
    Ok(found.into_script())
}

/// Reads a command that is started without a shell.
///
/// # Errors
/// When a script within it has no certain reading.
pub fn read_argv(argv: &[String]) -> Result<ParsedScript, ReadError> {
    let mut found = Found::default();
    let words = argv.iter().map(|word| Word { value: word.clone(), literal: true }).collect();
    let index = found.reserve(None, String::new())?;
    found.fill(index, SimpleCommand { argv: words, ..nothing() });
    wrapper::resolve(&mut found, index, 0)?;
    Ok(found.into_script())
}

/// What has been read so far, over all scripts within the script.
#[derive(Debug, Default)]
struct Found {
    commands: Vec<SimpleCommand>,
    features: ScriptFeatures,
    /// Whether there is anything but lists of simple commands.
    has_compounds: bool,
    variables: Variables,
    /// Bytes of scripts that were read.
    bytes: usize,
    words: usize,
}

impl Found {
    /// Keeps a place for a command that is about to be read, so that what stands
    /// inside it comes after it.
    fn reserve(&mut self, parent: Option<u32>, joined_by: String) -> Result<u32, ReadError> {
        if self.commands.len() >= COMMANDS_MAX {
            return Err(ReadError::Size { what: "1,000 commands" });
        }
        let index = u32::try_from(self.commands.len()).unwrap_or(u32::MAX);
        self.commands.push(SimpleCommand { parent, joined_by, ..nothing() });
        Ok(index)
    }

    /// Puts a command into its place.
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
