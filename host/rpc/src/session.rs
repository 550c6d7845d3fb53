//! The handshake, the status and the end of a session.

use crate::{AbsolutePath, Text, wire_structs, wire_words};

/// The version of this protocol. Client and host must have the same version.
pub const PROTOCOL_VERSION: u32 = 1;

wire_structs! {
    /// The first request of a client; the host answers no other before it.
    pub struct HelloParams {
        /// The protocol version of the client.
        pub protocol: u32,
        /// The client itself.
        pub client: Program,
        /// The version of pi the client runs in.
        pub pi_version: Text,
        /// The mode of pi.
        pub mode: RunMode,
        /// True where a person can answer an `ask`.
        pub interactive: bool,
        /// The directory pi was started in.
        pub cwd: AbsolutePath,
        /// pi's own directory, usually `~/.pi/agent`.
        pub agent_dir: AbsolutePath,
        /// pi's name for the session, where it has one.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub session_id: Option<Text>,
        /// The file pi keeps the session in; absent when it keeps none.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub session_file: Option<AbsolutePath>,
        /// True if the user trusts the project; absent, which means false, if pi does not know trust.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub project_trusted: Option<bool>,
        /// The user's choice for this session, which overrides the settings; absent if there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub sandbox: Option<Switch>,
    }

    /// A program and its version.
    pub struct Program {
        /// The name, such as `portcullis-pi`.
        pub name: Text,
        /// The version, such as `0.1.0`.
        pub version: Text,
    }

    /// The answer to a `hello` that was accepted.
    pub struct HelloResponse {
        /// The protocol version of the host.
        pub protocol: u32,
        /// The host itself.
        pub host: Program,
        /// The state the session starts in.
        pub status: StatusResponse,
    }

    /// The state for the footer, `/sandbox` and the model.
    pub struct StatusResponse {
        /// The state of the sandbox.
        pub state: SandboxState,
        /// Number of domains that can be reached without a question.
        pub domains: u32,
        /// A summary of the paths and hosts that need no question; empty unless enabled.
        pub summary: String,
        /// Number of paths that can be written without a question.
        pub write_paths: u32,
        /// Number of questions that wait for an answer.
        pub waiting: u32,
        /// True if agents reserve paths here, so that the client offers the tool for it.
        pub reservations: bool,
        /// True if `escalate` asks; otherwise it is refused.
        pub escalation: bool,
        /// True if the client itself is in a sandbox, and questions are asked outside of it.
        pub contained: bool,
        /// The missing layers of the sandbox, in a few words; absent if it is complete.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub reduced: Option<String>,
        /// A few lines for the model on what it may do here; empty for none.
        pub brief: String,
        /// Anything the user should know, such as a confinement that is only partial.
        pub warnings: Vec<String>,
    }

    /// No parameters, or nothing to answer.
    pub struct Empty {}
}

wire_words! {
    /// The mode of pi.
    pub enum RunMode {
        /// The terminal interface.
        Tui,
        /// Driven by another program that can show questions.
        Rpc,
        /// One run with events on stdout.
        Json,
        /// One run with the answer on stdout.
        Print,
    }

    /// The sandbox for one session.
    pub enum Switch {
        /// In force.
        On,
        /// Not in force: the client lets its tools run as they are.
        Off,
    }

    /// The state of the sandbox.
    pub enum SandboxState {
        /// Every rule is in force.
        Enabled,
        /// The user's settings switched the sandbox off; tools run as pi runs them.
        Disabled,
        /// Every tool is blocked, because the settings or a policy could not be read.
        Closed,
    }
}
