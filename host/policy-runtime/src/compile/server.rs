//! The compiler process: it sets its own limits, then compiles one component.

use std::io::{self, BufWriter};
use std::process::ExitCode;
use std::sync::Arc;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::compile::wire::{Order, receive, receive_bytes, send_answer};
use crate::compile::worker::Worker;
use crate::engine::SharedEngine;
use crate::limits::{self, CompileLimits};

/// Limit on open file descriptors: the three standard streams, and memory images of instances.
const OPEN_FILES: u64 = 64;

/// Runs the compiler process: reads a component on stdin and writes machine code to stdout.
///
/// The program calls this before anything else and exits with the returned code.
#[must_use]
pub fn compiler_main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        // The host is gone, or reports the failure itself.
        Err(_) => ExitCode::FAILURE,
    }
}

fn serve() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        // Die with the host if it exits before the answer is ready.
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        crate::compile::restrict::enforce()?;
    }
    let (mut from, mut to) = (io::stdin().lock(), BufWriter::new(io::stdout().lock()));
    let order: Order = receive(&mut from)?;
    let limits = order.limits();
    bound(limits.compile)?;
    let most = usize::try_from(limits::COMPONENT).unwrap_or(usize::MAX);
    let component = receive_bytes(&mut from, most)?;
    let made = SharedEngine::start().and_then(|engine| {
        Worker { shared: &Arc::new(engine), limits, component: &component }.carry_out(&order.job)
    });
    send_answer(&mut to, made)
}

/// Sets the resource limits.
fn bound(limits: CompileLimits) -> io::Result<()> {
    let all = [
        (Resource::Core, 0, 0),
        // Most of the address space is reserved and never used, so this limits the data segment instead.
        (Resource::Data, limits.memory, limits.memory),
        // The process writes no files, but a memory image of an instance counts as one.
        (Resource::Fsize, limits::MEMORY as u64, limits::MEMORY as u64),
        (Resource::Nofile, OPEN_FILES, OPEN_FILES),
        // At the soft limit the kernel sends a signal, which tells the host the reason. A started second
        // counts as a whole one.
        (Resource::Cpu, limits.cpu.as_secs().saturating_add(1), limits.cpu.as_secs().saturating_add(2)),
    ];
    for (resource, soft, hard) in all {
        let maximum = getrlimit(resource).maximum.map_or(hard, |known| known.min(hard));
        setrlimit(resource, Rlimit { current: Some(soft.min(maximum)), maximum: Some(maximum) })?;
    }
    Ok(())
}
