//! `portcullis serve`: the host's end of the protocol.
//!
//! Each request runs on a thread of its own, because it may wait for the user or for a command.

mod agent_text;
mod asking;
#[cfg(target_os = "linux")]
mod branch;
#[cfg(not(target_os = "linux"))]
#[path = "branch/unsupported.rs"]
mod branch;
#[cfg(target_os = "linux")]
mod changes;
#[cfg(not(target_os = "linux"))]
#[path = "changes/unsupported.rs"]
mod changes;
mod commands;
mod contained;
mod contained_client;
mod decide;
mod dispatch;
mod files;
mod handles;
mod hello;
mod host;
mod image;
mod menu;
mod own_branch;
mod reading;
mod reload;
mod request_quota;
mod reserve;
mod search_format;
mod searches;
mod settings_watch;
mod status;
mod system_prompt;
mod taken_over;
mod workers;

use std::fs::File;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use anyhow::Context as _;
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_bootstrap::streams;
use portcullis_rpc::connection;

use crate::serve::host::Host;
use crate::serve::reading::Reading;

pub use crate::serve::asking::params as ask_params;
pub(crate) use crate::serve::contained_client::Contained;
#[cfg(test)]
pub(crate) use crate::serve::menu::wire as menu_screen;
#[cfg(target_os = "linux")]
pub(crate) use crate::serve::settings_watch::{Follow, LOOK_EVERY, Watch};

/// The file descriptor for raw output.
const SIDE_CHANNEL: i32 = 3;

/// The connection to a client.
#[derive(Debug)]
pub(crate) struct Ends {
    /// Messages from the client.
    pub(crate) input: File,
    /// Messages to the client.
    pub(crate) output: File,
    /// The output of commands.
    pub(crate) frames: File,
}

/// Serves the client that started this process, until it disconnects.
pub(crate) fn standard_streams() -> anyhow::Result<()> {
    let around = ProcessEnv::read()?;
    around.ensure_outside()?;
    let frames = side_channel().context(
        "opening descriptor 3 for the output of commands; `serve` is started by the pi extension, not by hand",
    )?;
    let input = std::io::stdin().as_fd().try_clone_to_owned().context("opening standard input")?;
    let output = streams::output().as_fd().try_clone_to_owned().context("opening standard output")?;
    serve(around, Ends { input: input.into(), output: output.into(), frames }, None)
}

/// Serves one client until it disconnects. `contained` holds the facts about a client in a sandbox.
pub(crate) fn serve(around: ProcessEnv, ends: Ends, contained: Option<Contained>) -> anyhow::Result<()> {
    let (receiver, sender) = connection(ends.input, ends.output);
    let closing = Closing(Arc::new(Host::new(around, sender, ends.frames, contained)));
    let host = &closing.0;
    let (over, ended) = sync_channel(1);
    let (first, reading) = (Arc::clone(host), Reading { receiver, over });
    host.workers.start(move || first.read_on(reading)).context("starting a thread to read messages")?;
    ended.recv().context("the thread that reads messages has failed")?
}

/// Closes its host on drop, however serving ends: no waiting request may keep the session alive.
struct Closing(Arc<Host>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Returns a copy of the side channel; no child process may inherit the original.
#[cfg(target_os = "linux")]
fn side_channel() -> std::io::Result<File> {
    let copy = portcullis_sys::descriptor::copy_inherited(SIDE_CHANNEL)?;
    portcullis_sys::descriptor::close_on_exec_from(SIDE_CHANNEL.cast_unsigned())?;
    Ok(File::from(copy))
}

/// Returns a copy of the side channel; no child process may inherit the original.
#[cfg(not(target_os = "linux"))]
fn side_channel() -> std::io::Result<File> {
    portcullis_sys::inherited::take(SIDE_CHANNEL).map(File::from)
}
