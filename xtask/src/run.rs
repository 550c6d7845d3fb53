//! Runs other programs, prints progress, and turns their failures into readable errors.

use std::ffi::OsStr;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Number of last output lines of a failed program to show.
const TAIL_LINES: usize = 25;

/// Prints one progress line.
#[expect(clippy::print_stderr, reason = "the only place where progress is written")]
pub(crate) fn say(line: impl Display) {
    eprintln!("xtask: {line}");
}

/// Prints a result for other programs to read.
#[expect(clippy::print_stdout, reason = "the only place where results are written")]
pub(crate) fn answer(text: impl Display) {
    println!("{text}");
}

/// Runs `work`, with one line before it and one line after it that shows how long it took.
pub(crate) fn step<T>(what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let start = Instant::now();
    say(format_args!("{what} ..."));
    let result = work().with_context(|| what.to_owned());
    let end = if result.is_ok() { "done" } else { "FAILED" };
    say(format_args!("{what}: {end} after {:.1} s", start.elapsed().as_secs_f32()));
    result
}

/// The pauses between tries of what the network can make fail.
const PAUSES: [Duration; 3] = if cfg!(test) {
    [Duration::ZERO; 3]
} else {
    [Duration::from_secs(2), Duration::from_secs(5), Duration::from_secs(15)]
};

/// Runs `work` again after a pause if it fails, at most three times.
///
/// # Errors
/// The error of the last try.
pub(crate) fn persistently<T>(what: &str, mut work: impl FnMut() -> Result<T>) -> Result<T> {
    for pause in PAUSES {
        match work() {
            Err(error) => say(format_args!("{what}: {error:#}; trying again in {} s", pause.as_secs())),
            done => return done,
        }
        std::thread::sleep(pause);
    }
    work()
}

/// Runs a program and shows its output as it appears.
pub(crate) fn show(command: &mut Command) -> Result<()> {
    let status =
        command.stdin(Stdio::null()).status().with_context(|| format!("starting {}", line(command)))?;
    if !status.success() {
        bail!("{} ended with {status}", line(command));
    }
    Ok(())
}

/// Runs a program silently and returns its standard output.
pub(crate) fn quiet(command: &mut Command) -> Result<String> {
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("starting {}", line(command)))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    let all = text + &String::from_utf8_lossy(&output.stderr);
    bail!("{} ended with {}\n{}", line(command), output.status, last_lines(&all));
}

/// Returns the path of `program`, searched on PATH.
pub(crate) fn find_program(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(program)).find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
}

fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    format!("`{}`", words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" "))
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let first = lines.len().saturating_sub(TAIL_LINES);
    lines.into_iter().skip(first).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_program_is_named_with_its_last_words() {
        let error =
            quiet(Command::new("sh").args(["-c", "echo the cause >&2; exit 3"])).unwrap_err().to_string();
        assert!(error.contains("`sh -c echo the cause") && error.contains("exit status: 3"), "{error}");
        assert!(error.ends_with("the cause"), "{error}");
    }

    #[test]
    fn what_fails_is_tried_again_and_not_for_ever() {
        let succeeds_at = |wanted: usize| {
            let mut tries = 0;
            let result = persistently("work", || {
                tries += 1;
                if tries == wanted { Ok(()) } else { bail!("no network") }
            });
            (result.is_ok(), tries)
        };
        assert_eq!(succeeds_at(1), (true, 1));
        assert_eq!(succeeds_at(4), (true, 4));
        assert_eq!(succeeds_at(5), (false, 4));
    }

    #[test]
    fn only_the_end_of_a_long_output_is_kept() {
        let text: String = (0..100).map(|number| format!("{number}\n")).collect();
        assert_eq!(last_lines(&text).lines().next(), Some("75"));
    }
}
