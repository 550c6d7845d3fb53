//! Arguments of `ports`.

use clap::Subcommand;

pub(crate) const PORTS_HELP: &str = "\
Commands have a network of their own: you can reach a server that a command starts only after you open its port.
A port is opened to this machine only, and closes when the session ends.

Examples:
  portcullis ports list
  portcullis ports open 3f2a:8000             at 127.0.0.1:8000
  portcullis ports open 3f2a:8000 --at 9000   at 127.0.0.1:9000
  portcullis ports close 3f2a:8000";

/// The verbs of `ports`.
#[derive(Debug, Subcommand)]
pub enum Ports {
    /// Show the ports on which commands of running sessions listen
    #[command(after_help = "Example:\n  portcullis ports list")]
    List {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Open a port to this machine
    #[command(
        after_help = "Examples:\n  portcullis ports open 3f2a:8000\n  portcullis ports open 3f2a:8000 --at 9000"
    )]
    Open {
        /// SESSION:PORT, as `ports list` shows it
        #[arg(value_name = "PORT")]
        id: String,
        /// The port on this machine; by default the same number, 0 for any free port
        #[arg(long, value_name = "PORT")]
        at: Option<u16>,
    },
    /// Close a port
    #[command(after_help = "Example:\n  portcullis ports close 3f2a:8000")]
    Close {
        /// SESSION:PORT, as `ports list` shows it
        #[arg(value_name = "PORT")]
        id: String,
    },
}
