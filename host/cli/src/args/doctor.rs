//! Arguments of `doctor`.

use std::path::PathBuf;

use clap::Args;

use super::config::SettingsChoice;

pub(crate) const DOCTOR_HELP: &str = "\
Every mechanism is tried in a process that is thrown away, then a sandbox is started in a temporary directory \
and attacked: what an attack reaches without the sandbox it must not reach inside.
The exit status is 0 when everything is there, 3 when the sandbox works but is less than it can be, 4 when \
commands are refused, because there is no sandbox or less than the settings require, 1 when an attack came through.

Examples:
  portcullis doctor
  portcullis doctor --json
  sudo portcullis doctor --write-apparmor /etc/apparmor.d/portcullis";

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) place: SettingsChoice,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Only write an AppArmor profile that lets this program make user namespaces, `-` for standard output
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) write_apparmor: Option<PathBuf>,
}
