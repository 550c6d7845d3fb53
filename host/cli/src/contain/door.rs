//! The way from pi's extension in the sandbox to the host outside.
//!
//! In there the extension starts `portcullis serve` as everywhere else. That process finds the door's name in its
//! environment, hands its four descriptors through it, and waits until the host out here is done with them. Only pi's
//! sandbox has the door: it lies in a directory that is read-only in there and hidden from the agent's commands.

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
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

use crate::exit::Exit;
use crate::scratch::Scratch;
use crate::serve::{self, Contained, Ends};
use crate::surroundings::Surroundings;

/// Names the door to what runs behind it.
pub(super) const VARIABLE: &str = "PORTCULLIS_DOOR";
/// The name of the socket.
const NAME: &str = "door";
/// Standard input, output and error, and the side channel.
const DESCRIPTORS: usize = 4;
/// The last of them.
const SIDE_CHANNEL: i32 = 3;
/// Sessions at once, those of sub-agents among them. Whoever opens more in there has no use for them.
const MOST_SESSIONS: usize = 32;
/// Whoever does not hand its descriptors over within this time does not keep others waiting.
const PATIENCE: Duration = Duration::from_secs(5);

/// A door; it is shut with the value.
pub(super) struct Door {
    _threshold: Scratch,
    path: PathBuf,
}

impl Door {
    /// Opens one in the directory of `threshold`; what comes through it is served as `contained` says, which gets what
    /// the session is counted by.
    pub(super) fn open(
        threshold: Scratch,
        around: &Surroundings,
        contained: impl Fn(Arc<()>) -> Contained + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let path = threshold.temp().join(NAME);
        let listener = short(&path, |path| UnixListener::bind(path)).context("opening a door for pi")?;
        let (around, contained) = (around.clone(), Arc::new(contained));
        let places = Arc::new(());
        thread::Builder::new().name("door".to_owned()).spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else {
                    // Out of descriptors, perhaps: trying at once again would change nothing.
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
                // Without a thread the client sees its end closed.
                drop(serving);
            }
        })?;
        Ok(Self { _threshold: threshold, path })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// Serves whoever has come, and says when that is over.
fn admit(stream: &UnixStream, around: Surroundings, contained: Contained) {
    // Whoever hands over something else is gone with its descriptors.
    let Ok([input, output, errors, frames]) = descriptors(stream) else { return };
    let watched = (input.try_clone(), stream.try_clone());
    if let (Ok(input), Ok(stream)) = watched {
        // Who waits at the door has died: its client goes with it.
        let watching = thread::Builder::new().name("client's end".to_owned()).spawn(move || {
            let mut nothing = [0];
            let _gone = (&stream).read(&mut nothing);
            let _closed = rustix::net::shutdown(&input, rustix::net::Shutdown::Both);
        });
        drop(watching);
    }
    let ends = Ends { input: input.into(), output: output.into(), frames: frames.into() };
    let status = match serve::serve(around, ends, Some(contained)) {
        Ok(_) => 0,
        Err(error) => {
            // Whoever does not listen has said goodbye.
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

/// The door that this process lives behind, if it does.
pub(crate) fn door_of_this_process() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).filter(|name| !name.is_empty()).map(PathBuf::from)
}

/// Hands the descriptors of this process to the host behind the door, and ends when it is done with them.
pub(crate) fn knock(door: &Path) -> crate::Outcome {
    let stream = short(door, |door| UnixStream::connect(door)).context("reaching the host; it has ended")?;
    let side_channel = portcullis_sys::descriptor::copy_inherited(SIDE_CHANNEL)
        .context("opening descriptor 3 for the output of commands")?;
    let [input, output, errors] = super::standard_streams()?;
    let all = [input.as_fd(), output.as_fd(), errors.as_fd(), side_channel.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    ensure!(control.push(SendAncillaryMessage::ScmRights(&all)), "there is no room for the descriptors");
    sendmsg(&stream, &[IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL)
        .context("handing the descriptors over")?;
    let mut status = [0];
    let mut stream = stream;
    match stream.read_exact(&mut status) {
        Ok(()) => Ok(Exit::Command(status[0])),
        Err(_) => bail!("the host has ended"),
    }
}

/// The path of a socket has room for 107 bytes only, and a home directory may be longer.
fn short<T>(path: &Path, act: impl FnOnce(&Path) -> std::io::Result<T>) -> std::io::Result<T> {
    use std::os::fd::AsRawFd as _;
    let directory = File::open(path.parent().unwrap_or(Path::new("/")))?;
    act(&Path::new(&format!("/proc/self/fd/{}", directory.as_raw_fd())).join(NAME))
}
