//! The environment of this process: the only place where environment variables, home and clock are read.

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};
use std::time::{Instant, SystemTime};

use anyhow::Context as _;
use portcullis_decision::path_text;
use portcullis_session::SANDBOX_VARIABLE;

use crate::untrusted_paths::UntrustedPaths;

/// The variable that names the agent.
const AGENT: &str = "PORTCULLIS_AGENT";

/// The variable with which `portcullis pi --allow` tells the host that pi starts what is allowed, one item a line.
pub const ALLOW: &str = "PORTCULLIS_ALLOW";

/// The variable with which `portcullis pi --branch` tells the host the branch in which the session works.
pub const BRANCH: &str = "PORTCULLIS_BRANCH";

/// The running program, even if its file has been replaced since.
pub const OWN_PROGRAM: &str = "/proc/self/exe";

/// The environment of the process.
#[derive(Debug, Clone)]
pub struct ProcessEnv {
    /// The working directory.
    pub cwd: PathBuf,
    /// The user's home directory.
    pub home: PathBuf,
    /// The user's home directory in the user database, whatever HOME says.
    pub account_home: Option<PathBuf>,
    /// pi's own directory.
    pub agent_directory: PathBuf,
    /// Directory of logs and sessions.
    pub state: PathBuf,
    /// Directory of compiled policies.
    pub cache: PathBuf,
    /// Directory of the settings of the user's programs.
    pub settings: PathBuf,
    /// Directory in which the extension is unpacked.
    pub data: PathBuf,
    /// The absolute directories of PATH.
    pub path: Vec<PathBuf>,
    /// Name of the user.
    pub user: String,
    /// Name of the agent if several work side by side; empty without a name.
    pub agent: String,
    /// What is allowed for the sessions of this process alone, as typed: presets, hosts, paths.
    pub allow: Vec<String>,
    /// The branch in which the sessions of pi work; `None` if they work in the project.
    pub branch: Option<String>,
    /// All environment variables that are UTF-8.
    pub variables: Vec<(String, String)>,
    /// This program.
    pub executable: PathBuf,
}

impl ProcessEnv {
    /// Reads the environment.
    pub fn read() -> anyhow::Result<Self> {
        let home =
            absolute("HOME").context("HOME is not set to an absolute path; set it to your home directory")?;
        let cwd = std::env::current_dir().context("finding the current directory")?;
        let xdg =
            |name: &str, usual: &str| absolute(name).unwrap_or_else(|| home.join(usual)).join("portcullis");
        let agent = std::env::var("PI_CODING_AGENT_DIR").ok().filter(|text| !text.is_empty());
        let agent_directory = match agent {
            Some(text) => portcullis_file_gate::spelling::resolve(&text, &cwd, &home)
                .context("reading PI_CODING_AGENT_DIR")?,
            None => home.join(".pi/agent"),
        };
        let path = std::env::var_os("PATH").unwrap_or_default();
        let account = nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten();
        Ok(Self {
            cwd,
            agent_directory,
            state: xdg("XDG_STATE_HOME", ".local/state"),
            cache: xdg("XDG_CACHE_HOME", ".cache"),
            settings: absolute("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")),
            data: xdg("XDG_DATA_HOME", ".local/share"),
            path: std::env::split_paths(&path).filter(|directory| directory.is_absolute()).collect(),
            agent: agent_name()?,
            user: account.as_ref().map(|account| account.name.clone()).unwrap_or_default(),
            // Accounts without a home have `/` or a path that does not exist.
            account_home: account.map(|account| account.dir).filter(|home| home != Path::new("/")),
            branch: std::env::var(BRANCH).ok().filter(|name| !name.is_empty()),
            allow: allowed(&std::env::var(ALLOW).unwrap_or_default()),
            variables: text_variables(std::env::vars_os()),
            executable: std::env::current_exe().context("finding this program's own file")?,
            home,
        })
    }

    /// Fails if this process runs in a sandbox of Portcullis, as a command of an agent or of `portcullis run`.
    ///
    /// # Errors
    /// With what to do instead.
    pub fn ensure_outside(&self) -> anyhow::Result<()> {
        let is_inside = self.variables.iter().any(|(name, _)| name == SANDBOX_VARIABLE);
        anyhow::ensure!(
            !is_inside,
            "this runs in a sandbox of Portcullis already, and there is none in another ({SANDBOX_VARIABLE} is set); \
             start the program itself, without `portcullis`: the rules of this sandbox hold for it; for a sandbox of its \
             own it has to be started outside, from the user's terminal"
        );
        Ok(())
    }

    /// Returns a path relative to the working directory as an absolute one.
    pub fn absolute(&self, path: &Path) -> PathBuf {
        self.cwd.join(path)
    }

    /// Returns the user's home directories, from HOME and from the user database.
    pub fn homes(&self) -> Vec<PathBuf> {
        std::iter::once(&self.home).chain(&self.account_home).cloned().collect()
    }

    /// Returns the directory for the sockets of the user's programs.
    pub fn runtime_directory(&self) -> PathBuf {
        let named = self.variables.iter().find(|(name, _)| name == "XDG_RUNTIME_DIR").map(|(_, value)| value);
        let named = named.map(|value| path_text::normalize(Path::new(value)));
        // Elsewhere it may lie in a directory that means something else.
        let usual = named.filter(|path| path.starts_with("/run/user") && path != Path::new("/run/user"));
        usual.unwrap_or_else(|| format!("/run/user/{}", rustix::process::getuid().as_raw()).into())
    }

    /// Finds a program on PATH that no command can have created.
    ///
    /// Relative directories of PATH are skipped, since they lie in the project. System directories come before the
    /// user's own.
    pub fn find_program(&self, name: &OsStr, reach: &UntrustedPaths) -> Option<PathBuf> {
        let homes = self.homes();
        let is_own = |file: &PathBuf| homes.iter().any(|home| file.starts_with(home));
        let files = self.path.iter().map(|directory| directory.join(name));
        let (own, others): (Vec<_>, Vec<_>) = files.partition(is_own);
        others.into_iter().chain(own).find(|file| is_executable(file) && !reach.holds(file))
    }

    /// Returns PATH without the directories in which a command can have created programs, for programs outside the
    /// sandbox that start others.
    pub fn trusted_path(&self, reach: &UntrustedPaths) -> OsString {
        let trusted = self.path.iter().filter(|directory| !reach.holds(directory));
        // They come from a PATH, so they can be written as one.
        std::env::join_paths(trusted).unwrap_or_default()
    }
}

