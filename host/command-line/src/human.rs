//! Times, paths and values of settings as people write them.

use std::path::Path;
use std::time::{Duration, SystemTime};

use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_settings::item_in_words;
use portcullis_text::tilde;
use serde_json::Value;

/// Returns the time since a moment, such as `5 min ago`. `at_ms` is in milliseconds since 1970-01-01 UTC.
#[must_use]
pub fn ago(at_ms: u64) -> String {
    match since(at_ms) {
        past if past.as_secs() == 0 => "now".to_owned(),
        past => format!("{} ago", duration(past)),
    }
}

/// Returns the time since a moment in words, such as `5 min`.
#[must_use]
pub fn age(at_ms: u64) -> String {
    duration(since(at_ms))
}

fn since(at_ms: u64) -> Duration {
    let at = SystemTime::UNIX_EPOCH + Duration::from_millis(at_ms);
    portcullis_bootstrap::process_env::now().duration_since(at).unwrap_or_default()
}

/// Returns a duration in words, such as `5 min`.
#[must_use]
pub fn duration(time: Duration) -> String {
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
#[must_use]
pub fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+@:=".contains(&byte);
    if text.bytes().all(is_plain) { text.into_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// Returns a path with `~` for the home directory.
#[must_use]
pub fn path(around: &ProcessEnv, path: impl AsRef<Path>) -> String {
    tilde(&path.as_ref().to_string_lossy(), &around.home.to_string_lossy())
}

/// Returns the value of a setting: a path with `~`, a policy by its name, other objects as JSON.
#[must_use]
pub fn value(around: &ProcessEnv, value: &Value) -> String {
    in_words(value, &around.home.to_string_lossy())
}

fn in_words(value: &Value, home: &str) -> String {
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let only = value.as_object().is_some_and(|members| members.len() == 1);
    match (text("use"), text("path").or(text("connect"))) {
        (Some(policy), _) if only => policy.to_owned(),
        (Some(policy), _) => format!("{policy} (with settings of its own)"),
        (None, Some(_)) => item_in_words(value, home),
        (None, None) => value.as_str().map_or_else(|| value.to_string(), |text| tilde(text, home)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_words() {
        let seconds = [0, 59, 60, 3599, 3600, 86_399, 86_400, 200_000];
        let words = ["0 s", "59 s", "1 min", "59 min", "1 h", "23 h", "1 day", "2 days"];
        assert_eq!(seconds.map(|seconds| duration(Duration::from_secs(seconds))), words);
        assert!(ago(0).ends_with(" days ago"));
        assert_eq!(ago(u64::MAX / 1_000_000), "now", "a clock that was set back");
    }

    #[test]
    fn settings_are_in_words() {
        let words = |json: &str| in_words(&serde_json::from_str(json).unwrap(), "/home/me");
        for (value, expected) in [
            (r#""/home/me/a b""#, "~/a b"),
            (r#"{ "path": "/home/me/a", "literal": true }"#, "~/a"),
            (r#"{ "path": "/home/me/a", "rights": "write", "exact": true }"#, "reading and writing ~/a"),
            (r#"{ "use": "guard" }"#, "guard"),
            (r#"{ "use": "guard", "config": {} }"#, "guard (with settings of its own)"),
            ("true", "true"),
        ] {
            assert_eq!(words(value), expected, "{value}");
        }
    }
}
