//! Arguments of `doctor`.

use std::path::PathBuf;

use clap::Args;

use super::config::SettingsChoice;

pub(crate) const DOCTOR_HELP: &str = "\
Tests each kernel mechanism in a separate process, then starts a sandbox in a temporary directory and attacks it. \
Shows the installed pi and extension, the settings files, and where each value comes from.
The exit status is 0 when every layer works, 3 when the sandbox works with fewer layers, 4 when commands are \
refused because there is no sandbox or a weaker one than the settings require, and 1 when an attack succeeded.

Examples:
  portcullis doctor
  portcullis doctor --json
  sudo portcullis doctor --write-apparmor /etc/apparmor.d/portcullis";

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// The settings.
    #[command(flatten)]
    pub place: SettingsChoice,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Only write an AppArmor profile that lets this program create user namespaces, `-` for standard output
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub write_apparmor: Option<PathBuf>,
}
