//! The process that compiles: bounds itself, then compiles one component.

use std::io::{self, BufWriter};
use std::process::ExitCode;
use std::sync::Arc;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::compile::wire::{Order, receive, receive_bytes, send_answer};
use crate::compile::worker::Worker;
use crate::engine::SharedEngine;
use crate::limits::{self, CompileLimits};

/// Open descriptors of the process: its three streams, and memory images of instances.
const OPEN_FILES: u64 = 64;

/// Runs the process that compiles: takes a component on standard input and answers with machine code on standard
/// output. The program calls it before anything else, and ends with its exit code.
#[must_use]
pub fn compiler_main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        // The host has gone, or says why in words of its own.
        Err(_) => ExitCode::FAILURE,
    }
}

fn serve() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        // The host may end before it has an answer.
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

/// Sets the bounds that the kernel keeps.
fn bound(limits: CompileLimits) -> io::Result<()> {
    let all = [
        (Resource::Core, 0, 0),
        // The address space is mostly reserved and never used, so what is written to is counted instead.
        (Resource::Data, limits.memory, limits.memory),
        // Nothing is written to the disk; a memory image of an instance counts as a file.
        (Resource::Fsize, limits::MEMORY as u64, limits::MEMORY as u64),
        (Resource::Nofile, OPEN_FILES, OPEN_FILES),
        // Reaching the first is a signal, which tells the host what happened. What has begun of a second counts as one.
        (Resource::Cpu, limits.cpu.as_secs().saturating_add(1), limits.cpu.as_secs().saturating_add(2)),
    ];
    for (resource, soft, hard) in all {
        let maximum = getrlimit(resource).maximum.map_or(hard, |known| known.min(hard));
        setrlimit(resource, Rlimit { current: Some(soft.min(maximum)), maximum: Some(maximum) })?;
    }
    Ok(())
}
