//! Commands that run another command given in their words or in a here-document.
//!
//! The inner command is listed as a command of its own. If it cannot be determined, the script is marked `dynamic`.

mod options;
mod table;

use portcullis_decision::request::{SimpleCommand, Word};

use crate::found::{DEPTH_MAX, Findings, ReadError, nothing};
use crate::scan::Reader;
use options::{After, after_options};
use table::{WrapperKind, kind};

/// Returns true if a program runs other programs or code given in its arguments.
///
/// `name` is its name without directories.
#[must_use]
pub fn is_wrapper(name: &str) -> bool {
    kind(name).is_some()
}

/// Lists the commands that the command at `index` runs.
pub(crate) fn resolve(found: &mut Findings, index: u32, depth: usize) -> Result<(), ReadError> {
    let Some(command) = found.commands.get(index as usize).cloned() else { return Ok(()) };
    let Some(program) = command.argv.first() else { return Ok(()) };
    if !program.literal {
        found.features.dynamic = true;
        return Ok(());
    }
    let name = program.value.rsplit('/').next().unwrap_or_default();
    let Some(kind) = kind(name) else { return Ok(()) };
    let inner = Inner { command: &command, index, depth: depth + 1 };
    match kind {
        WrapperKind::Prefix(grammar) => match after_options(&command.argv, &grammar) {
            After::Command { at, assigned } => {
                assigned.iter().for_each(|word| found.declared(word));
                inner.words(found, command.argv.get(at..).unwrap_or_default().to_vec())
            }
            After::Nothing => Ok(()),
            After::Unknown => unknown(found),
        },
        WrapperKind::Background(grammar) => {
            found.features.background = true;
            match after_options(&command.argv, &grammar) {
                After::Command { at, .. } => {
                    inner.words(found, command.argv.get(at..).unwrap_or_default().to_vec())
                }
                After::Nothing => Ok(()),
                After::Unknown => unknown(found),
            }
        }
        WrapperKind::Shell => inner.shell(found),
        WrapperKind::Script => inner.script_of_words(found, command.argv.get(1..).unwrap_or_default()),
        WrapperKind::Trap => inner.trap(found),
        WrapperKind::Find => inner.find(found),
        WrapperKind::Xargs(grammar) => inner.xargs(found, &grammar),
        WrapperKind::Interpreter => {
            found.features.dynamic |= runs_inline(&command.argv);
            Ok(())
        }
        WrapperKind::Awk => {
            let running = ["system", "|", "getline", "@load", "-f", "-E", "-l"];
            let runs = |word: &Word| !word.literal || running.iter().any(|part| word.value.contains(part));
            found.features.dynamic |= command.argv.iter().skip(1).any(runs);
            Ok(())
        }
        WrapperKind::Redefining => {
            found.features.redefinition = true;
            Ok(())
        }
        WrapperKind::Declaring => {
            found.declaration(command.argv.get(1..).unwrap_or_default());
            Ok(())
        }
        WrapperKind::Evaluating => {
            found.builtin(name, command.argv.get(1..).unwrap_or_default());
            Ok(())
        }
        WrapperKind::Opaque => unknown(found),
    }
}

/// Resolves a command again after the body of its here-document has been read.
pub(crate) fn resolve_fed(found: &mut Findings, index: u32, depth: usize) -> Result<(), ReadError> {
    let Some(command) = found.commands.get(index as usize).cloned() else { return Ok(()) };
    let name = command.argv.first().and_then(|word| word.value.rsplit('/').next()).unwrap_or_default();
    let is_shell = command.argv.first().is_some_and(|word| word.literal)
        && matches!(kind(name), Some(WrapperKind::Shell));
    if is_shell && reads_standard_input(&command.argv) {
        Inner { command: &command, index, depth: depth + 1 }.standard_input(found)?;
    }
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "the last step of a reader, which may fail elsewhere")]
fn unknown(found: &mut Findings) -> Result<(), ReadError> {
    found.features.dynamic = true;
    Ok(())
}

/// Returns true if an interpreter may get code in its words or on its standard input.
fn runs_inline(argv: &[Word]) -> bool {
    let mut arguments = argv.iter().skip(1);
    let code = ["-c", "-e", "-E", "-p", "-r", "-", "--eval", "--print", "eval", "exec"];
    match arguments.clone().next() {
        None => true,
        Some(_) => arguments.any(|word| {
            let is_cluster = word.value.starts_with('-') && !word.value.starts_with("--");
            !word.literal
                || code.contains(&word.value.as_str())
                || is_cluster && word.value.contains(['c', 'e', 'E', 'r'])
        }),
    }
}

/// Returns true if a shell has neither `-c` nor a script file.
fn reads_standard_input(argv: &[Word]) -> bool {
    matches!(options::shell(argv), options::ShellRuns::StandardInput)
}

