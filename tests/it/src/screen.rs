//! pi's terminal user interface, under tmux.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

use crate::{Deadline, Launch, processes};

const WIDTH: &str = "110";
const HEIGHT: &str = "40";
// tmux 3.3 sometimes misses that a pane's process has ended, so a shell writes the exit code to a file.
const NOTING_THE_END: &str = "code=$1; shift; \"$@\"; echo $? > \"$code.new\" && mv \"$code.new\" \"$code\"";
// The pane stays when pi ends, so that its last output and its exit code can be read; programs may copy to the
// clipboard, as in many terminals.
const SETTINGS: &str = "set -g remain-on-exit on\nset -s set-clipboard on\nset -g default-terminal tmux-256color\nset -g status off\n";

/// A terminal with a running pi; both end when this is dropped.
#[derive(Debug)]
pub struct Screen {
    socket: PathBuf,
    exit_code: PathBuf,
    bells: PathBuf,
    log: PathBuf,
}

impl Screen {
    pub(crate) fn start(launch: Launch<'_>) -> anyhow::Result<Self> {
        let settings = launch.scene.at("tmux.conf");
        let bells = launch.scene.at("bells");
        let counting = format!(
            "set -g bell-action any\nset-hook -g alert-bell 'run-shell \"echo >> {}\"'\n",
            bells.display()
        );
        launch.scene.write(&settings, &format!("{SETTINGS}{counting}"))?;
        let (socket, exit_code) = (launch.scene.at("tmux"), launch.scene.at("exit-code"));
        let screen = Self { socket, exit_code, bells, log: launch.log.clone() };
        let mut tmux = screen.tmux();
        tmux.arg("-f").arg(settings).args(["new-session", "-d", "-x", WIDTH, "-y", HEIGHT]);
        tmux.arg("-c").arg(launch.scene.project()).arg("--");
        tmux.args(["/bin/sh", "-c", NOTING_THE_END, "sh"])
            .arg(&screen.exit_code)
            .args(launch.command_line()?);
        succeed(&mut tmux)?;
        Ok(screen)
    }

    /// Returns the terminal's device.
    ///
    /// # Errors
    ///
    /// If tmux has ended.
    pub fn terminal(&self) -> anyhow::Result<PathBuf> {
        let output = succeed(self.tmux().args(["display-message", "-p", "#{pane_tty}"]))?;
        Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
    }

