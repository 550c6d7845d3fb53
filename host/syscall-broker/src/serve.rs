//! The threads that receive calls.

use portcullis_sys::notify::Listener;
use portcullis_sys::process::exit_now;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::broker::Broker;
use crate::listener_pool::ListenerPool;
use crate::pending::PendingCall;
use crate::worker::Worker;
use crate::{answers, threads};

/// Answers calls as long as any can arrive; calls `ready` when it starts to.
pub(crate) fn run(
    broker: &'static Broker,
    ready: impl FnOnce() -> std::io::Result<()>,
) -> std::io::Result<()> {
    raise_limit()?;
    threads::start(move || answers::hear(&Worker::begin(broker)))?;
    // Calls that arrive while the other threads start wait for them; the keeper need not.
    ready()?;
    // Lives as long as the process, like the broker.
    let hearing: &'static ListenerPool = Box::leak(Box::default());
    for _ in 1..threads::serving() {
        // With fewer threads it is slower, and no less safe.
        drop(threads::start(move || serve(broker, hearing)));
    }
    serve(broker, hearing)
}

/// Raises the limit of descriptors: callers and their directories are kept open, even if the session may have few.
fn raise_limit() -> std::io::Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?)
}

/// Ends the process when a thread panics: when the broker ends, so does the sandbox.
struct EndsAll;

impl Drop for EndsAll {
    fn drop(&mut self) {
        exit_now(1);
    }
}

fn serve(broker: &'static Broker, hearing: &ListenerPool) -> ! {
    let _ends_all = EndsAll;
    let worker = Worker::begin(broker);
    loop {
        match hearing.hear(|| broker.listener.receive()) {
            Ok(call) => worker.take(&PendingCall {
                call,
                caller: broker.processes.caller(call.thread),
                allowed: Vec::new(),
            }),
            // Since Linux 6.11 receiving fails at once, and forever, when no calls can arrive any more.
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) && is_over(&broker.listener) => {
                exit_now(0)
            }
            // The caller ended before its call was received, or a signal arrived.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR)) => {}
            Err(_) => exit_now(1),
        }
    }
}

/// Returns true if all processes under the filter have ended, the keeper included.
fn is_over(listener: &Listener) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut end = [PollFd::new(listener, PollFlags::empty())];
    let polled = retry_on_intr(|| poll(&mut end, Some(&now)));
    polled.is_ok() && end.iter().any(|end| end.revents().contains(PollFlags::HUP))
}
