//! Times and paths as people write them.

use std::path::Path;
use std::time::{Duration, SystemTime};

use portcullis_bootstrap::process_env::ProcessEnv;

/// Returns the time since a moment, such as `5 min ago`. `at_ms` is in milliseconds since 1970-01-01 UTC.
pub(crate) fn ago(at_ms: u64) -> String {
    match since(at_ms) {
        past if past.as_secs() == 0 => "now".to_owned(),
        past => format!("{} ago", in_words(past)),
    }
}

/// Returns the time since a moment in words, such as `5 min`.
pub(crate) fn age(at_ms: u64) -> String {
    in_words(since(at_ms))
}

fn since(at_ms: u64) -> Duration {
    let at = SystemTime::UNIX_EPOCH + Duration::from_millis(at_ms);
    portcullis_bootstrap::process_env::now().duration_since(at).unwrap_or_default()
}

fn in_words(time: Duration) -> String {
    let seconds = time.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min"),
        (0, _, _) => format!("{hours} h"),
        (1, _, _) => "1 day".to_owned(),
        _ => format!("{days} days"),
    }
}

/// Returns a path as a word of a shell.
pub(crate) fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+@:=".contains(&byte);
    if text.bytes().all(is_plain) { text.into_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// Returns a path with `~` for the home directory.
pub(crate) fn path(around: &ProcessEnv, path: impl AsRef<Path>) -> String {
    below(&around.home, path.as_ref())
}

fn below(home: &Path, path: &Path) -> String {
    let rest = if home == Path::new("/") { None } else { path.strip_prefix(home).ok() };
    match rest {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_words() {
        let seconds = [0, 59, 60, 3599, 3600, 86_399, 86_400, 200_000];
        let words = ["0 s", "59 s", "1 min", "59 min", "1 h", "23 h", "1 day", "2 days"];
        assert_eq!(seconds.map(|seconds| in_words(Duration::from_secs(seconds))), words);
        assert!(ago(0).ends_with(" days ago"));
        assert_eq!(ago(u64::MAX / 1_000_000), "now", "a clock that was set back");
    }

    #[test]
    fn paths_begin_with_the_home_directory() {
        let short = |path: &str| below(Path::new("/home/me"), Path::new(path));
        let paths = ["/home/me", "/home/me/a b", "/home/meg/a", "/etc/x"].map(short);
        assert_eq!(paths, ["~", "~/a b", "/home/meg/a", "/etc/x"]);
        assert_eq!(below(Path::new("/"), Path::new("/etc")), "/etc");
    }
}
