//! Starting and using a keeper.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;

use rustix::process::{Signal, WaitId, WaitIdOptions};

use super::KEEPER_ARGUMENT;
use crate::link::Link;
use crate::transport::{self, Message};
use crate::wire::{Event, Refusal, Setup};
use crate::{
    Command, Force, LaunchError, Layer, PathKind, Plan, Profile, Report, Running, Stage, StartError, View,
    keeper,
};

/// The running sandbox of one session; dropping it ends every command in it.
#[derive(Debug)]
pub struct Confinement {
    link: Arc<Link>,
    view: View,
    report: Report,
    listener: Option<JoinHandle<()>>,
}

impl Confinement {
    /// Starts a sandbox; `executable` is a program that calls [`keeper_main`] when its only argument is
    /// [`KEEPER_ARGUMENT`], usually the running one.
    ///
    /// # Errors
    /// When the profile is not usable or the system refuses a part of it. Then nothing is left behind but
    /// empty directories in [`Profile::temp`], where places below `/tmp` were to be mounted.
    pub fn start(executable: &Path, profile: &Profile) -> Result<Self, StartError> {
        let plan = Plan::new(profile, &PathKind::of)?;
        let setup = Setup { plan, hostname: profile.hostname.clone(), limits: profile.limits };
        let spawn_error = |source| StartError::Spawn { executable: executable.to_owned(), source };
        let (ours, theirs) = transport::pair().map_err(spawn_error)?;
        // No code runs between fork and exec here, so std uses posix_spawn, which does not copy this process.
        let mut door = std::process::Command::new(executable)
            .arg(KEEPER_ARGUMENT)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(spawn_error)?;
        let keeper = first_message(&ours);
        // The first process only opens the door to the namespaces and ends by itself.
        drop(door.wait());
        let keeper = keeper?;
        let begun = transport::send(&ours, &setup.encode(), &[]).map_err(|_gone| StartError::Lost);
        match begun.and_then(|()| wait_until_ready(&ours)) {
            Ok(Ready { root, mounts, landlock }) => {
                Ok(Self::new(ours, View::new(root, mounts, keeper), report(landlock)))
            }
            Err(error) => {
                end(&keeper);
                Err(error)
            }
        }
    }

    fn new(socket: OwnedFd, view: View, report: Report) -> Self {
        let link = Arc::new(Link::new(socket));
        let listening = Arc::clone(&link);
        let listener = std::thread::spawn(move || listening.listen());
        Self { link, view, report, listener: Some(listener) }
    }

    /// Returns the files as commands see them.
    pub fn view(&self) -> View {
        self.view.clone()
    }

    /// Starts a command; its standard input, output and error are copied, and closed here on return.
    ///
    /// # Errors
    /// When the program was not run. Nothing of the command is left then.
    pub fn launch(&self, command: Command, stdio: [OwnedFd; 3]) -> Result<Running, LaunchError> {
        check(&command)?;
        let [input, output, error] = &stdio;
        let job = self
            .link
            .launch(&command, [input.as_fd(), output.as_fd(), error.as_fd()])
            .map_err(|_gone| LaunchError::Lost)?;
        drop(stdio);
        job.wait_for_start().map_err(|(stage, errno)| launch_error(stage, errno, command))?;
        if job.exit() == Some(crate::Exit::Lost) {
            return Err(LaunchError::Lost);
        }
        Ok(Running { link: Arc::clone(&self.link), job })
    }

    /// Returns which layers are in force.
    pub fn report(&self) -> &Report {
        &self.report
    }
}

impl Drop for Confinement {
    fn drop(&mut self) {
        end(&self.view.keeper());
        if let Some(listener) = self.listener.take() {
            drop(listener.join());
        }
    }
}

/// The keeper's whole life: what a program does when its argument is [`KEEPER_ARGUMENT`].
///
/// Standard input is the line to the host. The process must not have started any thread.
pub fn keeper_main() -> ExitCode {
    keeper::main()
}

/// Kills the keeper, and so everything in the sandbox, and waits until it is gone.
fn end(keeper: &impl AsFd) {
    // Both fail when it is gone already, which is what is wanted.
    let _ = rustix::process::pidfd_send_signal(keeper, Signal::KILL);
    let _ = rustix::io::retry_on_intr(|| {
        rustix::process::waitid(WaitId::PidFd(keeper.as_fd()), WaitIdOptions::EXITED)
    });
}

fn first_message(socket: &OwnedFd) -> Result<OwnedFd, StartError> {
    let message = next_message(socket)?;
    let mut descriptors = message.1.into_iter();
    match (message.0, descriptors.next(), descriptors.next()) {
        (Event::Keeper, Some(keeper), None) => Ok(keeper),
        (Event::Failed { refusal, path }, ..) => Err(start_error(refusal, path)),
        _ => Err(StartError::Lost),
    }
}

