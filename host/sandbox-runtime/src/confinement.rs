//! Starting and using a keeper.

mod handshake;
mod layers;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use portcullis_sandbox::{
    Command, Hold, IsolationMode, MakeNames, NameOrder, Network, NoGroup, PathKind, Plan, Profile, Report,
    Stage, WayOut,
};
use portcullis_syscall_broker::transport;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, WaitId, WaitIdOptions};

use crate::arguments::{IN_GROUP, KEEPER_ARGUMENT, WITHOUT_NAMESPACES};
use crate::broker_link::{self, HostOps};
use crate::group::directory::Group;
use crate::held::PendingQueue;
use crate::keeper_link::KeeperLink;
use crate::wire::Setup;
use crate::{Calls, LaunchError, Listeners, NoGate, Running, StartError, View, file_limit, keeper};
use handshake::{Ready, listeners, set_up};
use layers::SetupResults;

/// The number of the next sandbox of this process.
static NEXT_VIEW: AtomicU64 = AtomicU64::new(1);

/// The running sandbox of one session; dropping it ends every command in it.
#[derive(Debug)]
pub struct Confinement {
    link: Arc<KeeperLink>,
    view: View,
    report: Report,
    isolation: IsolationMode,
    listener: Option<JoinHandle<()>>,
    /// The thread that receives the broker's waiting calls.
    asked: Option<JoinHandle<()>>,
    /// The control group of all commands; `None` if none could be created.
    group: Option<Group>,
}

impl Confinement {
    /// Starts a sandbox; `executable` is a program that calls [`keeper_main`] when its only argument is
    /// [`KEEPER_ARGUMENT`], usually the running one.
    ///
    /// # Errors
    /// If the profile is not usable or the system refuses a part of it. Then nothing is left behind except empty
    /// directories in [`Profile::temp`], as mount points for places below `/tmp`.
    pub fn start(executable: &Path, profile: &Profile) -> Result<Self, StartError> {
        Self::start_with(executable, profile, Network::Closed).map(|(confinement, _)| confinement)
    }

    /// Starts a sandbox whose connections lead to listeners that the host receives.
    ///
    /// If the kernel cannot redirect connections, there are no listeners, and no connection leaves the sandbox.
    ///
    /// # Errors
    /// As for [`Self::start`].
    pub fn start_gated(
        executable: &Path,
        profile: &Profile,
        way_out: WayOut,
    ) -> Result<(Self, Result<Listeners, NoGate>), StartError> {
        let (confinement, gate) = Self::start_with(executable, profile, Network::Gated(way_out))?;
        Ok((confinement, gate.unwrap_or(Err(NoGate::Lost))))
    }

    /// Starts a sandbox of Landlock, a broker and a filter, for machines that refuse namespaces.
    ///
    /// See [`portcullis_sandbox::Tier::Landlock`]. In it sockets cannot connect, the host's temporary directory is
    /// hidden, and commands use [`Profile::temp`] instead, under its own path.
    ///
    /// # Errors
    /// As for [`Self::start`]; also if the profile has no rules over names, without which commands are not restricted
    /// to the places, or if Landlock has no signal scopes (Linux 6.12).
    pub fn start_without_namespaces(executable: &Path, profile: &Profile) -> Result<Self, StartError> {
        let plan = Plan::new(profile, &PathKind::on_disk)?;
        let setup = Self::setup(profile, plan, Network::Closed);
        let group = Group::make(profile.limits);
        let order = profile.order.as_ref();
        let (process, started) =
            Self::start_keeper(executable, (&setup, order), IsolationMode::Landlock, group.as_ref().ok())?;
        // This process is the keeper's parent, and continues to run.
        drop(process);
        let StartedKeeper { ours, asked, keeper, ready, .. } = started;
        match ready {
            Ok(Ready { root, mounts, no_group, .. }) => {
                let view = View::new(root, mounts, keeper);
                let group = entered(group, no_group);
                let report = layers::without_namespaces(&group);
                let host_ops = HostOps { acting: setup.acting, order: profile.order.clone() };
                let view = (view, setup.view);
                Ok(Self::new((ours, asked), view, (report, group), host_ops, IsolationMode::Landlock))
            }
            Err(error) => {
                end_without_namespaces(&ours, &keeper);
                Err(error)
            }
        }
    }

