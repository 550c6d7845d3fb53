//! The static analysis of a command, with the session's knowledge of paths and programs.

use std::path::{Path, PathBuf};

use portcullis_decision::Context;
use portcullis_decision::request::{ParsedScript, PathRef, SimpleCommand};
use portcullis_file_gate::{Gate, Purpose};

use crate::command_call::Program;
use crate::paths;

/// Maximum number of paths and programs that are looked up per command.
const LOOKUPS_MAX: usize = 64;

/// Commands after which relative paths are unknown.
const MOVING: [&str; 3] = ["cd", "pushd", "popd"];

/// Analyses a program; the error says why it has no analysis.
pub(crate) fn read(
    program: &Program,
    cwd: &Path,
    gate: &Gate,
    context: &Context,
) -> Result<ParsedScript, String> {
    let read = match program {
        Program::Script(script) => portcullis_shell::read(script),
        Program::Argv(argv) => {
            let words: Option<Vec<String>> =
                argv.iter().map(|word| word.to_str().map(str::to_owned)).collect();
            portcullis_shell::read_argv(&words.ok_or("a word of the command is not UTF-8")?)
        }
    };
    let mut script = read.map_err(|error| error.to_string())?;
    let mut lookup = Lookup { cwd, gate, context, left: LOOKUPS_MAX };
    // With functions, aliases or changes of PATH, names can mean something else.
    let names_hold = !script.features.redefinition;
    let mut relative_holds = true;
    for command in &mut script.commands {
        relative_holds &= !moves(command);
        if names_hold {
            command.program = command
                .argv
                .first()
                .filter(|word| word.literal && (relative_holds || !is_relative(&word.value)))
                .and_then(|word| lookup.program(&word.value));
        }
        for redirect in &mut command.redirects {
            let target = &redirect.target;
            let is_path = target.literal
                && !redirect.operator.starts_with("<<")
                && !(redirect.operator.ends_with('&') && is_descriptor(&target.value));
            if is_path && (relative_holds || target.value.starts_with('/')) {
                redirect.path = lookup.path(&target.value);
            }
        }
    }
    Ok(script)
}

/// Returns true if relative paths are unknown from this command on.
fn moves(command: &SimpleCommand) -> bool {
    let moving = |word: &str| MOVING.contains(&word);
    command.argv.first().is_some_and(|word| !word.literal || moving(&word.value))
}

fn is_relative(name: &str) -> bool {
    name.contains('/') && !name.starts_with('/')
}

/// Returns true for `2` and `-` in `>&2` and `>&-`.
fn is_descriptor(target: &str) -> bool {
    target.trim_end_matches('-').bytes().all(|byte| byte.is_ascii_digit())
}

struct Lookup<'a> {
    cwd: &'a Path,
    gate: &'a Gate,
    context: &'a Context,
    left: usize,
}

impl Lookup<'_> {
    /// Returns the file that a program name refers to, as commands see it.
    fn program(&mut self, name: &str) -> Option<String> {
        if name.contains('/') {
            return self.canonical(&self.cwd.join(name));
        }
        self.context
            .machine
            .path
            .iter()
            .find_map(|directory| self.canonical(&Path::new(directory).join(name)))
    }

    fn canonical(&mut self, path: &Path) -> Option<String> {
        self.left = self.left.checked_sub(1)?;
        let located = self.gate.locate(path, Purpose::Existing).ok()?;
        Some(located.canonical_text().to_owned())
    }

    /// Returns the path that a redirection opens, or `None` if it is unknown.
    fn path(&mut self, given: &str) -> Option<PathRef> {
        self.left = self.left.checked_sub(1)?;
        let path: PathBuf = self.cwd.join(given);
        let located = self.gate.locate(&path, Purpose::ForWriting).ok()?;
        Some(paths::located(self.context, given, &path, &located))
    }
}
