//! What the host and the process that compiles say to one another: JSON with a length before it, then raw bytes.

use std::io::{self, Read, Write};
use std::time::Duration;

use portcullis_decision::PolicyError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::cache::Start;
use crate::compile::worker::{Artifact, Made};
use crate::error::{ConfigurationFault, LoadError};
use crate::limits::{self, CompileLimits, Limits};
use crate::policy::Description;
use crate::state::LogLine;
use crate::track::Surface;
use crate::v0_1;

/// Largest JSON text of one message: a configuration of 1 MiB or a description of 4 MiB, with all its characters
/// escaped.
const MESSAGE: usize = 32 << 20;

/// The first message to the process; the bytes of the component follow.
#[derive(Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) decision_time: Duration,
    pub(super) setup_time: Duration,
    pub(super) configure_time: Duration,
    pub(super) memory: usize,
    pub(super) compile: CompileLimits,
}

impl From<Limits> for Order {
    fn from(limits: Limits) -> Self {
        let Limits { decision_time, setup_time, configure_time, memory, compile } = limits;
        Self { decision_time, setup_time, configure_time, memory, compile }
    }
}

impl From<Order> for Limits {
    fn from(order: Order) -> Self {
        let Order { decision_time, setup_time, configure_time, memory, compile } = order;
        Self { decision_time, setup_time, configure_time, memory, compile }
    }
}

/// Something to do with the component.
#[derive(Serialize, Deserialize)]
pub(super) enum Job {
    Surface,
    Describe,
    Make { configuration: String },
}

/// What came of a job.
pub(super) enum Done {
    Surface(Surface),
    Description(Description),
    Made(Made),
}

/// [`Done`] or [`Fault`] on its way; the machine code of `Made` follows as raw bytes.
#[derive(Serialize, Deserialize)]
pub(super) enum Answer {
    Surface(Surface),
    Description(Description),
    Made { start: Start, log: Vec<LogLine> },
    Fault(Fault),
}

/// Why a job was not done.
#[derive(Serialize, Deserialize)]
pub(super) enum Fault {
    /// It does not compile.
    Compile(String),
    /// It is no policy, or wants what it does not get.
    Surface(Surface),
    /// An export has another type than the contract says.
    Contract(String),
    /// It could not be run.
    Call { call: String, source: PolicyError },
    /// It refuses its configuration.
    Configuration(Vec<ConfigurationFault>),
    /// Something else failed.
    Other(String),
}

impl Fault {
    pub(super) fn into_error(self) -> LoadError {
        match self {
            Self::Compile(said) => LoadError::Compile { source: wasmtime::Error::msg(said) },
            Self::Surface(surface) => surface.check().err().unwrap_or_else(|| LoadError::Compiler {
                detail: "refused a component that is a policy".to_owned(),
            }),
            Self::Contract(said) => {
                LoadError::Contract { track: v0_1::TRACK, source: wasmtime::Error::msg(said) }
            }
            Self::Call { call, source } => {
                let call = if call == "configure" { "configure" } else { "describe" };
                LoadError::Call { call, source }
            }
            Self::Configuration(errors) => LoadError::Configuration { errors },
            Self::Other(detail) => LoadError::Compiler { detail },
        }
    }
}

impl From<LoadError> for Fault {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Compile { source } => Self::Compile(format!("{source:#}")),
            LoadError::Contract { source, .. } => Self::Contract(format!("{source:#}")),
            LoadError::Call { call, source } => Self::Call { call: call.to_owned(), source },
            LoadError::Configuration { errors } => Self::Configuration(errors),
            error @ (LoadError::Read { .. }
            | LoadError::Size { .. }
            | LoadError::CoreModule
            | LoadError::NotWebAssembly
            | LoadError::CompileLimit { .. }
            | LoadError::Compiler { .. }
            | LoadError::MissingExports { .. }
            | LoadError::UnknownTrack { .. }
            | LoadError::Imports { .. }
            | LoadError::Cache { .. }
            | LoadError::Engine { .. }) => Self::Other(error.to_string()),
        }
    }
}

