//! The user's own git settings, for commands, which cannot see the files they are in.
//!
//! Commands get name, address and some settings without programs, paths or addresses in them. These are in a file of the
//! session that git reads first, in place of the machine's, which it includes. So the settings of a repository, the
//! private home, a variable and `git -c` come before them, as outside.

use std::fs::OpenOptions;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use portcullis_session::CommandVariables;

use crate::process_env::{ProcessEnv, random_name};
use crate::untrusted_paths::UntrustedPaths;

/// Maximum time to wait for git, which usually takes a few milliseconds.
const PATIENCE: Duration = Duration::from_secs(2);
/// Maximum size of git's output.
const ANSWER_BYTES: u64 = 64 * 1024;
/// Variables that locate the user's git settings; git gets no others.
const LOCATIONS: [&str; 4] = ["HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", SYSTEM];
/// The variable that names the file of the machine's settings, since git 2.32.
const SYSTEM: &str = "GIT_CONFIG_SYSTEM";
/// The variable with which git reads no settings of the machine.
const NO_SYSTEM: &str = "GIT_CONFIG_NOSYSTEM";
/// The file of the machine's settings, if git does not say which it is.
const USUAL_SYSTEM: &str = "/etc/gitconfig";
/// The settings that commands get.
const WANTED: &str = r"^((user|author|committer)\.(name|email)|init\.defaultbranch|pull\.(rebase|ff)|push\.(default|autosetupremote|followtags)|fetch\.(prune|prunetags)|merge\.(ff|conflictstyle)|rebase\.(autosquash|autostash|updaterefs)|rerere\.enabled|diff\.(algorithm|renames|colormoved)|branch\.autosetup(merge|rebase)|core\.(autocrlf|eol|safecrlf|abbrev|quotepath)|commit\.(verbose|cleanup)|color\.ui|tag\.sort|log\.date)$";

/// Starts git in the background. The returned function waits for the result and writes the file to `temp`, the directory
/// that commands see as their temporary one.
pub(crate) fn asked(
    around: &ProcessEnv,
    reach: UntrustedPaths,
    temp: PathBuf,
) -> impl Fn() -> CommandVariables + Send + Sync + use<> {
    let mut variables = inherited_identity(around);
    if variable(around, NO_SYSTEM).is_some() {
        // Git reads the file in place of the machine's settings, which it leaves out.
        variables.push((NO_SYSTEM.to_owned(), "false".to_owned()));
    }
    let around = around.clone();
    let (answer, answered) = sync_channel(1);
    let asking = std::thread::Builder::new().name("git".to_owned()).spawn(move || {
        // Ignore errors: the receiver may be gone.
        let _unheard = answer.send(text(&around, &reach));
    });
    // Without a thread there are no settings, and git asks for the identity as usual.
    drop(asking);
    let answered = Mutex::new(answered);
    move || {
        let text = answered.lock().unwrap_or_else(PoisonError::into_inner).recv().ok().flatten();
        // Without the file git asks for the identity as usual.
        let file = text.and_then(|text| write(&temp, &text).ok());
        let files = file.map(|name| (SYSTEM.to_owned(), name)).into_iter().collect();
        CommandVariables { variables: variables.clone(), files }
    }
}

fn variable<'a>(around: &'a ProcessEnv, name: &str) -> Option<&'a str> {
    around.variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// Returns the user's variables with an identity for git.
fn inherited_identity(around: &ProcessEnv) -> Vec<(String, String)> {
    let names = ["AUTHOR", "COMMITTER"]
        .into_iter()
        .flat_map(|role| ["NAME", "EMAIL"].map(|part| format!("GIT_{role}_{part}")));
    names.filter_map(|name| around.variables.iter().find(|(known, _)| *known == name).cloned()).collect()
}