/// A wrapper, with the context for listing its inner commands.
struct Inner<'a> {
    command: &'a SimpleCommand,
    index: u32,
    depth: usize,
}

impl Inner<'_> {
    /// Lists a command given as words.
    fn words(&self, found: &mut Findings, argv: Vec<Word>) -> Result<(), ReadError> {
        if argv.is_empty() {
            return Ok(());
        }
        if self.depth > DEPTH_MAX {
            return Err(ReadError::Size { what: "50 levels of nesting" });
        }
        argv.iter().try_for_each(|_| found.count_word())?;
        let index = found.reserve(Some(self.index), String::new())?;
        found.fill(index, SimpleCommand { argv, ..nothing() });
        resolve(found, index, self.depth)
    }

    /// Reads a nested script.
    fn script(&self, found: &mut Findings, script: &str) -> Result<(), ReadError> {
        Reader::new(script, self.depth, Some(self.index), found)?.script()
    }

    /// Reads a nested script given as words that are joined by spaces.
    fn script_of_words(&self, found: &mut Findings, words: &[Word]) -> Result<(), ReadError> {
        if words.iter().any(|word| !word.literal) {
            return unknown(found);
        }
        let words: Vec<&str> = words.iter().map(|word| word.value.as_str()).collect();
        self.script(found, &words.join(" "))
    }

    fn shell(&self, found: &mut Findings) -> Result<(), ReadError> {
        match options::shell(&self.command.argv) {
            options::ShellRuns::Words(script) => self.script(found, &script),
            options::ShellRuns::StandardInput => self.standard_input(found),
            options::ShellRuns::Unknown => unknown(found),
        }
    }

    /// Reads the script that a here-document or a here-string feeds to a shell.
    fn standard_input(&self, found: &mut Findings) -> Result<(), ReadError> {
        let feeds = |operator: &str| operator.starts_with('<');
        let fed = self.command.redirects.iter().rfind(|redirect| {
            feeds(&redirect.operator) && redirect.fd.is_none_or(|descriptor| descriptor == 0)
        });
        match fed {
            Some(redirect) if redirect.operator.starts_with("<<") && redirect.target.literal => {
                self.script(found, &redirect.target.value)
            }
            Some(_) | None => unknown(found),
        }
    }

    fn trap(&self, found: &mut Findings) -> Result<(), ReadError> {
        match self.command.argv.get(1) {
            None => Ok(()),
            Some(word) if !word.literal => unknown(found),
            Some(word) if word.value.starts_with('-') && word.value != "--" => Ok(()),
            Some(word) if word.value == "--" => {
                let script = self.command.argv.get(2..3).unwrap_or_default();
                self.script_of_words(found, script)
            }
            Some(word) => self.script(found, &word.value),
        }
    }

    /// Lists the commands of `-exec command ;` and similar actions.
    fn find(&self, found: &mut Findings) -> Result<(), ReadError> {
        const RUNNING: [&str; 4] = ["-exec", "-execdir", "-ok", "-okdir"];
        let mut words = self.command.argv.iter().skip(1);
        while let Some(word) = words.next() {
            // The expansion may produce one of these actions.
            if !word.literal && (word.value.is_empty() || word.value.starts_with('-')) {
                found.features.dynamic = true;
            }
            if !RUNNING.contains(&word.value.as_str()) {
                continue;
            }
            let argv = words.by_ref().take_while(|word| word.value != ";" && word.value != "+");
            let argv = argv.map(|word| replaced(word, "{}")).collect();
            self.words(found, argv)?;
        }
        Ok(())
    }

    fn xargs(&self, found: &mut Findings, grammar: &options::Grammar) -> Result<(), ReadError> {
        match after_options(&self.command.argv, grammar) {
            After::Command { at, .. } => {
                let mut argv: Vec<Word> = self.command.argv.iter().skip(at).cloned().collect();
                let replaces = self.command.argv.iter().take(at).any(|word| {
                    word.value.starts_with("-I")
                        || word.value.starts_with("-i")
                        || word.value.starts_with("--replace")
                });
                if replaces {
                    // Any word may contain the placeholder.
                    argv.iter_mut().for_each(|word| word.literal = false);
                } else {
                    argv.push(Word { value: String::new(), literal: false });
                }
                self.words(found, argv)
            }
            After::Nothing => Ok(()),
            After::Unknown => unknown(found),
        }
    }
}

/// Returns a word; it is not literal if it contains `placeholder`, whose replacement is unknown.
fn replaced(word: &Word, placeholder: &str) -> Word {
    Word { value: word.value.clone(), literal: word.literal && !word.value.contains(placeholder) }
}
