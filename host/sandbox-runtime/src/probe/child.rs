//! The throwaway process of a probe: it tries one mechanism for real.

use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;

use portcullis_sandbox::{Controller, ControllerNames, IsolationMode, Limits, Primitive, Reads, Stage};
use portcullis_sys::mount::{Attributes, Reach, add_attributes};
use portcullis_sys::process::{CloneFlags, Cloned, SingleThread, clone, clone_into, exit_now};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, MountPropagationFlags, mount_change};
use rustix::process::{Pid, WaitOptions};

use crate::group::directory::Group;
use crate::layer::failure::{During, Failure};
use crate::layer::landlock::{self, landlock_only};
use crate::layer::mount_calls::{attach, copy_opened, new_filesystem, open};
use crate::layer::namespaces::Identity;
use crate::layer::seccomp::{self, Broker};
use crate::layer::{limits, network};

/// Any number below the usual limit shows that the limit can be set.
const SOME_PROCESSES: u64 = 1000;
const SOME_BYTES: u64 = 1 << 30;

/// Probes the mechanism that the second argument names, and prints the result on standard output.
///
/// The process must not have started any thread.
pub fn probe_main() -> ExitCode {
    let name = std::env::args().nth(2).unwrap_or_default();
    let Some(primitive) = Primitive::ALL.into_iter().find(|primitive| primitive.name() == name) else {
        return ExitCode::FAILURE;
    };
    let Ok(Some(single)) = SingleThread::prove() else { return ExitCode::FAILURE };
    match primitive {
        Primitive::Landlock => say(&versions()),
        Primitive::Scopes => say(&scopes(&single)),
        Primitive::Filter => say(&filter(Broker::None)),
        Primitive::Listener => say(&filter(Broker::Listens)),
        Primitive::UserNamespace => inside(&single, CloneFlags::USER, |_| Ok(String::new())),
        Primitive::Mounts => inside(&single, CloneFlags::MOUNT, mounts),
        Primitive::Proc => inside(&single, CloneFlags::MOUNT | CloneFlags::PID, proc),
        Primitive::Network => {
            inside(&single, CloneFlags::NETWORK, |_| network::enforce().map(|()| String::new()));
        }
        Primitive::Objects => inside(&single, CloneFlags::IPC | CloneFlags::UTS, host_name),
        Primitive::ProcessLimit => inside(&single, CloneFlags::PID, process_limit),
        Primitive::ControlGroup => say(&control_group(&single)),
    }
    ExitCode::SUCCESS
}

/// Runs `act` in a new user namespace and in the namespaces of `flags`.
fn inside(single: &SingleThread, flags: CloneFlags, act: impl FnOnce(Identity) -> Result<String, Failure>) {
    let identity = Identity::current();
    match clone(single, flags | CloneFlags::USER).during(Stage::Namespaces) {
        Err(failure) => say(&Err(failure)),
        // The child prints the result, and the reader waits for its end.
        Ok(Cloned::Parent { .. }) => {}
        Ok(Cloned::Child) => {
            say(&identity.map().and_then(|()| act(identity)));
            exit_now(0);
        }
    }
}

fn mounts(_: Identity) -> Result<String, Failure> {
    let root = Path::new("/");
    let all_private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change(root, all_private).during_at(Stage::MountAttributes, root)?;
    let memory = new_filesystem("tmpfs", &[], MountAttrFlags::empty()).during(Stage::NewFilesystem)?;
    attach(&memory, Path::new("/tmp")).during_at(Stage::AttachMount, Path::new("/tmp"))?;
    let opened = open(root, OFlags::DIRECTORY).during_at(Stage::OpenPlace, root)?;
    let copy = copy_opened(&opened).during_at(Stage::CopyMounts, root)?;
    add_attributes(&copy, Reach::Tree, Attributes::READ_ONLY | Attributes::NO_SETUID)
        .during_at(Stage::MountAttributes, root)?;
    Ok(String::new())
}

fn proc(_: Identity) -> Result<String, Failure> {
    let proc = new_filesystem("proc", &[], MountAttrFlags::empty()).during(Stage::Proc)?;
    attach(&proc, Path::new("/proc")).during(Stage::Proc)?;
    Ok(String::new())
}

fn host_name(_: Identity) -> Result<String, Failure> {
    rustix::system::sethostname(b"probe").during(Stage::HostName)?;
    Ok(String::new())
}

fn process_limit(_: Identity) -> Result<String, Failure> {
    if limits::bound_processes(SOME_PROCESSES) {
        return Ok(String::new());
    }
    Err(Errno::NOSYS).during(Stage::Limits)
}

/// Creates a group, starts a process in it, and removes it.
fn control_group(single: &SingleThread) -> Result<String, Failure> {
    let limits =
        Limits { processes: Some(SOME_PROCESSES), memory_bytes: Some(SOME_BYTES), ..Limits::default() };
    let group = Group::make(limits).map_err(|why| io::Error::from_raw_os_error(why.errno()));
    let group = group.during(Stage::Group)?;
    let entrance = group.entrance().during_at(Stage::Group, group.path())?;
    match clone_into(single, CloneFlags::NONE, entrance.as_fd()).during_at(Stage::Group, group.path())? {
        // The child inherits the group's lock, and exits with it.
        Cloned::Child => exit_now(0),
        Cloned::Parent { pid, .. } => {
            let _status = rustix::process::waitpid(Pid::from_raw(pid), WaitOptions::empty());
        }
    }
    let controllers = group.controllers();
    if !Controller::NEEDED.iter().all(|needed| controllers.contains(needed)) {
        return Err(Errno::OPNOTSUPP).during_at(Stage::Group, group.path());
    }
    Ok(format!("{} in {}", ControllerNames(controllers), group.path().display()))
}

fn filter(broker: Broker) -> Result<String, Failure> {
    rustix::thread::set_no_new_privs(true).during(Stage::Privileges)?;
    drop(seccomp::enforce(broker, Reads::Free, IsolationMode::Namespaces)?);
    Ok(String::new())
}

fn versions() -> Result<String, Failure> {
    let version = landlock::usable_version().ok_or(Errno::NOSYS).during(Stage::Landlock)?;
    Ok(format!("version {version}"))
}

/// Tries the scopes on the parent: it runs as the same user, and still waits.
fn scopes(single: &SingleThread) -> Result<String, Failure> {
    rustix::thread::set_no_new_privs(true).during(Stage::Privileges)?;
    let parent = rustix::process::getppid().map_or(0, |parent| parent.as_raw_nonzero().get());
    landlock_only::fence(single, parent)?;
    Ok(String::new())
}

fn say(outcome: &Result<String, Failure>) {
    let line = match outcome {
        Ok(text) => format!("ok {text}\n"),
        Err(failure) => {
            // A stage's own advice is left out: [`portcullis_sandbox::advice`] knows more.
            let stage = failure.stage.to_string();
            let doing = stage.split(';').next().unwrap_or_default();
            format!("{} {doing} {}\n", failure.refusal().errno, failure.path.display())
        }
    };
    // The reader may have ended.
    drop(io::stdout().write_all(line.as_bytes()));
}