/// What a keeper has ready.
struct Ready {
    root: OwnedFd,
    mounts: OwnedFd,
    landlock: u32,
}

fn wait_until_ready(socket: &OwnedFd) -> Result<Ready, StartError> {
    let message = next_message(socket)?;
    let mut descriptors = message.1.into_iter();
    match (message.0, descriptors.next(), descriptors.next(), descriptors.next()) {
        (Event::Ready { landlock }, Some(root), Some(mounts), None) => Ok(Ready { root, mounts, landlock }),
        (Event::Failed { refusal, path }, ..) => Err(start_error(refusal, path)),
        _ => Err(StartError::Lost),
    }
}

fn next_message(socket: &OwnedFd) -> Result<(Event, Vec<OwnedFd>), StartError> {
    let Ok(Some(Message { bytes, descriptors })) = transport::receive(socket) else {
        return Err(StartError::Lost);
    };
    let event = Event::decode(&bytes).map_err(|_garbled| StartError::Lost)?;
    Ok((event, descriptors))
}

fn start_error(refusal: Refusal, path: PathBuf) -> StartError {
    if refusal.stage == Stage::ForeignOwner {
        return StartError::ForeignOwner { path };
    }
    StartError::Refused {
        stage: refusal.stage,
        path: (!path.as_os_str().is_empty()).then_some(path),
        source: io::Error::from_raw_os_error(refusal.errno),
    }
}

fn launch_error(stage: Stage, errno: i32, command: Command) -> LaunchError {
    let source = io::Error::from_raw_os_error(errno);
    if stage == Stage::Exec {
        let program = command.argv.first().map(|program| program.display().to_string()).unwrap_or_default();
        return match errno {
            libc::ENOENT => LaunchError::NotFound { program },
            _ => LaunchError::NotExecutable { program, source },
        };
    }
    if stage == Stage::Directory {
        return LaunchError::Directory { path: command.cwd, source };
    }
    LaunchError::Refused { stage, source }
}

fn check(command: &Command) -> Result<(), LaunchError> {
    let Some(program) = command.argv.first() else {
        return Err(LaunchError::Malformed { reason: "there is no program" });
    };
    if program.is_empty() {
        return Err(LaunchError::NotFound { program: String::new() });
    }
    let variables = command.env.iter().flat_map(|(name, value)| [name, value]);
    let mut strings = command.argv.iter().chain(variables).map(|string| string.as_os_str());
    if strings.any(|string| string.as_bytes().contains(&0)) || command.cwd.as_os_str().as_bytes().contains(&0)
    {
        return Err(LaunchError::Malformed { reason: "there is a NUL in it" });
    }
    if command.env.iter().any(|(name, _)| name.is_empty() || name.as_bytes().contains(&b'=')) {
        return Err(LaunchError::Malformed { reason: "the name of a variable is empty or has `=` in it" });
    }
    if !command.cwd.is_absolute() {
        return Err(LaunchError::Malformed { reason: "the directory to start in is not an absolute path" });
    }
    Ok(())
}

fn report(landlock: u32) -> Report {
    let full = |layer| (layer, Force::Full);
    Report {
        layers: vec![
            full(Layer::Namespaces),
            full(Layer::Mounts),
            (Layer::Landlock, landlock_force(landlock)),
            full(Layer::Seccomp),
            full(Layer::Privileges),
            full(Layer::Limits),
        ],
    }
}

/// What a version of Landlock lacks, by the release that brought it; 0 stands for none.
fn landlock_force(version: u32) -> Force {
    if version == 0 {
        let why =
            "the mounts are the only layer for files (Landlock of Linux 5.19 or later is not switched on)";
        return Force::None(why.into());
    }
    let missing: Vec<&str> = [
        (3, "truncating files (Linux 6.2)"),
        (5, "requests of devices (Linux 6.10)"),
        (6, "signals and abstract sockets (Linux 6.12)"),
    ]
    .into_iter()
    .filter_map(|(since, what)| (version < since).then_some(what))
    .collect();
    if missing.is_empty() { Force::Full } else { Force::Partial(format!("without {}", missing.join(", "))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_landlock_lacks_is_said() {
        assert!(matches!(landlock_force(0), Force::None(_)));
        let said = |version| landlock_force(version).to_string();
        assert_eq!(
            said(2),
            "partial: without truncating files (Linux 6.2), requests of devices (Linux 6.10), signals and \
             abstract sockets (Linux 6.12)"
        );
        assert_eq!(said(5), "partial: without signals and abstract sockets (Linux 6.12)");
        assert_eq!((said(6), said(9)), ("full".into(), "full".into()));
    }
}
