//! An action to decide about, and the settings and policies that decide.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use portcullis_decision::pattern::HostName;
use portcullis_decision::request::Endpoint;
use serde_json::{Map, Value};

/// Where settings and policies come from.
#[derive(Debug, Clone, Args)]
pub struct Sources {
    /// The project directory; the current one by default
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
    /// Use this settings file instead of your own; it may be a plain sandbox-runtime file
    #[arg(long, value_name = "FILE")]
    pub settings: Option<PathBuf>,
    /// Use this policy (a component, or a text in Cedar or Rego) instead of the configured ones, including the default;
    /// may be given several times
    #[arg(long = "policy", value_name = "FILE")]
    pub policies: Vec<PathBuf>,
}

/// What the agent would do.
#[derive(Debug, Clone, Subcommand)]
#[expect(
    missing_docs,
    reason = "a comment on a field is printed as help, and the help of the action has it already"
)]
pub enum Action {
    /// Read a file
    Read { path: String },
    /// Create or replace a file
    Write { path: String },
    /// Change parts of a file
    Edit { path: String },
    /// List a directory
    List { path: String },
    /// Search below a directory
    Search { path: String },
    /// Run a shell script
    Exec { script: String },
    /// Connect to a host
    Connect {
        #[arg(value_name = "HOST:PORT", value_parser = target)]
        target: Target,
    },
    /// Call a tool
    Tool {
        name: String,
        #[arg(value_name = "JSON", value_parser = object)]
        input: Map<String, Value>,
    },
}

/// A host and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The name or address.
    pub host: Endpoint,
    /// The port, which is not zero.
    pub port: u16,
}

fn target(text: &str) -> Result<Target, String> {
    let (host, port) = text.rsplit_once(':').ok_or("there is no port; write HOST:PORT")?;
    let port =
        port.parse().ok().filter(|port| *port != 0).ok_or("the port is not a number from 1 to 65535")?;
    Ok(Target { host: HostName::parse(host).map_err(|error| error.to_string())?, port })
}

fn object(text: &str) -> Result<Map<String, Value>, String> {
    portcullis_rpc::object(text.as_bytes()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets() {
        for (text, good) in [
            ("a.test:443", true),
            ("[::1]:80", true),
            ("a.test", false),
            ("a.test:0", false),
            ("a@b:1", false),
        ] {
            assert_eq!(target(text).is_ok(), good, "{text}");
        }
    }

    #[test]
    fn tool_inputs() {
        for (text, good) in
            [("{}", true), ("{\"a\":1}", true), ("[]", false), ("{", false), ("{\"a\":1,\"a\":2}", false)]
        {
            assert_eq!(object(text).is_ok(), good, "{text}");
        }
    }
}
