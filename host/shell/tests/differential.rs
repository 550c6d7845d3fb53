//! Checks the parser against bash: it must have read every command that bash looks up.
//!
//! Random scripts are run by a real bash in which command lookup fails, and which notes each command that it looked up.
//! `PROPTEST_CASES` sets the number of scripts; the default is 1,000.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up must fail")]

use std::fs;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use proptest::prelude::*;

/// Writes each command that is not found to a file of its own, with a NUL after every word.
///
/// A shared file would mix them up: bash writes up to the last newline first and the rest later, and the commands of
/// pipelines and process substitutions run at the same time.
const PRELUDE: &str =
    "command_not_found_handle() { printf '%s\\0' \"$@\" >\"$NOTES/$BASHPID.$RANDOM.$RANDOM\"; }\n";

/// How long to wait for processes that outlive the script.
const STRAGGLERS: Duration = Duration::from_secs(10);

/// The pieces that scripts are made of: complete and broken ones, with every kind of quoting.
const PIECES: &[&str] = &[
    "p",
    "q",
    "r",
    "'a b'",
    "\"c d\"",
    "\\e",
    "f\\ g",
    "$'h\\x69'",
    "$'\\'j'",
    "k\"l\"'m'",
    "\"n\\\"o\"",
    "'#'",
    "#",
    "\\#",
    " ",
    " ",
    " ",
    " ",
    " ",
    "\t",
    "\n",
    "\n",
    "\\\n",
    ";",
    ";",
    "&&",
    "||",
    "|",
    "|&",
    "& wait;",
    "(",
    ")",
    "{ ",
    "; }",
    "! ",
    "if p; then ",
    "; then ",
    "; else ",
    "; fi",
    "while p; do ",
    "; done",
    "for i in s t; do ",
    "case u in u) ",
    ";; esac",
    "X=1 ",
    "Y=(a b) ",
    "Z[0]=w ",
    ">/dev/null ",
    "2>&1 ",
    "</dev/null ",
    "<<<v ",
    "<<E\n",
    "E\n",
    "\nE\n",
    "<<'E'\n",
    "$(p x)",
    "\"$(q y)\"",
    "`r z`",
    "\"`p w`\"",
    "$((1+2))",
    "((1))",
    "${X:-$(p d)}",
    "$X",
    "<(q s)",
    ">(r t)",
    "[[ a == b ]]",
    "eval ",
    "bash -c 'p i'",
    "time ",
    "f() { p f; }; ",
    "=",
    "coproc ",
    "command ",
    "exec ",
    "env q",
    "[",
    "]",
];