/// The variable that names the point of a fault, in debug builds.
#[cfg(debug_assertions)]
const FAULT: &str = "PORTCULLIS_TEST_FAULT";

/// Returns the point at which a test wants this process to panic.
#[cfg(debug_assertions)]
pub fn provoked_fault() -> Option<String> {
    std::env::var(FAULT).ok()
}

/// Returns the current time.
pub fn now() -> SystemTime {
    SystemTime::now()
}

/// Returns the current time in seconds since 1970.
pub fn unix_seconds() -> i64 {
    let since = now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// Returns the microseconds since the first call.
pub fn stopwatch() -> u64 {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    u64::try_from(START.get_or_init(Instant::now).elapsed().as_micros()).unwrap_or(u64::MAX)
}

/// Returns a random session name: 16 hexadecimal digits.
pub fn random_name() -> anyhow::Result<String> {
    let mut bytes = [0_u8; 8];
    getrandom::fill(&mut bytes)
        .map_err(std::io::Error::other)
        .context("asking the system for random bytes")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Returns the absolute path that a variable holds.
fn absolute(name: &str) -> Option<PathBuf> {
    std::env::var_os(name)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .map(|path| without_parents(&path))
}

/// Returns an absolute path without `..`, `.` and repeated `/`, so that it can be compared with others.
fn without_parents(path: &Path) -> PathBuf {
    let has_parent = path.components().any(|part| part == Component::ParentDir);
    // `..` after a symbolic link leads out of the link's target.
    let real = if has_parent { path.canonicalize().ok() } else { None };
    real.unwrap_or_else(|| path_text::normalize(path))
}

fn allowed(text: &str) -> Vec<String> {
    text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// Returns the agent's name, which its parent process sets.
fn agent_name() -> anyhow::Result<String> {
    let name = std::env::var_os(AGENT).unwrap_or_default();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let name = name.into_string().ok().filter(|name| name.len() <= 64 && name.bytes().all(plain));
    name.with_context(|| format!("reading {AGENT}: a name is up to 64 letters, digits, `-`, `_` and `.`"))
}

/// Returns the variables that are UTF-8. Rules cannot match others, so commands do not get them.
fn text_variables(all: impl Iterator<Item = (OsString, OsString)>) -> Vec<(String, String)> {
    all.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))).collect()
}

/// Returns true if `file` is a regular file with an execute bit for owner, group or others.
#[must_use]
pub fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_have_one_spelling() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("far/ann/shop")).unwrap();
        std::os::unix::fs::symlink("far/ann", top.join("link")).unwrap();
        for (given, expected) in [
            ("far/ann/shop/..", "far/ann"),
            ("far//./ann/", "far/ann"),
            // The parent of a link's target, and a link that stays one.
            ("link/../ann", "far/ann"),
            ("link", "link"),
            ("not/there/..", "not"),
        ] {
            assert_eq!(
                without_parents(&top.join(given)).as_os_str(),
                top.join(expected).as_os_str(),
                "{given}"
            );
        }
    }
}
