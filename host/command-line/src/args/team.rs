//! Arguments of `team`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

pub(crate) const TEAM_HELP: &str = "\
A team's bundle has settings that only tighten, presets, required packs and trusted publishers. It lies in a registry, \
signed by several keys. A member joins with `join`; `/etc/portcullis/team.toml` makes it mandatory on a machine. \
docs/teams.md has the whole story.

Examples:
  portcullis team join oci://ghcr.io/acme/team --root sha256:4f1c...
  portcullis team status
  portcullis team new ./team --team acme --key ann.pub --key bob.pub --threshold 2";

const JOIN_HELP: &str = "\
The digest of the root comes from the team, on another way than the registry: it decides which keys count. Nothing is \
kept if the bundle is refused.

Example:
  portcullis team join oci://ghcr.io/acme/team --root sha256:4f1c...";

const LEAVE_HELP: &str = "\
The settings, packs and trust of the bundle end. A team that the machine's file names cannot be left.

Example:
  portcullis team leave";

const STATUS_HELP: &str = "\
Shows what is in force, since when, and who signed it. The exit status is 1 if nothing is in force, if the bundle has \
expired, or if the last look for a newer one failed.

Examples:
  portcullis team status
  portcullis team status --json";

const UPDATE_HELP: &str = "\
Every session does this in the background when it starts. The exit status is 1 if the registry does not answer, or has \
a version that is refused; what is in force stays in force.

Examples:
  portcullis team update
  portcullis team update --json";

const REPORT_HELP: &str = "\
Writes the versions of this machine's program, bundle and packs to FILE, and a signature by the machine's key to \
FILE.sig, which `ssh-keygen -Y verify -n portcullis-report` checks. With --json, both are printed.

Examples:
  portcullis team report report.json
  portcullis team report --json";

const NEW_HELP: &str = "\
Makes a folder with the first root and a `bundle.toml` to edit. Keys are public keys of ssh, in files. Without \
--timestamp-key, the keys for bundles sign timestamps too.

Examples:
  portcullis team new ./team --team acme --key ann.pub --key bob.pub --threshold 2
  portcullis team new ./team --team acme --key ann.pub --timestamp-key ci.pub";

const SIGN_HELP: &str = "\
Signs what waits for this key: roots, the newest bundle, the timestamp. `ssh-keygen` makes the signatures, with a key \
in a file, in ssh-agent or on a hardware token.

Example:
  portcullis team sign ./team --key ~/.ssh/id_ed25519";

const PUBLISH_HELP: &str = "\
Makes the next version if the content of the folder has changed, signs it with --key, and publishes it once all \
signatures are there. If some are missing, it names the keys, and the exit status is 1. A timestamp is valid for 14 \
days, so this runs at least weekly with --refresh, for example in CI.

Examples:
  portcullis team publish ./team oci://ghcr.io/acme/team --key ~/.ssh/id_ed25519
  portcullis team publish ./team oci://ghcr.io/acme/team --refresh --key ci_key
  portcullis team publish ./team oci://ghcr.io/acme/team --renew --key ~/.ssh/id_ed25519";

const YANK_HELP: &str = "\
Makes a new version with the content of the newest good one before VERSION. Members go forward to it; none goes back. \
Then `team sign` and `team publish` as usual.

Example:
  portcullis team yank ./team 4 --reason 'blocks the build' --key ~/.ssh/id_ed25519";

const ROTATE_HELP: &str = "\
Makes the next root. The keys of the old root and of the new one must sign it. Without other options, only its expiry \
is later.

Examples:
  portcullis team rotate ./team --add carol.pub --remove SHA256:AbC...
  portcullis team rotate ./team --threshold 3";

const SAVE_HELP: &str = "\
Writes what is in force here, with its packs, into one file for machines without a network.

Example:
  portcullis team save team.tar";

const LOAD_HELP: &str = "\
Checks the file like a registry: it must have the root that this machine pins, and nothing older than what is in \
force.

Example:
  portcullis team load team.tar";

