//! What has been found in a script and the scripts in it, with the limits on it.

use std::collections::BTreeSet;

use portcullis_decision::request::{ParsedScript, ScriptFeatures, SimpleCommand};

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
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum ReadError {
    /// The script is malformed, or different shells read it differently.
    #[error("at byte {at} of the script: {what}")]
    Syntax { at: usize, what: &'static str },
    /// The script is too large.
    #[error("the script is too large to be read: more than {what}")]
    Size { what: &'static str },
}

/// The result so far, over all nested scripts.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) commands: Vec<SimpleCommand>,
    pub(crate) features: ScriptFeatures,
    /// True if there is anything but lists of simple commands.
    pub(crate) has_compounds: bool,
    pub(crate) variables: Variables,
    /// Total bytes of the scripts read.
    pub(crate) bytes: usize,
    pub(crate) words: usize,
}

impl Findings {
    /// Reserves the entry of a command that is about to be read, so that commands inside it come after it.
    pub(crate) fn reserve(&mut self, parent: Option<u32>, joined_by: String) -> Result<u32, ReadError> {
        if self.commands.len() >= COMMANDS_MAX {
            return Err(ReadError::Size { what: "1,000 commands" });
        }
        let index = u32::try_from(self.commands.len()).unwrap_or(u32::MAX);
        self.commands.push(SimpleCommand { parent, joined_by, ..nothing() });
        Ok(index)
    }

    /// Fills the reserved entry of a command.
    pub(crate) fn fill(&mut self, index: u32, read: SimpleCommand) {
        if let Some(place) = self.commands.get_mut(index as usize) {
            place.argv = read.argv;
            place.assignments = read.assignments;
            place.redirects = read.redirects;
        }
    }

    pub(crate) fn count_word(&mut self) -> Result<(), ReadError> {
        self.words += 1;
        if self.words > WORDS_MAX { Err(ReadError::Size { what: "10,000 words" }) } else { Ok(()) }
    }

    pub(crate) fn into_script(mut self) -> ParsedScript {
        self.features.dynamic |= self.variables.meet();
        ParsedScript { commands: self.commands, features: self.features, plain: !self.has_compounds }
    }
}

/// Returns a command without words.
pub(crate) fn nothing() -> SimpleCommand {
    SimpleCommand {
        argv: Vec::new(),
        assignments: Vec::new(),
        redirects: Vec::new(),
        joined_by: String::new(),
        parent: None,
        program: None,
    }
}

/// The variables of a script.
#[derive(Debug, Default)]
pub(crate) struct Variables {
    /// Variables that may hold any text.
    pub(crate) given: BTreeSet<String>,
    /// Variables whose values are evaluated as expressions.
    pub(crate) calculated: BTreeSet<String>,
}

impl Variables {
    /// Returns true if a variable that may hold any text is evaluated as an expression.
    fn meet(&self) -> bool {
        !self.given.is_disjoint(&self.calculated)
    }
}
