//! The connection from pi's extension in the sandbox to the host outside.
//!
//! The extension starts `portcullis serve` as usual. In the sandbox that process finds the path of a unix socket
//! in its environment, passes its four file descriptors through it, and waits until the host has finished with
//! them. Only pi's sandbox has the socket: it lies in a directory that is read-only there and hidden from the agent's
//! commands.

use std::fs::File;
use std::io::{IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_bootstrap::scratch::Scratch;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

use crate::contain::streams::standard_streams;
use crate::serve::{self, Contained, Ends};

/// The variable with the path of the socket, for processes in the sandbox.
pub(super) const VARIABLE: &str = "PORTCULLIS_HANDOFF";
/// Name of the socket.
const NAME: &str = "handoff";
/// Number of file descriptors: standard input, output and error, and the side channel.
const DESCRIPTORS: usize = 4;
/// Number of the side channel.
const SIDE_CHANNEL: i32 = 3;
/// Maximum number of sessions at the same time, including those of sub-agents; a real client does not need more.
const MOST_SESSIONS: usize = 32;
/// Time in which a client must pass its descriptors; after it, others are served.
const PATIENCE: Duration = Duration::from_secs(5);

/// The listening socket, closed on drop.
pub(super) struct HandoffSocket {
    _directory: Scratch,
    path: PathBuf,
}

impl HandoffSocket {
    /// Binds the socket in `directory`.
    ///
    /// Clients are served with the settings that `contained` returns; its argument counts the session.
    pub(super) fn open(
        directory: Scratch,
        around: &ProcessEnv,
        contained: impl Fn(Arc<()>) -> Contained + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let path = directory.temp().join(NAME);
        let listener = short(&path, |path| UnixListener::bind(path)).context("making a socket for pi")?;
        let (around, contained) = (around.clone(), Arc::new(contained));
        let places = Arc::new(());
        thread::Builder::new().name("handoff".to_owned()).spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else {
                    // Probably out of file descriptors; wait before trying again.
                    thread::sleep(Duration::from_millis(100));
                    continue;
                };
                if Arc::strong_count(&places) > MOST_SESSIONS {
                    continue;
                }
                let (around, contained, place) =
                    (around.clone(), Arc::clone(&contained), Arc::clone(&places));
                let serving = thread::Builder::new()
                    .name("client".to_owned())
                    .spawn(move || admit(&stream, around, contained(place)));
                // Without a thread the client sees its connection closed.
                drop(serving);
            }
        })?;
        Ok(Self { _directory: directory, path })
    }

    /// Returns the path of the socket.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// Serves a client, and tells it when that is over.
fn admit(stream: &UnixStream, around: ProcessEnv, contained: Contained) {
    // A client that sends anything else is disconnected.
    let Ok([input, output, errors, frames]) = descriptors(stream) else { return };
    let watched = (input.try_clone(), stream.try_clone());
    if let (Ok(input), Ok(stream)) = watched {
        // The process in the sandbox has died, so its client is gone.
        let watching = thread::Builder::new().name("client's end".to_owned()).spawn(move || {
            let mut nothing = [0];
            let _gone = (&stream).read(&mut nothing);
            let _closed = rustix::net::shutdown(&input, rustix::net::Shutdown::Both);
        });
        drop(watching);
    }
    let ends = Ends { input: input.into(), output: output.into(), frames: frames.into() };
    let status = match serve::serve(around, ends, Some(contained)) {
        Ok(()) => 0,
        Err(error) => {
            // Ignore errors: the client may have closed its end.
            let _told = writeln!(File::from(errors), "portcullis: {error:#}");
            1
        }
    };
    let mut stream = stream;
    let _told = stream.write_all(&[status]);
    let _shut = stream.shutdown(Shutdown::Both);
}

fn descriptors(stream: &UnixStream) -> anyhow::Result<[OwnedFd; DESCRIPTORS]> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(stream, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut received = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            received.extend(descriptors);
        }
    }
    stream.set_read_timeout(None)?;
    received.try_into().ok().context("other than four descriptors came")
}

/// Returns the path of the socket if this process runs in pi's sandbox.
pub(crate) fn socket_of_this_process() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).filter(|name| !name.is_empty()).map(PathBuf::from)
}

/// Passes the file descriptors of this process to the host, and exits when the host has finished with them.
pub(crate) fn hand_over(socket: &Path) -> anyhow::Result<u8> {
    let stream =
        short(socket, |socket| UnixStream::connect(socket)).context("reaching the host; it has ended")?;
    let side_channel = portcullis_sys::descriptor::copy_inherited(SIDE_CHANNEL)
        .context("opening descriptor 3 for the output of commands")?;
    let [input, output, errors] = standard_streams()?;
    let all = [input.as_fd(), output.as_fd(), errors.as_fd(), side_channel.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    ensure!(control.push(SendAncillaryMessage::ScmRights(&all)), "there is no room for the descriptors");
    sendmsg(&stream, &[IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL)
        .context("handing the descriptors over")?;
    let mut status = [0];
    let mut stream = stream;
    match stream.read_exact(&mut status) {
        Ok(()) => Ok(status[0]),
        Err(_) => bail!("the host has ended"),
    }
}

/// Runs `act` with a short path to the socket.
///
/// Socket addresses are limited to 107 bytes, and a home directory can have a longer path.
fn short<T>(path: &Path, act: impl FnOnce(&Path) -> std::io::Result<T>) -> std::io::Result<T> {
    use std::os::fd::AsRawFd as _;
    let directory = File::open(path.parent().unwrap_or(Path::new("/")))?;
    act(&Path::new(&format!("/proc/self/fd/{}", directory.as_raw_fd())).join(NAME))
}
