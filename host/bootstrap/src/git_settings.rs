//! The user's git identity, for commands, which cannot see the user's git settings.
//!
//! Name and address come from git's settings on the host.

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::process_env::ProcessEnv;
use crate::untrusted_paths::UntrustedPaths;

/// Maximum time to wait for git, which usually takes a few milliseconds.
const PATIENCE: Duration = Duration::from_secs(2);
/// Maximum size of git's output.
const ANSWER_BYTES: u64 = 64 * 1024;
/// Variables that locate the user's git settings; git gets no others.
const SETTINGS: [&str; 4] = ["HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"];
const WANTED: &str = r"^(user|author|committer)\.(name|email)$";

/// Starts git in the background. The returned function waits for the result; only its first call returns it.
pub(crate) fn asked(
    around: &ProcessEnv,
    project: &Path,
    reach: UntrustedPaths,
) -> impl Fn() -> Vec<(String, String)> + Send + Sync + use<> {
    let (around, project) = (around.clone(), project.to_owned());
    let (answer, answered) = sync_channel(1);
    let asking = std::thread::Builder::new().name("git".to_owned()).spawn(move || {
        // Ignore errors: the receiver may be gone.
        let _unheard = answer.send(variables(&around, &project, &reach));
    });
    // Without a thread no variables are set, and git asks for the identity as usual.
    drop(asking);
    let answered = Mutex::new(answered);
    move || answered.lock().unwrap_or_else(PoisonError::into_inner).recv().unwrap_or_default()
}

/// Returns git's variables for the user's identity. Unset values are left out, and git asks for them as usual.
///
/// The project's own settings take precedence, as they would for the user. They are read without includes, and only if
/// the project is an ordinary repository. `reach` holds the paths from which no git program is run, because it runs
/// outside the sandbox.
fn variables(around: &ProcessEnv, project: &Path, reach: &UntrustedPaths) -> Vec<(String, String)> {
    let Some(git) = around.find_program("git".as_ref(), reach) else { return Vec::new() };
    let everywhere = ask(around, &git, &["config", "--includes"]);
    let own = project.join(".git/config");
    let is_file = own.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
    let read = |file| ask(around, &git, &["config", "--no-includes", "--file", file]);
    let own = own.to_str().filter(|_| is_file).map(read);
    let settings = everywhere + &own.unwrap_or_default();
    let inherited = |name: &str| around.variables.iter().find(|(known, _)| known == name).cloned();
    ["AUTHOR", "COMMITTER"]
        .into_iter()
        .flat_map(|role| [(role, "NAME"), (role, "EMAIL")])
        .filter_map(|(role, part)| {
            let name = format!("GIT_{role}_{part}");
            inherited(&name).or_else(|| Some((name, setting(&settings, role, part)?)))
        })
        .collect()
}

/// Returns the value in effect: the role's before the user's, and the last of several.
fn setting(settings: &str, role: &str, part: &str) -> Option<String> {
    let last = |section: &str| {
        let key = format!("{section}.{part}").to_lowercase();
        let mut values = settings.split('\0').filter_map(|entry| entry.split_once('\n'));
        let last = values.rfind(|(name, value)| *name == key && !value.is_empty());
        last.map(|(_, value)| value.to_owned())
    };
    last(role).or_else(|| last("user"))
}

/// Runs git outside any repository and returns its settings; empty if it does not answer.
fn ask(around: &ProcessEnv, git: &Path, how: &[&str]) -> String {
    let mut command = Command::new(git);
    command.args(how).args(["--null", "--get-regexp", WANTED]).current_dir("/").env_clear();
    command.envs(around.variables.iter().filter(|(name, _)| SETTINGS.contains(&name.as_str())).cloned());
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let Ok(mut child) = quiet.spawn() else { return String::new() };
    let end = Instant::now() + PATIENCE;
    while matches!(child.try_wait(), Ok(None)) {
        if Instant::now() > end {
            // Killed or gone, it has no output.
            drop(child.kill());
            drop(child.wait());
            return String::new();
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    let mut answer = String::new();
    let read = child.stdout.map(|output| output.take(ANSWER_BYTES).read_to_string(&mut answer));
    if matches!(read, Some(Ok(_))) { answer } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_setting_counts() {
        let settings = "user.name\nOne\0user.email\no@x\0author.name\nPen\0user.name\nTwo\0user.email\n\0";
        let value = |role, part| setting(settings, role, part);
        assert_eq!(value("COMMITTER", "NAME").as_deref(), Some("Two"));
        assert_eq!(value("AUTHOR", "NAME").as_deref(), Some("Pen"));
        assert_eq!(value("AUTHOR", "EMAIL").as_deref(), Some("o@x"));
        assert_eq!(setting("", "AUTHOR", "NAME"), None);
    }
}
