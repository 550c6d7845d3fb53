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
mod found;
mod heredoc;
mod quote;
mod redirect;
mod scan;
mod simple;
mod word;
mod wrapper;

#[cfg(test)]
mod tests;

use portcullis_decision::request::{ParsedScript, SimpleCommand, Word};

use found::{Findings, nothing};
use scan::Reader;

pub use found::{COMMANDS_MAX, DEPTH_MAX, ReadError, SCRIPT_MAX, WORDS_MAX};
pub use quote::quoted;
pub use wrapper::is_wrapper;

/// Parses a bash script.
///
/// # Errors
/// If the script is malformed, ambiguous or too large.
pub fn read(script: &str) -> Result<ParsedScript, ReadError> {
    let mut found = Findings::default();
    Reader::new(script, 0, None, &mut found)?.script()?;
    Ok(found.into_script())
}

/// Parses a command that is started without a shell.
///
/// # Errors
/// If a script in its words is malformed, ambiguous or too large.
pub fn read_argv(argv: &[String]) -> Result<ParsedScript, ReadError> {
    let mut found = Findings::default();
    let words = argv.iter().map(|word| Word { value: word.clone(), literal: true }).collect();
    let index = found.reserve(None, String::new())?;
    found.fill(index, SimpleCommand { argv: words, ..nothing() });
    wrapper::resolve(&mut found, index, 0)?;
    Ok(found.into_script())
}