/// Creates a directory for one run.
fn fresh_directory() -> PathBuf {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let number = RUNS.fetch_add(1, Ordering::Relaxed);
    let directory =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("notes-{}-{number}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    directory
}

/// Returns the commands that bash looked up, in no particular order.
fn run_by_bash(script: &str) -> Vec<Vec<String>> {
    let directory = fresh_directory();
    let (prelude, notes) = (directory.join("prelude"), directory.join("notes"));
    fs::write(&prelude, PRELUDE).unwrap();
    fs::create_dir(&notes).unwrap();
    let mut child = Command::new("timeout")
        .args(["-k", "1", "2", "/bin/bash", "-c", script])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("BASH_ENV", &prelude)
        .env("NOTES", &notes)
        .env("LC_ALL", "C.UTF-8")
        .current_dir(env!("CARGO_TARGET_TMPDIR"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = child.stderr.take().unwrap();
    child.wait().unwrap();
    // Bash does not wait for process substitutions; their end of the pipe closes when they are done.
    let (done, waited) = mpsc::channel();
    std::thread::spawn(move || done.send(stderr.read_to_end(&mut Vec::new())));
    waited.recv_timeout(STRAGGLERS).ok();
    let commands = noted_commands(&notes);
    fs::remove_dir_all(&directory).ok();
    commands
}

fn noted_commands(notes: &std::path::Path) -> Vec<Vec<String>> {
    let files = fs::read_dir(notes).unwrap().map(|entry| fs::read(entry.unwrap().path()).unwrap());
    let texts = files.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    // A note without its last NUL is still being written.
    let words = |text: String| Some(text.strip_suffix('\0')?.split('\0').map(str::to_owned).collect());
    texts.filter_map(words).collect()
}

/// Returns true if a command that ran is among those that were read.
fn was_read(script: &portcullis_decision::request::ParsedScript, ran: &[String]) -> bool {
    script.commands.iter().any(|command| {
        let known = command.argv.iter().all(|word| word.literal);
        let mut words = command.argv.iter();
        // An expansion may produce any number of words; the words before it must match.
        let fits = ran.iter().all(|ran| match words.next() {
            Some(word) if word.literal => word.value == *ran,
            Some(_) => {
                words = [].iter();
                true
            }
            None => !known,
        });
        fits && (!known || command.argv.len() == ran.len())
    })
}

fn check(script: &str) -> Result<(), String> {
    let Ok(read) = portcullis_shell::read(script) else { return Ok(()) };
    if read.features.dynamic {
        // A dynamic script does not claim to list every command.
        return Ok(());
    }
    for ran in run_by_bash(script) {
        if !was_read(&read, &ran) {
            return Err(format!("bash ran {ran:?} of {script:?}, which was read as {:?}", read.commands));
        }
    }
    Ok(())
}

#[test]
fn the_test_sees_what_bash_runs() {
    let ran = |script| {
        let mut commands = run_by_bash(script);
        commands.sort();
        commands
    };
    assert_eq!(ran("p 'a b'; if q; then :; else r; fi"), [vec!["p", "a b"], vec!["q"]]);
    let read = portcullis_shell::read("p a").unwrap();
    assert!(!was_read(&read, &["q".to_owned()]) && !was_read(&read, &["p".to_owned()]));
}

/// Checks that concurrent commands have separate notes.
///
/// In a shared file, this script sometimes seemed to run `["", ""]`: the last bytes of two notes, written one after the
/// other.
#[test]
fn commands_that_run_at_the_same_time_are_noted_apart() {
    let script = "q2>&1  \"c d\"\\e<(q s)<(q s)\\#X=1 ";
    for _ in 0..100 {
        let mut ran = run_by_bash(script);
        ran.sort();
        assert_eq!(ran.len(), 3, "{ran:?}");
        assert_eq!(ran[..2], [["q", "s"], ["q", "s"]], "{ran:?}");
        let [name, word] = &*ran[2] else { panic!("{ran:?}") };
        assert!(name == "q2" && word.starts_with("c de/dev/fd/") && word.ends_with("#X=1"), "{ran:?}");
        check(script).unwrap();
    }
    let read = portcullis_shell::read(script).unwrap();
    let words: Vec<_> =
        read.commands.iter().map(|command| command.argv.iter().map(|word| word.literal)).collect();
    let words: Vec<Vec<bool>> = words.into_iter().map(Iterator::collect).collect();
    assert_eq!(words, [vec![true, false], vec![true, true], vec![true, true]]);
}

/// Scripts that other shell parsers misread.
#[test]
fn odd_scripts() {
    for script in [
        "p $'a\\'b' c # d\nq",
        "p a\\\n#b",
        "p \\\n# c\nq",
        "p \"a\\\nb\"",
        "p 'a\\\nb'",
        "p $(q # )\n) r",
        "p $(case a in a) q;; esac)",
        "p `q \\`r x\\` y`",
        "p \"`q \\\"a b\\\"`\"",
        "p <<E; q\n$(r)\nE\n",
        "p <<'E'\n$(r)\nE\nq",
        "p <<\"E F\"\nx\nE F\nq",
        "p <<-E\n\tx\n\tE\nq",
        "p <<A <<B\na\nA\nb\nB\nq",
        "p <<E\\\nF\nx\nEF\nq",
        "p <<E\nx\\\nE\nE\nq",
        "p <<E\nx\\\\\nE\nq",
        "p <<\\E\n$(r)\nE\n",
        "(p <<E\nx\nE\n) && q",
        "p $(q <<E\nx\nE\n)",
        "((p) ; q)",
        "p $((q) ; r)",
        "{ p;}",
        "{p;}",
        "p }",
        "p {",
        "p if then",
        "if p\nthen\nq\nelse\nr\nfi",
        "p=(1 #x\n2); q",
        "X=1 Y=2",
        "X= p",
        "p=1 q=2 r x=1",
        "p a[0]=1",
        "p a=(1",
        "p[0]=x q",
        "2p",
        "2 >/dev/null p",
        "p 2 >/dev/null",
        "p 2>/dev/null x",
        "p a2>/dev/null",
        "{v}>/dev/null p",
        "p {v}>/dev/null x",
        "p &>/dev/null q",
        "p& q",
        "p&q",
        "p;q",
        "p|q",
        "p||q",
        "p&&q",
        "p ;\n q",
        "p #\\\nq",
        "! p",
        "!p",
        "time p",
        "time -p p",
        "time -- p",
        "time ! p",
        "! ! p",
        "for i in a; do p $i; done",
        "for i do p; done",
        "for i; do p; done",
        "for i in a b\ndo p; done",
        "for ((i=0;i<1;i++)) { p; }",
        "for i in a; { p; }",
        "case a in (a) p;; esac",
        "case a in b|a) p;& c) q;; esac",
        "case a in a) p; esac",
        "case in in in) p;; esac",
        "select i in a; do p; break; done <<<1",
        "until p; do q; break; done",
        "f() (p); f",
        "f()\n{ p; }\nf",
        "function f { p; }; f",
        "function f() { p; }; f",
        "f() if true; then p; fi; f",
        "[[ a = a && ( b < c ) ]] && p",
        "[[ a =~ (a|b) ]] && p",
        "[[ $(q) ]] ; p",
        "p ${x:-\"a b\"} c",
        "p ${x:-'}'} c",
        "p ${x#\\}} c",
        "p ${#x}",
        "p \"${x:-\"y\"}\" z",
        "p $'\\x41\\102\\n' \"$\" $ \"a$\"",
        "p a$",
        "p $\"x\"",
        "eval 'p a' b",
        "eval p \\; q",
        "bash -c 'p \"$@\"' x y",
        "bash <<< 'p a'",
        "bash <<E\np a\nE\n",
        "trap 'p' EXIT; q",
        "command p a",
        "exec p a",
        "builtin eval p",
        "env p a",
        "echo a | xargs p",
        "find /dev/null -exec p {} \\;",
        "timeout 1 p",
        "nice p",
        "p\\ q",
        "'p q' r",
        "p \"\" ''",
        "p a\tb",
        "p\n\n\nq",
        "p;;q",
        "p\r\nq",
        "p \u{a0}q",
        "p\u{2003}q",
        "p a\u{b}b",
        "p <\\\n/dev/null q",
        "p &\\\n& q",
        "p |\\\n| q",
        "$'p' $'q'",
        "coproc p",
        "coproc N { p; }; wait",
        "p > /dev/null >&2 q",
        "p >&/dev/null q",
        "p <&0 q",
        "p <>/dev/null q",
        "p 3<&- q",
        "p ~nobody x",
        "p {a,b} c",
        "{p,a}",
        "p [a]",
        "p *",
        "if ! p; then q; fi",
        "p && { q || r; }",
        "p $(q)$(r) s",
        "p \\`q",
        "p '`q`'",
        "p \"\\`q\"",
        "p \"\\$(q)\"",
        "p \\$(q)",
        "p $\\(q",
        "a=$(p) b=`q` r",
        "p 1>/dev/null 2>&1 q&",
        "#p\nq",
        "p#q",
        "b='x[$(p)]'; ((b))",
        "b='x[$(p)]'; : $((b))",
        "b='x[$(p)]'; : $[b]",
        "b='x[$(p)]'; a[b]=1",
        "b='x[$(p)]'; a=([b]=1)",
        "b='x[$(p)]'; let b",
        "let 'x[$(p)]'",
        "b='x[$(p)]'; for ((;b;)); do :; done",
        "for b in 'x[$(p)]'; do ((b)); done",
        "b='x[$(p)]'; [[ b -eq 0 ]]",
        "b='x[$(p)]'; [[ $b -gt 0 ]]",
        "[[ -v 'x[$(p)]' ]]",
        "[[ -R 'x[$(p)]' ]]",
        "test -v 'x[$(p)]'",
        "[ -v 'x[$(p)]' ]",
        "x=(); unset 'x[$(p)]'",
        "printf -v 'x[$(p)]' y",
        "printf '-vx[$(p)]' y",
        "read 'x[$(p)]' <<< y",
        "read b <<< 'x[$(p)]'; ((b))",
        "printf -v b %s 'x[$(p)]'; ((b))",
        "mapfile b <<< 'x[$(p)]'; ((b))",
        "declare 'x[$(p)]=1'",
        "declare -i n='x[$(p)]'",
        "typeset -i n; n='x[$(p)]'",
        "declare -n r='x[$(p)]'; r=1",
        "declare b='x[$(p)]'; ((b))",
        "export b='x[$(p)]'; ((b))",
        "f() { local b='x[$(p)]'; ((b)); }; f",
        "mapfile -c1 -C 'p;:' l <<< y",
        "readarray -c1 -C 'p;:' l <<< y",
        "compgen -C 'p' x",
        "compgen -W '$(p)' x",
        "PS4='$(p)'; set -x; :",
        "b='x[$(p)]'; : ${!b}",
        "b='$(p)'; : ${b@P}",
        "b='x[$(p)]'; : ${HOME:b}",
        "b='x[$(p)]'; : ${HOME:0:b}",
        "b='x[$(p)]'; : ${x[b]}",
        "b='x[$(p)]'; : ${#x[b]}",
        ": ${b='x[$(p)]'}; ((b))",
        ": ${b:='x[$(p)]'}; ((b))",
        "sleep 0 & wait -n -p 'x[$(p)]'",
        "set -- 'x[$(p)]'; (($1))",
        "set -- 'x[$(p)]'; : ${HOME:$1}",
        ": $(( $(echo 'x[$(p)]') ))",
        "$'\\x{70}'",
        "BASH_CMDS[p]=/bin/q; p",
        "X=1 env Y=2 p",
        "i=0; while ((i < 3)); do ((i++)); p $i; done",
    ] {
        check(script).unwrap();
    }
}

/// Raises the default number of cases of proptest, unless `PROPTEST_CASES` is set.
fn config() -> ProptestConfig {
    let default = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    if std::env::var_os("PROPTEST_CASES").is_some() {
        default
    } else {
        ProptestConfig { cases: 1000, ..default }
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn whatever_bash_runs_was_read(pieces in proptest::collection::vec(proptest::sample::select(PIECES), 1..14)) {
        prop_assert_eq!(check(&pieces.concat()), Ok(()));
    }
}
