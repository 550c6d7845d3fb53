//! The process that compiles: bounds itself, then does jobs until the host goes.

use std::io::{self, BufWriter};
use std::process::ExitCode;
use std::sync::Arc;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

use crate::compile::wire::{Fault, Job, Order, receive, receive_bytes, send_answer};
use crate::compile::worker::Worker;
use crate::engine::SharedEngine;
use crate::limits::{self, CompileLimits, Limits};

/// Open descriptors of the process: its three streams, and memory images of instances.
const OPEN_FILES: u64 = 64;

/// Runs the process that compiles components: takes a component and jobs on standard input and answers on standard
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
    crate::compile::restrict::enforce()?;
    let (mut from, mut to) = (io::stdin().lock(), BufWriter::new(io::stdout().lock()));
    let order: Order = receive(&mut from)?;
    let limits = Limits::from(order);
    bound(limits.compile)?;
    let most = usize::try_from(limits::COMPONENT).unwrap_or(usize::MAX);
    let component = receive_bytes(&mut from, most)?;
    let mut worker = match SharedEngine::start() {
        Ok(engine) => Worker::new(Arc::new(engine), limits, component),
        Err(error) => {
            let _job: Job = receive(&mut from)?;
            return send_answer(&mut to, Err(Fault::Other(format!("could not start: {error}"))));
        }
    };
    loop {
        let job: Job = match receive(&mut from) {
            Ok(job) => job,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        };
        bound_time(limits.compile)?;
        send_answer(&mut to, worker.carry_out(&job))?;
    }
}

/// Bounds the processor time of the next job, beyond what those before it have used. The limit is a signal, which tells
/// the host what happened.
fn bound_time(limits: CompileLimits) -> io::Result<()> {
    let used = u64::try_from(clock_gettime(ClockId::ProcessCPUTime).tv_sec).unwrap_or_default();
    let Rlimit { maximum, .. } = getrlimit(Resource::Cpu);
    // What has begun of a second counts as one.
    let until = used.saturating_add(limits.cpu.as_secs()).saturating_add(1);
    let current = maximum.map_or(until, |maximum| maximum.min(until));
    Ok(setrlimit(Resource::Cpu, Rlimit { current: Some(current), maximum })?)
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
    ];
    for (resource, soft, hard) in all {
        let maximum = getrlimit(resource).maximum.map_or(hard, |known| known.min(hard));
        setrlimit(resource, Rlimit { current: Some(soft.min(maximum)), maximum: Some(maximum) })?;
    }
    Ok(())
}