/// Returns the text of the file; `None` if git has no such settings. `reach` holds the paths from which no git program
/// is run, because it runs outside the sandbox.
fn text(around: &ProcessEnv, reach: &UntrustedPaths) -> Option<Vec<u8>> {
    let git = around.find_program("git".as_ref(), reach)?;
    let settings = ask(around, &git, &["config", "--includes", "--null", "--get-regexp", WANTED]);
    let own = entries(&settings);
    if own.is_empty() {
        return None;
    }
    if variable(around, NO_SYSTEM).is_some_and(is_true) {
        return Some(own);
    }
    // Older versions do not know the question.
    let told = ask(around, &git, &["var", SYSTEM]);
    let told = told.trim_ascii_end();
    let usual = || variable(around, SYSTEM).unwrap_or(USUAL_SYSTEM).as_bytes();
    let system = if told.starts_with(b"/") { told } else { usual() };
    Some([b"[include]\n\tpath = ", quoted(system).as_slice(), b"\n", own.as_slice()].concat())
}

/// Returns true for a value that git takes for true.
fn is_true(value: &str) -> bool {
    !["", "0", "false", "no", "off"].contains(&value.to_ascii_lowercase().as_str())
}

/// Returns git's settings as text of a file, from names and values as `git config --null` prints them.
///
/// Values are bytes: git keeps names of people in whatever encoding they were written.
fn entries(settings: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    for entry in settings.split(|byte| *byte == 0) {
        let Some(end) = entry.iter().position(|byte| *byte == b'\n') else { continue };
        let (name, value) = (entry.get(..end).unwrap_or_default(), entry.get(end + 1..).unwrap_or_default());
        let Some((section, key)) = std::str::from_utf8(name).ok().and_then(|name| name.split_once('.'))
        else {
            continue;
        };
        text.extend_from_slice(format!("[{section}]\n\t{key} = ").as_bytes());
        text.extend(quoted(value));
        text.push(b'\n');
    }
    text
}

/// Returns a value as git reads it from a file.
fn quoted(value: &[u8]) -> Vec<u8> {
    let mut text = vec![b'"'];
    for byte in value {
        match byte {
            b'"' | b'\\' => text.extend([b'\\', *byte]),
            b'\n' => text.extend(b"\\n"),
            _ => text.push(*byte),
        }
    }
    text.push(b'"');
    text
}

/// Writes the file and returns its name. Commands can write in the directory, so the name must be a new one.
fn write(temp: &Path, text: &[u8]) -> io::Result<String> {
    let name = format!("git-settings-{}", random_name().map_err(io::Error::other)?);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(temp.join(&name))?;
    file.write_all(text)?;
    Ok(name)
}

/// Runs git in `/`, outside any repository. Returns its output; nothing if git fails or takes too long.
fn ask(around: &ProcessEnv, git: &Path, words: &[&str]) -> Vec<u8> {
    let mut command = Command::new(git);
    command.args(words).current_dir("/").env_clear();
    command.envs(around.variables.iter().filter(|(name, _)| LOCATIONS.contains(&name.as_str())).cloned());
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let Ok(mut child) = quiet.spawn() else { return Vec::new() };
    let end = Instant::now() + PATIENCE;
    while matches!(child.try_wait(), Ok(None)) {
        if Instant::now() > end {
            // Killed or gone, it has no output.
            drop(child.kill());
            drop(child.wait());
            return Vec::new();
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    let mut answer = Vec::new();
    let read = child.stdout.map(|output| output.take(ANSWER_BYTES).read_to_end(&mut answer));
    if matches!(read, Some(Ok(_))) { answer } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_reads_what_is_written() {
        let values: [&[u8]; 5] =
            [b"Ada \"L\" \\ Byron; #1", b" spaces ", b"two\nlines", b"", b"J\xf6rg in Latin-1"];
        for value in values {
            let directory = tempfile::tempdir().unwrap();
            let name = write(directory.path(), &entries(&[b"user.name\n", value, b"\0"].concat())).unwrap();
            let mut git = Command::new("git");
            git.args(["config", "--null", "--file"]).arg(directory.path().join(name)).arg("user.name");
            let output = git.output().unwrap();
            assert_eq!(output.stdout, [value, b"\0"].concat(), "{output:?}");
        }
    }

    #[test]
    fn the_last_of_several_counts_in_git_too() {
        let settings = "user.name\nOne\0init.defaultbranch\nmain\0user.name\nTwo\0";
        let expected =
            "[user]\n\tname = \"One\"\n[init]\n\tdefaultbranch = \"main\"\n[user]\n\tname = \"Two\"\n";
        assert_eq!(entries(settings.as_bytes()), expected.as_bytes());
        assert_eq!(entries(b""), b"");
    }
}