    fn setup(profile: &Profile, plan: Plan, network: Network) -> Setup {
        Setup {
            plan,
            hostname: profile.hostname.clone(),
            limits: profile.limits,
            open_files: file_limit::usual(),
            acting: profile.acting,
            network,
            names: profile.names.clone(),
            session: profile.order.as_ref().map_or(0, NameOrder::session),
            view: NEXT_VIEW.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Starts a keeper, and waits for the result of its setup.
    fn start_keeper(
        executable: &Path,
        (setup, order): (&Setup, Option<&NameOrder>),
        isolation: IsolationMode,
        group: Option<&Group>,
    ) -> Result<(Child, StartedKeeper), StartError> {
        let spawn_error = |source| StartError::Spawn { executable: executable.to_owned(), source };
        let (ours, theirs) = transport::pair().map_err(spawn_error)?;
        // The init of a command reports its start itself; the credentials of the message give its pid.
        rustix::net::sockopt::set_socket_passcred(&ours, true).map_err(|error| spawn_error(error.into()))?;
        let (asked, asks) = transport::pair().map_err(spawn_error)?;
        let (calls, connects) = transport::pair().map_err(spawn_error)?;
        let order = order.map(NameOrder::files).transpose().map_err(spawn_error)?;
        let given = [asks, connects]
            .into_iter()
            .chain(order.into_iter().flat_map(portcullis_sandbox::OrderFiles::into_list))
            .collect();
        let without = (isolation == IsolationMode::Landlock).then_some(WITHOUT_NAMESPACES);
        let group = group.map(Group::entrance).transpose().map_err(|error| spawn_error(error.into()))?;
        let in_group = group.is_some().then_some(IN_GROUP);
        // No code runs between fork and exec here, so std uses posix_spawn, which does not copy this process.
        let mut process = std::process::Command::new(executable)
            .arg(KEEPER_ARGUMENT)
            .args(without)
            .args(in_group)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(theirs))
            .stdout(group.map_or_else(Stdio::null, Stdio::from))
            .stderr(Stdio::null())
            .spawn()
            .map_err(spawn_error)?;
        match set_up(&ours, setup, given, isolation) {
            Ok((keeper, ready)) => Ok((process, StartedKeeper { ours, asked, calls, keeper, ready })),
            Err(error) => {
                drop(process.wait());
                Err(error)
            }
        }
    }

    fn start_with(
        executable: &Path,
        profile: &Profile,
        network: Network,
    ) -> Result<(Self, Option<Result<Listeners, NoGate>>), StartError> {
        let plan = Plan::new(profile, &PathKind::on_disk)?;
        let is_gated = network != Network::Closed;
        let is_held =
            matches!(&network, Network::Gated(way) if way.hold == Hold::Connect) && profile.names.is_some();
        let setup = Self::setup(profile, plan, network);
        let group = Group::make(profile.limits);
        let order = profile.order.as_ref();
        let (mut door, started) =
            Self::start_keeper(executable, (&setup, order), IsolationMode::Namespaces, group.as_ref().ok())?;
        // The first process only creates the namespaces and ends by itself, in parallel to what follows.
        drop(door.wait());
        let StartedKeeper { ours, asked, calls, keeper, ready } = started;
        match ready {
            Ok(Ready { root, mounts, landlock, processes_are_bounded, no_group, gate }) => {
                let gate = is_gated.then(|| gate.and_then(|gate| listeners(gate, &keeper)));
                let group = entered(group, no_group);
                let report = layers::report(&SetupResults {
                    landlock,
                    has_name_rules: setup.names.is_some(),
                    processes_are_bounded: setup.limits.processes.is_none() || processes_are_bounded,
                    no_gate: gate.as_ref().and_then(|gate| gate.as_ref().err()),
                    group: &group,
                });
                let view = View::new(root, mounts, keeper);
                let host_ops = HostOps { acting: setup.acting, order: profile.order.clone() };
                let confinement = Self::new(
                    (ours, asked),
                    (view, setup.view),
                    (report, group),
                    host_ops,
                    IsolationMode::Namespaces,
                );
                let calls = is_held.then(|| Calls::new(calls, Arc::clone(&confinement.link)));
                let gate = gate.map(|gate| gate.map(|listeners| Listeners { calls, ..listeners }));
                Ok((confinement, gate))
            }
            Err(error) => {
                end(&keeper);
                Err(error)
            }
        }
    }

    fn new(
        (socket, asked): (OwnedFd, OwnedFd),
        (view, number): (View, u64),
        (report, group): (Report, Result<Group, NoGroup>),
        host_ops: HostOps,
        isolation: IsolationMode,
    ) -> Self {
        let group = group.ok();
        let asked = Arc::new(asked);
        let deaths = group.as_ref().and_then(Group::deaths);
        let link = Arc::new(KeeperLink::new(socket, Arc::clone(&asked), deaths, number));
        let listening = Arc::clone(&link);
        let listener = std::thread::spawn(move || listening.listen());
        let hearing = Arc::clone(&link);
        let asked = std::thread::spawn(move || broker_link::hear(&hearing, &asked, host_ops));
        Self { link, view, report, isolation, listener: Some(listener), asked: Some(asked), group }
    }

    /// Returns the files as commands see them.
    pub fn view(&self) -> View {
        self.view.clone()
    }

    /// Starts a command; its standard input, output and error are duplicated, and closed here on return.
    ///
    /// # Errors
    /// If the program was not run. No process of the command is left then.
    pub fn launch(&self, command: Command, stdio: [OwnedFd; 3]) -> Result<Running, LaunchError> {
        self.start_command(command, stdio, None)
    }

    /// As [`Self::launch`], for a caller that answers the command's waiting calls: see [`Running::next`].
    ///
    /// # Errors
    /// As for [`Self::launch`].
    pub fn launch_asking(&self, command: Command, stdio: [OwnedFd; 3]) -> Result<Running, LaunchError> {
        self.start_command(command, stdio, Some(PendingQueue::default()))
    }

    fn start_command(
        &self,
        command: Command,
        stdio: [OwnedFd; 3],
        waiting: Option<PendingQueue>,
    ) -> Result<Running, LaunchError> {
        check(&command)?;
        let [input, output, error] = &stdio;
        let job = self
            .link
            .launch(&command, [input.as_fd(), output.as_fd(), error.as_fd()], waiting)
            .map_err(not_sent)?;
        drop(stdio);
        job.wait_for_start().map_err(|(stage, errno)| launch_error(stage, errno, command))?;
        if job.exit() == Some(crate::exit::Exit::Lost) {
            return Err(LaunchError::Lost);
        }
        Ok(Running { link: Arc::clone(&self.link), job })
    }

    /// Makes a TCP socket in the session's network, by which the host reaches servers in there.
    ///
    /// # Errors
    /// If the kernel refuses it, or the sandbox has ended.
    pub fn socket_inside(&self, is_v6: bool) -> io::Result<OwnedFd> {
        self.link.make_socket(is_v6)
    }

    /// Returns the report of the layers in force.
    pub fn report(&self) -> &Report {
        &self.report
    }
}

impl Drop for Confinement {
    fn drop(&mut self) {
        match self.isolation {
            IsolationMode::Namespaces => end(&self.view.keeper()),
            IsolationMode::Landlock => end_without_namespaces(self.link.socket(), &self.view.keeper()),
        }
        // Kills processes that are left in the group; normally there are none.
        drop(self.group.take());
        for thread in [self.listener.take(), self.asked.take()].into_iter().flatten() {
            drop(thread.join());
        }
    }
}

/// The main function of a keeper: a program calls it when its argument is [`KEEPER_ARGUMENT`].
///
/// Standard input is the socket to the host. The process must not have started any thread. `names` makes the judge of
/// names for profiles with rules over names.
pub fn keeper_main(names: MakeNames) -> ExitCode {
    keeper::main(names)
}

/// Keeps a group only if its keeper is in it.
fn entered(group: Result<Group, NoGroup>, no_group: i32) -> Result<Group, NoGroup> {
    if no_group == 0 {
        return group;
    }
    Err(NoGroup::Refused { doing: "starting the sandbox in a control group", errno: no_group })
}

/// Kills the keeper, and so every process in the sandbox, and waits until it has ended.
fn end(keeper: &impl AsFd) {
    // Both fail if it has already ended, which is fine.
    let _ = rustix::process::pidfd_send_signal(keeper, Signal::KILL);
    let _ = rustix::io::retry_on_intr(|| {
        rustix::process::waitid(WaitId::PidFd(keeper.as_fd()), WaitIdOptions::EXITED)
    });
}

/// Makes the keeper end all commands by closing the socket, and waits for its parent, the broker, which ends after it.
fn end_without_namespaces(line: &OwnedFd, broker: &impl AsFd) {
    // This fails if the keeper has already ended.
    let _ = rustix::net::shutdown(line, rustix::net::Shutdown::Both);
    let mut ended = [PollFd::new(broker, PollFlags::IN)];
    let patience = Timespec { tv_sec: PATIENCE_SECONDS, tv_nsec: 0 };
    let _late = rustix::io::retry_on_intr(|| poll(&mut ended, Some(&patience)));
    end(broker);
}

/// The time that a keeper has to end its commands before its broker is killed, which makes every further call fail.
const PATIENCE_SECONDS: i64 = 5;

/// The result of starting a keeper: it exists, ready or not.
struct StartedKeeper {
    ours: OwnedFd,
    asked: OwnedFd,
    calls: OwnedFd,
    keeper: OwnedFd,
    ready: Result<Ready, StartError>,
}

/// A closed socket means that the keeper has ended; other errors may be temporary.
fn not_sent(source: io::Error) -> LaunchError {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, NotConnected};
    if [BrokenPipe, ConnectionReset, NotConnected].contains(&source.kind()) {
        return LaunchError::Lost;
    }
    LaunchError::NotSent { source }
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