    /// Returns the text that programs have copied to the terminal's clipboard, if any.
    #[must_use]
    pub fn clipboard(&self) -> Option<String> {
        // tmux fails if there is none.
        let output = succeed(self.tmux().arg("show-buffer")).ok()?;
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Returns the text on the terminal, without trailing spaces.
    ///
    /// # Errors
    ///
    /// If tmux has ended.
    pub fn text(&self) -> anyhow::Result<String> {
        let output = succeed(self.tmux().args(["capture-pane", "-p"]))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n"))
    }

    /// Waits until the terminal shows `wanted`; returns its whole text.
    ///
    /// # Errors
    ///
    /// If it does not in time; the error contains the text instead.
    pub fn wait_for(&self, wanted: &str) -> anyhow::Result<String> {
        self.wait(&format!("`{wanted}` on the screen"), |text| text.contains(wanted))
    }

    /// Waits until the terminal no longer shows `unwanted`.
    ///
    /// # Errors
    ///
    /// If it still does at the deadline.
    pub fn wait_gone(&self, unwanted: &str) -> anyhow::Result<String> {
        self.wait(&format!("`{unwanted}` to leave the screen"), |text| !text.contains(unwanted))
    }

    /// Waits until `right` accepts the text on the terminal.
    ///
    /// # Errors
    ///
    /// If it does not in time; the error contains the text.
    pub fn wait(&self, what: &str, right: impl Fn(&str) -> bool) -> anyhow::Result<String> {
        let mut last = String::new();
        let found = Deadline::start().until(what, || {
            last = self.text()?;
            Ok(right(&last).then(|| last.clone()))
        });
        found.with_context(|| format!("the screen shows:\n{last}"))
    }

    /// Waits until the terminal has rung its bell at least this often.
    ///
    /// # Errors
    ///
    /// If it does not in time.
    pub fn wait_rung(&self, times: usize) -> anyhow::Result<()> {
        let rung = || fs::read_to_string(&self.bells).unwrap_or_default().lines().count();
        Deadline::start().until("the terminal's bell", || Ok((rung() >= times).then_some(())))
    }

    /// Types `text` and, once it is on the screen, presses Enter.
    ///
    /// # Errors
    ///
    /// When the text does not appear.
    pub fn enter(&self, text: &str) -> anyhow::Result<()> {
        succeed(self.tmux().args(["send-keys", "-l", "--", text]))?;
        self.wait_for(text)?;
        self.press("Enter")
    }

    /// Presses a key by its tmux name: `Enter`, `Escape`, `Down`, `C-d`.
    ///
    /// # Errors
    ///
    /// When tmux is gone.
    pub fn press(&self, key: &str) -> anyhow::Result<()> {
        succeed(self.tmux().args(["send-keys", key])).map(drop)
    }

    /// Presses a key after the delay in which a question ignores keys.
    ///
    /// # Errors
    ///
    /// If tmux has ended.
    pub fn press_calmly(&self, key: &str) -> anyhow::Result<()> {
        /// Longer than the extension's own delay, whose end is not visible here.
        const QUIET: Duration = Duration::from_millis(800);
        std::thread::sleep(QUIET);
        self.press(key)
    }

    /// Resizes the terminal.
    ///
    /// # Errors
    ///
    /// If tmux has ended.
    pub fn resize(&self, width: u32, height: u32) -> anyhow::Result<()> {
        let (width, height) = (width.to_string(), height.to_string());
        succeed(self.tmux().args(["resize-window", "-x", &width, "-y", &height])).map(drop)
    }

    /// Runs a command of tmux itself, and returns its output.
    ///
    /// # Errors
    ///
    /// If tmux refuses it.
    pub fn ask_tmux(&self, words: &[&str]) -> anyhow::Result<String> {
        let output = succeed(self.tmux().args(words))?;
        Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    }

    /// Presses Ctrl-D until pi has ended; returns its exit code.
    ///
    /// pi accepts the key only while it is idle and nothing is typed, and does not show when that is.
    ///
    /// # Errors
    ///
    /// If it does not end in time.
    pub fn quit(&self) -> anyhow::Result<i32> {
        const BETWEEN_KEYS: Duration = Duration::from_millis(500);
        let ended = Deadline::start().until("the end of pi", || {
            self.press("C-d")?;
            Ok(Deadline::after(BETWEEN_KEYS).until("the end of pi", || self.status()).ok())
        });
        let shown = self.text().unwrap_or_default();
        ended.with_context(|| format!("the screen shows:\n{shown}"))
    }

    /// Returns the exit code if pi has ended.
    fn status(&self) -> anyhow::Result<Option<i32>> {
        if !self.exit_code.exists() {
            return Ok(None);
        }
        let code = fs::read_to_string(&self.exit_code)?;
        code.trim().parse().map(Some).with_context(|| format!("`{code}` is no exit code"))
    }

    /// Returns the requests that the model has received so far.
    ///
    /// # Errors
    ///
    /// If the log contains something else.
    pub fn requests(&self) -> anyhow::Result<Vec<Value>> {
        Launch::requests(&self.log)
    }

    fn tmux(&self) -> Command {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&self.socket).env_remove("TMUX").env("LC_ALL", "C.UTF-8");
        command
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // tmux hangs up on the pane's process group; if that has ended there is nothing to do.
        drop(self.tmux().arg("kill-server").output());
        if let Some(root) = self.socket.parent() {
            processes::await_end_of_scene(root);
        }
    }
}

fn succeed(command: &mut Command) -> anyhow::Result<Output> {
    let output = match command.output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            bail!("`tmux` is missing; install it (Debian: `apt-get install tmux`)")
        }
        other => other.context("running tmux")?,
    };
    let arguments = command.get_args().collect::<Vec<&OsStr>>();
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "tmux {arguments:?} failed: {complaint}");
    Ok(output)
}
