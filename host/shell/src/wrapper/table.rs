//! The known wrappers, and how to parse their words.

use super::options::Grammar;

/// The way a wrapper treats its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WrapperKind {
    /// Runs the command after its options.
    Prefix(Grammar),
    /// Runs the command after its options, and may leave it running in the background.
    Background(Grammar),
    /// A shell.
    Shell,
    /// Runs its words as a script.
    Script,
    /// Runs its first word as a script later.
    Trap,
    /// `find`.
    Find,
    /// Runs the command after its options with additional words.
    Xargs(Grammar),
    /// Runs code in another language, if given any.
    Interpreter,
    /// `awk`, whose code is in its words and seldom runs commands.
    Awk,
    /// Changes the meaning of names.
    Redefining,
    /// Sets variables.
    Declaring,
    /// A builtin that evaluates some of its words.
    Evaluating,
    /// Runs something that cannot be determined.
    Opaque,
}

const PLAIN: Grammar = Grammar {
    flags: "",
    values: "",
    attached: "",
    long_flags: &[],
    long_values: &[],
    operands: 0,
    assigns: false,
    asking: "",
};

/// Returns how to parse the words of a program. `name` is its name without directories.
///
/// Returns `None` if it runs no program or code given in its words.
pub(crate) fn kind(name: &str) -> Option<WrapperKind> {
    let prefix = |grammar| Some(WrapperKind::Prefix(grammar));
    match name {
        "sudo" => prefix(Grammar {
            flags: "AbEHknPS",
            values: "CDghpRrTtUu",
            asking: "eKlVv",
            long_flags: &["--non-interactive", "--preserve-env", "--set-home", "--stdin"],
            long_values: &["--user", "--group", "--chdir", "--prompt", "--host", "--chroot"],
            assigns: true,
            ..PLAIN
        }),
        "doas" => prefix(Grammar { flags: "nsL", values: "uC", ..PLAIN }),
        "env" => prefix(Grammar {
            flags: "-iv0",
            values: "uC",
            long_flags: &["--ignore-environment", "--debug", "--null"],
            long_values: &["--unset", "--chdir"],
            assigns: true,
            ..PLAIN
        }),
        "nice" => {
            prefix(Grammar { flags: "0123456789", values: "n", long_values: &["--adjustment"], ..PLAIN })
        }
        "ionice" => prefix(Grammar {
            flags: "t",
            values: "cnpPu",
            long_flags: &["--ignore"],
            long_values: &["--class", "--classdata"],
            ..PLAIN
        }),
        "nohup" => Some(WrapperKind::Background(PLAIN)),
        "setsid" => Some(WrapperKind::Background(Grammar {
            flags: "cfw",
            long_flags: &["--ctty", "--fork", "--wait"],
            ..PLAIN
        })),
        "disown" => Some(WrapperKind::Background(Grammar { asking: "ahr0123456789%", ..PLAIN })),
        "timeout" => prefix(Grammar {
            flags: "v",
            values: "ks",
            long_flags: &["--foreground", "--preserve-status", "--verbose"],
            long_values: &["--kill-after", "--signal"],
            operands: 1,
            ..PLAIN
        }),
        "stdbuf" => {
            prefix(Grammar { values: "ioe", long_values: &["--input", "--output", "--error"], ..PLAIN })
        }
        "time" => prefix(Grammar { flags: "apvq", values: "fo", ..PLAIN }),
        "command" => prefix(Grammar { flags: "p", asking: "vV", ..PLAIN }),
        "builtin" | "fakeroot" | "torsocks" | "unbuffer" | "catchsegv" | "caffeinate" => prefix(PLAIN),
        "exec" => prefix(Grammar { flags: "cl", values: "a", ..PLAIN }),
        "busybox" | "toybox" => prefix(PLAIN),
        "chroot" => prefix(Grammar {
            operands: 1,
            long_flags: &["--skip-chdir"],
            long_values: &["--userspec", "--groups"],
            ..PLAIN
        }),
        "flock" => prefix(Grammar {
            flags: "sxuneoFv",
            values: "wE",
            long_flags: &["--shared", "--exclusive", "--nonblock", "--close", "--no-fork", "--verbose"],
            long_values: &["--timeout", "--wait", "--conflict-exit-code"],
            operands: 1,
            ..PLAIN
        }),
        "strace" | "ltrace" => {
            prefix(Grammar { flags: "cCdfFhiknqrtTvVxyzZw", values: "aeEIoOpPsSuUX", ..PLAIN })
        }
        "xargs" => Some(WrapperKind::Xargs(Grammar {
            flags: "0rtpxo",
            values: "adEILnPs",
            attached: "iel",
            long_flags: &[
                "--null",
                "--no-run-if-empty",
                "--verbose",
                "--interactive",
                "--exit",
                "--open-tty",
            ],
            long_values: &[
                "--arg-file",
                "--delimiter",
                "--max-args",
                "--max-procs",
                "--max-chars",
                "--replace",
            ],
            ..PLAIN
        })),
        "bash" | "sh" | "dash" | "ash" | "ksh" | "rbash" | "mksh" => Some(WrapperKind::Shell),
        "eval" => Some(WrapperKind::Script),
        "trap" => Some(WrapperKind::Trap),
        "find" => Some(WrapperKind::Find),
        "awk" | "gawk" | "mawk" | "nawk" => Some(WrapperKind::Awk),
        "alias" | "unalias" | "enable" | "hash" | "shopt" => Some(WrapperKind::Redefining),
        "export" | "declare" | "typeset" | "readonly" | "local" => Some(WrapperKind::Declaring),
        "let" | "compgen" | "complete" | "bind" | "fc" | "mapfile" | "readarray" | "read" | "unset"
        | "getopts" | "printf" | "wait" | "test" | "[" => Some(WrapperKind::Evaluating),
        "source" | "." | "zsh" | "fish" | "csh" | "tcsh" | "pwsh" | "su" | "runuser" | "script" | "watch"
        | "parallel" | "unshare" | "nsenter" | "bwrap" | "firejail" | "systemd-run" | "at" | "batch"
        | "crontab" | "expect" | "gdb" | "perf" | "start-stop-daemon" | "daemonize" | "tmux" | "screen"
        | "pkexec" | "entr" => Some(WrapperKind::Opaque),
        _ if is_loader(name) => prefix(Grammar {
            long_values: &["--library-path", "--preload", "--argv0", "--audit", "--inhibit-rpath"],
            long_flags: &["--inhibit-cache"],
            ..PLAIN
        }),
        _ if is_interpreter(name) => Some(WrapperKind::Interpreter),
        _ => None,
    }
}

/// Returns true for the dynamic loader, which runs the program given to it.
fn is_loader(name: &str) -> bool {
    name.starts_with("ld-linux")
        || name.starts_with("ld-musl")
        || name == "ld.so"
        || name.starts_with("ld-2.")
}

fn is_interpreter(name: &str) -> bool {
    const LANGUAGES: [&str; 15] = [
        "python", "pypy", "perl", "ruby", "node", "nodejs", "deno", "bun", "php", "lua", "luajit", "tclsh",
        "Rscript", "jshell", "ts-node",
    ];
    LANGUAGES
        .contains(&name.trim_end_matches(|character: char| character.is_ascii_digit() || character == '.'))
}
