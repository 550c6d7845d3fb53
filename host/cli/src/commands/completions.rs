//! `portcullis completions`: a completion script for a shell.

use clap::{Command, CommandFactory as _};
use clap_complete::Shell;
use portcullis_command_line::args::{Arguments, Completions};
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::output::print_document;

const NAME: &str = "portcullis";

/// Prints the completion script for a shell.
pub(crate) fn run(wanted: &Completions) -> exit::Outcome {
    print_document(&String::from_utf8(script(wanted.shell))?)?;
    Ok(Exit::Done)
}

/// Generates the script in memory: clap's generator ends the program if it cannot write.
fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut typed(), NAME, &mut script);
    match shell {
        Shell::Bash => script.extend(BASH.as_bytes()),
        Shell::Fish => script.extend(FISH.as_bytes()),
        Shell::Zsh => {
            // The script ends with a call of the function, which has to be the outer one.
            let call =
                script.windows(ZSH_CALL.len()).rposition(|part| part == ZSH_CALL).unwrap_or(script.len());
            script.splice(call..call, ZSH.bytes());
        }
        Shell::Elvish | Shell::PowerShell | _ => {}
    }
    script
}

/// Offers ids and presets, which `portcullis complete` knows, before clap's commands and options.
///
/// bash takes `:` as the end of a word; the words are read from the line, and the part before the last `:` is taken out
/// of each reply. Without `compgen -W`, which would evaluate them.
const BASH: &str = r#"
_portcullis_dynamic() {
    local line="${COMP_LINE:0:COMP_POINT}" cur head word index
    local -a words
    read -ra words <<< "$line"
    [[ "$line" == *[[:space:]] ]] && words+=("")
    cur="${words[${#words[@]}-1]}"
    COMPREPLY=()
    if [[ ${#words[@]} -gt 2 && "$cur" != -* ]]; then
        while IFS= read -r word; do
            [[ "$word" == "$cur"* ]] && COMPREPLY+=("$word")
        done < <(command portcullis complete -- "${words[@]:1:${#words[@]}-2}" 2>/dev/null)
    fi
    if [[ ${#COMPREPLY[@]} -eq 0 ]]; then
        _portcullis "$@"
        return
    fi
    if [[ "$cur" == *:* && "$COMP_WORDBREAKS" == *:* ]]; then
        head="${cur%"${cur##*:}"}"
        for index in "${!COMPREPLY[@]}"; do
            COMPREPLY[index]="${COMPREPLY[index]#"$head"}"
        done
    fi
}
complete -F _portcullis_dynamic -o bashdefault -o default portcullis
"#;

/// The end of clap's script for zsh.
const ZSH_CALL: &[u8] = b"if [ \"$funcstack[1]\" = \"_portcullis\" ]; then";

const ZSH: &str = r#"functions[_portcullis_static]=$functions[_portcullis]
_portcullis() {
    local -a found
    if (( CURRENT > 2 )) && [[ $words[CURRENT] != -* ]]; then
        found=(${(f)"$(command portcullis complete -- "${(@)words[2,CURRENT-1]}" 2>/dev/null)"})
    fi
    if (( $#found )) && compadd -a found; then
        return 0
    fi
    _portcullis_static "$@"
}

"#;

const FISH: &str = r#"
function __portcullis_dynamic
    set -l words (commandline -opc)
    test (count $words) -gt 1; or return
    command portcullis complete -- $words[2..-1] 2>/dev/null
end
complete -c portcullis -n '__fish_seen_subcommand_from asks grants allow deny presets explain audit policy run pi; and test (count (__portcullis_dynamic)) -gt 0' -f -a '(__portcullis_dynamic)'
"#;

/// Returns the commands that users type. Hidden ones are started by programs, but a shell would offer them too.
pub(super) fn typed() -> Command {
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
                ("exec-client", false),
                ("sweep", false),
                ("portcullis complete --", true),
            ] {
                assert_eq!(script.contains(word), is_offered, "{shell}: {word}");
            }
        }
        let zsh = String::from_utf8(script(Shell::Zsh)).unwrap();
        let at = |text: &str| zsh.find(text).unwrap();
        assert!(at("functions[_portcullis_static]") < at("$funcstack[1]"), "the outer function is called");
    }
}
