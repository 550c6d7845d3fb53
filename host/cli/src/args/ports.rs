//! Arguments of `ports`.

use clap::Subcommand;

pub(crate) const PORTS_HELP: &str = "\
Commands have a network of their own: a server that one starts is not seen from outside until its port is opened.
It is opened to this machine only, and closed with the session.

Examples:
  portcullis ports list
  portcullis ports open 3f2a:8000             at 127.0.0.1:8000
  portcullis ports open 3f2a:8000 --at 9000   at 127.0.0.1:9000
  portcullis ports close 3f2a:8000";

#[derive(Debug, Subcommand)]
pub(crate) enum Ports {
    /// Show on which ports the commands of running sessions listen
    #[command(after_help = "Example:\n  portcullis ports list")]
    List {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Open one to this machine
    #[command(
        after_help = "Examples:\n  portcullis ports open 3f2a:8000\n  portcullis ports open 3f2a:8000 --at 9000"
    )]
    Open {
        /// SESSION:PORT, as `ports list` shows it
        #[arg(value_name = "PORT")]
        id: String,
        /// The port of this machine; the same by default, 0 for any that is free
        #[arg(long, value_name = "PORT")]
        at: Option<u16>,
    },
    /// Close one again
    #[command(after_help = "Example:\n  portcullis ports close 3f2a:8000")]
    Close {
        /// SESSION:PORT, as `ports list` shows it
        #[arg(value_name = "PORT")]
        id: String,
    },
}