/// Says what came of a job.
pub(super) fn send_answer(to: &mut impl Write, answer: Result<Done, Fault>) -> io::Result<()> {
    let (answer, code) = match answer {
        Ok(Done::Surface(surface)) => (Answer::Surface(surface), None),
        Ok(Done::Description(description)) => (Answer::Description(description), None),
        Ok(Done::Made(Made { code, start, log })) => (Answer::Made { start, log }, Some(code)),
        Err(fault) => (Answer::Fault(fault), None),
    };
    send(to, &answer)?;
    if let Some(code) = code {
        send_bytes(to, code.bytes())?;
    }
    to.flush()
}

/// Reads what came of a job.
pub(super) fn receive_answer(from: &mut impl Read) -> io::Result<Result<Done, Fault>> {
    Ok(match receive(from)? {
        Answer::Surface(surface) => Ok(Done::Surface(surface)),
        Answer::Description(description) => Ok(Done::Description(description)),
        Answer::Made { start, log } => {
            let code = Artifact::from_compiler(receive_bytes(from, limits::ARTIFACT)?);
            Ok(Done::Made(Made { code, start, log }))
        }
        Answer::Fault(fault) => Err(fault),
    })
}

pub(super) fn send(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    send_bytes(to, &serde_json::to_vec(message)?)
}

pub(super) fn receive<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<T> {
    Ok(serde_json::from_slice(&receive_bytes(from, MESSAGE)?)?)
}

pub(super) fn send_bytes(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(&(bytes.len() as u64).to_le_bytes())?;
    to.write_all(bytes)
}

/// Reads bytes with their length before them. Memory is taken as they arrive, not as they are announced.
pub(super) fn receive_bytes(from: &mut impl Read, limit: usize) -> io::Result<Vec<u8>> {
    let mut length = [0; 8];
    from.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > limit as u64 {
        let said = format!("a message of {length} bytes, and at most {limit} are taken");
        return Err(io::Error::new(io::ErrorKind::InvalidData, said));
    }
    let mut bytes = Vec::new();
    from.take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == length { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_arrive_as_they_were_sent() {
        let mut sent = Vec::new();
        send_bytes(&mut sent, b"first").unwrap();
        send_bytes(&mut sent, b"").unwrap();
        let mut pipe = sent.as_slice();
        assert_eq!(receive_bytes(&mut pipe, 5).unwrap(), b"first");
        assert_eq!(receive_bytes(&mut pipe, 5).unwrap(), b"");
        assert_eq!(receive_bytes(&mut pipe, 5).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn no_more_is_taken_than_the_limit() {
        let announced = (1_u64 << 60).to_le_bytes();
        let refused = receive_bytes(&mut announced.as_slice(), 5).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidData, "{refused}");
        let mut cut = 4_u64.to_le_bytes().to_vec();
        cut.extend(b"abc");
        assert_eq!(receive_bytes(&mut cut.as_slice(), 5).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn errors_survive_the_way() {
        for error in [
            LoadError::Compile { source: wasmtime::Error::msg("bad").context("worse") },
            LoadError::Contract { track: "0.1", source: wasmtime::Error::msg("type mismatch") },
            LoadError::Call { call: "configure", source: PolicyError::TimeLimit { limit_ms: 7 } },
            LoadError::Configuration {
                errors: vec![ConfigurationFault { pointer: "/a".to_owned(), message: "no".to_owned() }],
            },
        ] {
            let said = error.to_string();
            let mut pipe = Vec::new();
            send_answer(&mut pipe, Err(error.into())).unwrap();
            let fault = receive_answer(&mut pipe.as_slice()).unwrap().err().unwrap();
            assert_eq!(fault.into_error().to_string(), said);
        }
        let surface = Surface { imports: vec!["evil:host/run".to_owned()], exports: Vec::new() };
        let said = surface.check().unwrap_err().to_string();
        assert_eq!(Fault::Surface(surface).into_error().to_string(), said);
    }
}
