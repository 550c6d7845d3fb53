//! Tests of the parser.
//!
//! Each command is shown on one line: words that are not literal in angle brackets, and `#n` for the index of the
//! parent.

use portcullis_decision::request::ScriptFeatures;

use super::*;

fn shown(script: &ParsedScript) -> Vec<String> {
    let word = |word: &Word| if word.literal { word.value.clone() } else { format!("<{}>", word.value) };
    let line = |command: &SimpleCommand| {
        let mut parts = Vec::new();
        parts.extend((!command.joined_by.is_empty()).then(|| command.joined_by.clone()));
        parts.extend(command.parent.map(|parent| format!("#{parent}")));
        parts.extend(command.assignments.iter().map(|(name, value)| format!("{name}={}", word(value))));
        parts.extend(command.argv.iter().map(word));
        parts.extend(command.redirects.iter().map(|redirect| {
            let fd = redirect.fd.map(|fd| fd.to_string()).unwrap_or_default();
            format!("{fd}{}{}", redirect.operator, word(&redirect.target))
        }));
        parts.join(" ")
    };
    script.commands.iter().map(line).collect()
}

fn features(features: ScriptFeatures) -> String {
    let all = [
        (features.substitution, "substitution"),
        (features.dynamic, "dynamic"),
        (features.background, "background"),
        (features.redefinition, "redefinition"),
        (features.heredoc, "heredoc"),
        (features.loops, "loops"),
    ];
    all.into_iter().filter(|(is_there, _)| *is_there).map(|(_, name)| name).collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn check(script: &str, commands: &[&str], expected: &str) {
    let read = read(script).unwrap_or_else(|error| panic!("{script}: {error}"));
    assert_eq!(shown(&read), commands, "{script}");
    assert_eq!(features(read.features), expected, "{script}");
}

#[test]
fn plain_scripts() {
    check("", &[], "");
    check("  # nothing\n", &[], "");
    check("ls -l src", &["ls -l src"], "");
    check("a; b && c || d | e |& f", &["a", "; b", "&& c", "|| d", "| e", "| f"], "");
    check("a & b", &["a", "& b"], "background");
    check("a\n\nb # c\nd", &["a", "; b", "; d"], "");
    check("X=1 Y+=2 a Z=3", &["X=1 Y=2 a Z=3"], "");
    check("a >b 2>>c <d &>e 3<>f >|g 2>&1 {x}>h", &["a >b 2>>c <d &>e 3<>f >|g 2>&1 >h"], "");
    check(">only", &[">only"], "");
    check("! time -p a", &["a"], "");
    check("echo a#b \\# '#'", &["echo a#b # #"], "");
}

#[test]
fn spellings_of_one_command_are_one_command() {
    for script in [
        "git push --force",
        "'git' \"push\" --force",
        "g\\it pu''sh --fo\"rc\"e",
        "git\\\n push \\\n  --force",
        "git push --fo\\\nrce",
        "$'git' $'\\x70ush' $'--\\146orce'",
        "$'\\u0067it' push --force",
        "git\tpush\t--force;",
        "{ git push --force; }",
        "(git push --force)",
        "if git push --force; then :; fi",
        "! git push --force",
        "time git push --force",
        "true&&git push --force",
        "case x in (y) git push --force;; esac",
        "for i in 1 2; do git push --force; done",
        "while git push --force; do :; done",
        "until false; do git push --force\ndone",
        "for ((i=0; i<3; i++)); do git push --force; done",
        "select x in a; do git push --force; done",
        "f() { git push --force; }; f",
        "function f { git push --force; }; f",
        "coproc git push --force",
        "coproc X { git push --force; }",
        "git push --force </dev/null",
        "</dev/null git push --force",
        "echo $(git push --force)",
        "echo \"$(git push --force)\"",
        "echo `git push --force`",
        "echo \"`git push --force`\"",
        "echo ${x:-$(git push --force)}",
        "echo \"${x:-`git push --force`}\"",
        "echo $((1 + $(git push --force)))",
        "echo $[ $(git push --force) ]",
        "(( x = $(git push --force) ))",
        "((git push --force) ; true)",
        "echo $((git push --force) ; true)",
        "x=$(git push --force)",
        "x[1]=$(git push --force)",
        "x=(a $(git push --force) b)",
        "declare -a x=(a $(git push --force) b)",
        "[[ -n $(git push --force) ]]",
        "cat <(git push --force)",
        "true >$(git push --force)",
        "{ true; } >$(git push --force)",
        "case $(git push --force) in a) ;; esac",
        "for i in $(git push --force); do :; done",
        "cat <<E\n$(git push --force)\nE",
        "cat <<-E\n\t`git push --force`\n\tE",
        "cat <<<$(git push --force)",
        "bash -c 'git push --force'",
        "/bin/sh -ec \"git push --force\"",
        "bash -o pipefail -c 'git push --force' name",
        "bash <<< 'git push --force'",
        "bash <<'E'\ngit push --force\nE",
        "bash <<E\ngit push --force\nE",
        "eval git push --force",
        "eval 'git push' --force",
        "eval \"eval 'git push --force'\"",
        "trap 'git push --force' EXIT",
        "env git push --force",
        "env -i -u X -- A=1 git push --force",
        "sudo -n -u root git push --force",
        "sudo env X=1 nice -n 5 git push --force",
        "command git push --force",
        "command -p git push --force",
        "builtin command git push --force",
        "exec git push --force",
        "exec -a ls git push --force",
        "nohup git push --force",
        "setsid -w git push --force",
        "timeout -k 5 10 git push --force",
        "stdbuf -oL git push --force",
        "busybox env git push --force",
        "/lib64/ld-linux-x86-64.so.2 git push --force",
        "find . -exec git push --force \\;",
        "find . -name x -exec git push --force {} +",
        "echo x | xargs git push --force",
        "echo x | xargs -0 -n 1 -- git push --force",
        "flock /tmp/l git push --force",
    ] {
        let read = read(script).unwrap_or_else(|error| panic!("{script}: {error}"));
        let found = read.commands.iter().any(|command| {
            let words: Vec<_> = command.argv.iter().map(|word| (word.value.as_str(), word.literal)).collect();
            words.starts_with(&[("git", true), ("push", true), ("--force", true)])
        });
        assert!(found, "{script}: {:?}", shown(&read));
    }
}

#[test]
fn what_expands_is_not_literal() {
    for word in [
        "$x", "\"$x\"", "a$x", "${x}", "$1", "$@", "$$", "$(a)", "`a`", "$((1))", "*", "a?", "[ab]", "{a,b}",
        "{1..3}", "~", "~/x", "x=~/y", "a:~", "<(a)", "$\"a\"", "$'\\377'", "$'\\0'", "$'\\cA'", "\"a`b`\"",
    ] {
        let read = read(&format!("echo {word}")).unwrap_or_else(|error| panic!("{word}: {error}"));
        assert!(!read.commands[0].argv[1].literal, "{word}");
    }
    for word in [
        "a", "'$x'", "\\$x", "\"a*\"", "\\*", "'{a,b}'", "a~", "[", "]", "{}", "a=b", "$'a\\nb'", "%",
        "\"\\$x\"",
    ] {
        let read = read(&format!("echo {word}")).unwrap_or_else(|error| panic!("{word}: {error}"));
        assert!(read.commands[0].argv[1].literal, "{word}");
    }
}

#[test]
fn what_cannot_be_told_is_dynamic() {
    for script in [
        "$cmd",
        "$(echo git) push",
        "g* push",
        "{git,push}",
        "bash -c \"$x\"",
        "bash script.sh",
        "bash",
        "echo x | sh",
        "cat x | bash -s",
        "bash < file",
        "sudo bash <<E\nx\nE",
        "eval $x",
        "source ./x",
        ". x",
        "python3 -c 'import os'",
        "perl -e x",
        "node --eval x",
        "python",
        "ruby -",
        "awk 'BEGIN{system(\"x\")}'",
        "env -S 'git push'",
        "sudo -i",
        "sudo -s",
        "sudo --unknown git",
        "env $x git",
        "xargs --unknown git",
        "BASH_ENV=x bash -c :",
        "env LD_PRELOAD=x git",
        "export BASH_ENV=x",
        "zsh -c x",
        "ssh_x=1 su -c x",
        "trap \"$x\" EXIT",
        "find . $x",
        "parallel git",
        "tmux new x",
        "nice -x git",
        "b='x[$(git)]'; ((b))",
        "[[ -v 'x[$(git)]' ]]",
        "b=$(cat file); [[ $b -gt 3 ]]",
        "echo $(( $(cat file) ))",
        "echo ${b@P}",
        "echo ${!b}",
        "for BASH_ENV in x; do bash script; done",
        "read ENV",
    ] {
        let read = read(script).unwrap_or_else(|error| panic!("{script}: {error}"));
        assert!(read.features.dynamic, "{script}: {:?}", shown(&read));
    }
    for script in [
        "git push",
        "python3 setup.py",
        "awk '{print $1}' x",
        "env",
        "sudo -l",
        "command -v git",
        "find . -name x",
        "i=0; while ((i < 3)); do ((i++)); done",
        "for ((i=0; i<3; i++)); do echo ${a[i]} ${a[1]} ${a[@]}; done",
        "for f in a b; do echo \"$f\" ${f%.c} ${f:-x} ${#f} ${f^^}; done",
        "[[ -f x && $y == z* ]] && [ \"$a\" = b ]",
        "while read -r line; do printf '%s\\n' \"$line\"; done",
        "declare -a a; local b=$c; export D=\"$e\"; unset f",
        "set -euo pipefail; test -n \"$x\"",
        "x=$(a); echo ${x:0:3} ${!x@} $((1 + 2))",
    ] {
        assert!(!read(script).unwrap().features.dynamic, "{script}");
    }
}

#[test]
fn what_changes_the_meaning_of_names_is_noted() {
    for script in [
        "alias ls=rm; ls",
        "f() { rm; }",
        "function ls { rm; }",
        "PATH=. git",
        "export PATH=.",
        "enable -f x y",
        "hash -p /x git",
        "for PATH in ./evil; do git; done",
        "read PATH < file",
        "BASH_CMDS[git]=/x",
        "printf -v PATH x",
    ] {
        assert!(read(script).unwrap().features.redefinition, "{script}");
    }
}

#[test]
fn a_plain_script_is_a_list_of_simple_commands() {
    for (script, plain) in [
        ("a && ! b | c; X=1 d >e &", true),
        ("sudo bash -c 'a; b'", true),
        ("echo $(a)", true),
        ("[[ a ]]; b", false),
        ("((1)); b", false),
        ("(a)", false),
        ("{ a; }", false),
        ("if a; then b; fi", false),
        ("case a in b) c;; esac", false),
        ("bash -c 'for x in y; do a; done'", false),
        ("f() { a; }", false),
    ] {
        assert_eq!(read(script).unwrap().plain, plain, "{script}");
    }
}

#[test]
fn wrappers_hold_what_they_run() {
    check(
        "sudo -u x env A=1 git push",
        &["sudo -u x env A=1 git push", "#0 env A=1 git push", "#1 git push"],
        "",
    );
    check("echo $(a; b) c", &["echo <> c", "#0 a", "; #0 b"], "substitution");
    check("xargs rm -f", &["xargs rm -f", "#0 rm -f <>"], "");
    check("xargs -I X mv X Y", &["xargs -I X mv X Y", "#0 <mv> <X> <Y>"], "dynamic");
    check("find . -exec rm {} + -ok a \\;", &["find . -exec rm {} + -ok a ;", "#0 rm <{}>", "#0 a"], "");
    check("bash -c 'a && b' x", &["bash -c a && b x", "#0 a", "&& #0 b"], "");
    check("cat <<E | bash\nx\nE", &["cat <<x\n", "| bash"], "dynamic heredoc");
    let direct = read_argv(&["env".into(), "A=1".into(), "x y".into()]).unwrap();
    assert_eq!(shown(&direct), ["env A=1 x y", "#0 x y"]);
}

#[test]
fn what_shells_differ_on_is_refused() {
    for script in [
        "'",
        "\"",
        "$(",
        "`",
        "${",
        "((",
        "$((",
        "[[",
        "(",
        "{",
        "if",
        "if a; then",
        "for",
        "case x in",
        "a)",
        "}",
        "fi",
        "a ;; b",
        "| a",
        "&& a",
        "a &&",
        ";",
        "& a",
        "a <",
        "cat <<E",
        "cat <<E\nx",
        "cat <<$x\nx\n",
        "$(cat <<E)",
        "a[ # ]=1; evil",
        "a['x']=1",
        "\"${x:-'}'}\"",
        "$(( ' ))",
        "${ evil; }",
        "${| evil; }",
        "echo @(a|b)",
        "f( a )",
        "function f",
        "function f x",
        "coproc",
        "[[ a; evil",
        "2>(a)",
        "a \0b",
        "echo (a)",
    ] {
        assert!(read(script).is_err(), "{script}: {:?}", read(script).map(|read| shown(&read)));
    }
}

/// Uses a stack of 512 KiB, half the size of a host thread's stack.
#[test]
fn reading_is_bounded() {
    let small = std::thread::Builder::new().stack_size(512 << 10).spawn(read_large_scripts);
    small.unwrap().join().unwrap();
}

fn read_large_scripts() {
    for script in [
        "{ ".repeat(100_000),
        "(".repeat(100_000),
        "$(".repeat(40_000),
        "\"$(".repeat(20_000),
        "${x:-".repeat(20_000),
        "$((".repeat(20_000),
        "if ".repeat(20_000),
        "! ".repeat(60_000),
        "f() ".repeat(20_000),
        "coproc ".repeat(10_000),
        "a;".repeat(60_000),
        "a ".repeat(60_000),
        "eval ".repeat(20_000),
        "env ".repeat(20_000),
        "x".repeat(SCRIPT_MAX + 1),
        format!("`x{}", "\\`".repeat(50_000)),
    ] {
        let started = std::time::Instant::now();
        assert!(read(&script).is_err(), "{}", script.get(..20).unwrap());
        assert!(started.elapsed().as_secs() < 5, "{}", script.get(..20).unwrap());
    }
    let mut nested = "git push".to_owned();
    for _ in 0..30 {
        nested = format!("bash -c '{}'", nested.replace('\'', "'\\''"));
        if nested.len() > SCRIPT_MAX {
            break;
        }
    }
    assert!(read(&nested).is_err());
}
