//! `portcullis completions`: a completion script for a shell.

use clap::{Command, CommandFactory as _};
use clap_complete::Shell;

use crate::args::{Arguments, Completions};
use crate::exit::Exit;
use crate::output::print_document;

const NAME: &str = "portcullis";

/// Prints the completion script for a shell.
pub(crate) fn run(wanted: &Completions) -> crate::exit::Outcome {
    print_document(&String::from_utf8(script(wanted.shell))?)?;
    Ok(Exit::Done)
}

/// Generates the script in memory: clap's generator ends the program if it cannot write.
fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut typed(), NAME, &mut script);
    script
}

/// Returns the commands that users type. Hidden ones are started by programs, but a shell would offer them too.
fn typed() -> Command {
    let whole = Arguments::command();
    let shown = whole.get_subcommands().filter(|command| !command.is_hide_set());
    Command::new(NAME)
        .version(env!("CARGO_PKG_VERSION"))
        .subcommands(shown.cloned().collect::<Vec<_>>())
        .args(whole.get_arguments().cloned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_offer_what_people_type() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = String::from_utf8(script(shell)).unwrap();
            for (word, is_offered) in [
                ("validate", true),
                ("strict", true),
                ("publisher", true),
                ("attend", false),
                ("sweep", false),
            ] {
                assert_eq!(script.contains(word), is_offered, "{shell}: {word}");
            }
        }
    }
}