/// The verbs of teams.
#[derive(Debug, Subcommand)]
pub enum Team {
    /// Join a team: get its bundle, and follow it
    #[command(after_help = JOIN_HELP)]
    Join(Join),
    /// Leave the team
    #[command(after_help = LEAVE_HELP)]
    Leave(Shown),
    /// Show what the team requires here, and since when
    #[command(after_help = STATUS_HELP)]
    Status(Shown),
    /// Look for a newer bundle
    #[command(after_help = UPDATE_HELP)]
    Update(Update),
    /// Write a signed report of this machine's program, bundle and packs
    #[command(after_help = REPORT_HELP)]
    Report(Report),
    /// Make the folder of a new team
    #[command(after_help = NEW_HELP)]
    New(New),
    /// Sign the documents in a team's folder
    #[command(after_help = SIGN_HELP)]
    Sign(Sign),
    /// Publish the bundle of a team's folder
    #[command(after_help = PUBLISH_HELP)]
    Publish(Publish),
    /// Take a version of the bundle back
    #[command(after_help = YANK_HELP)]
    Yank(Yank),
    /// Change the keys of a team
    #[command(after_help = ROTATE_HELP)]
    Rotate(Rotate),
    /// Write the bundle in force into one file
    #[command(after_help = SAVE_HELP)]
    Save(Archive),
    /// Accept a bundle from a file that `save` wrote
    #[command(after_help = LOAD_HELP)]
    Load(Archive),
    /// Say whether pi may run without the sandbox; for the extension
    #[command(hide = true)]
    Unprotected,
}

/// Arguments of `team join`.
#[derive(Debug, Args)]
pub struct Join {
    /// The team's repository
    #[arg(value_name = "REGISTRY")]
    pub registry: String,
    /// The digest of the root, from the team
    #[arg(long, value_name = "DIGEST")]
    pub root: String,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `team leave` and `team status`.
#[derive(Debug, Args)]
pub struct Shown {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `team update`.
#[derive(Debug, Args)]
pub struct Update {
    /// Print nothing
    #[arg(long, hide = true)]
    pub background: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `team report`.
#[derive(Debug, Args)]
pub struct Report {
    /// The file to write
    #[arg(value_name = "FILE", required_unless_present = "json")]
    pub file: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `team new`.
#[derive(Debug, Args)]
pub struct New {
    /// The folder
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// The name of the team
    #[arg(long, value_name = "NAME")]
    pub team: String,
    /// A public key that may sign roots and bundles; may be given several times
    #[arg(long, value_name = "FILE", required = true)]
    pub key: Vec<PathBuf>,
    /// How many of these keys must sign
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub threshold: usize,
    /// A public key that may sign timestamps; may be given several times
    #[arg(long, value_name = "FILE")]
    pub timestamp_key: Vec<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `team sign`.
#[derive(Debug, Args)]
pub struct Sign {
    /// The team's folder
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// An SSH key: a private key with its FILE.pub, or a public key whose private key is in ssh-agent
    #[arg(long, value_name = "FILE", required = true)]
    pub key: Vec<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `team publish`.
#[derive(Debug, Args)]
pub struct Publish {
    /// The team's folder
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// The team's repository
    #[arg(value_name = "REGISTRY")]
    pub registry: String,
    /// An SSH key, as for `sign`
    #[arg(long, value_name = "FILE")]
    pub key: Vec<PathBuf>,
    /// Make a new timestamp, also without a new bundle
    #[arg(long)]
    pub refresh: bool,
    /// Make a new version, also without a change, so that it expires later
    #[arg(long)]
    pub renew: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `team yank`.
#[derive(Debug, Args)]
pub struct Yank {
    /// The team's folder
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// The version that is bad
    #[arg(value_name = "VERSION")]
    pub version: u64,
    /// The reason, which members see
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// An SSH key, as for `sign`
    #[arg(long, value_name = "FILE")]
    pub key: Vec<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `team rotate`.
#[derive(Debug, Args)]
pub struct Rotate {
    /// The team's folder
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// A public key to add for roots and bundles
    #[arg(long, value_name = "FILE")]
    pub add: Vec<PathBuf>,
    /// A public key to add for timestamps only
    #[arg(long, value_name = "FILE")]
    pub add_timestamp: Vec<PathBuf>,
    /// The fingerprint of a key to remove
    #[arg(long, value_name = "SHA256:...")]
    pub remove: Vec<String>,
    /// How many keys must sign roots and bundles
    #[arg(long, value_name = "N")]
    pub threshold: Option<usize>,
    /// An SSH key, as for `sign`
    #[arg(long, value_name = "FILE")]
    pub key: Vec<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `team save` and `team load`.
#[derive(Debug, Args)]
pub struct Archive {
    /// The archive
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
