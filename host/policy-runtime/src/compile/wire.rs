//! The protocol between the host and the compiler process: length-prefixed JSON, then raw bytes.

use std::io::{self, Read, Write};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::compile::job::{Artifact, Job};
use crate::error::LoadError;
use crate::limits::{self, CompileLimits, Limits};

/// Largest JSON text of one message: a configuration of 1 MiB with every character escaped.
const MESSAGE: usize = 8 << 20;

/// The first message to the process. The bytes of the component follow.
#[derive(Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) decision_time: Duration,
    pub(super) setup_time: Duration,
    pub(super) configure_time: Duration,
    pub(super) memory: usize,
    pub(super) compile: CompileLimits,
    pub(super) job: Job,
}

impl Order {
    pub(super) fn new(limits: Limits, job: Job) -> Self {
        let Limits { decision_time, setup_time, configure_time, memory, compile } = limits;
        Self { decision_time, setup_time, configure_time, memory, compile, job }
    }

    #[cfg(feature = "compiler")]
    pub(super) fn limits(&self) -> Limits {
        let Self { decision_time, setup_time, configure_time, memory, compile, .. } = *self;
        Limits { decision_time, setup_time, configure_time, memory, compile }
    }
}

/// The answer of the process. After [`CompilerReply::Code`] the machine code follows as raw bytes.
#[derive(Serialize, Deserialize)]
enum CompilerReply {
    Code,
    Fault(String),
}

/// Sends the machine code, or the error.
#[cfg(feature = "compiler")]
pub(super) fn send_answer(to: &mut impl Write, answer: Result<Artifact, LoadError>) -> io::Result<()> {
    match answer {
        Ok(code) => {
            send(to, &CompilerReply::Code)?;
            send_bytes(to, code.bytes())?;
        }
        Err(LoadError::Compile { source }) => send(to, &CompilerReply::Fault(format!("{source:#}")))?,
        Err(error) => send(to, &CompilerReply::Fault(error.to_string()))?,
    }
    to.flush()
}

/// Receives the machine code, or the error.
pub(super) fn receive_answer(from: &mut impl Read) -> io::Result<Result<Artifact, LoadError>> {
    Ok(match receive(from)? {
        CompilerReply::Code => Ok(Artifact::from_compiler(receive_bytes(from, limits::ARTIFACT)?)),
        CompilerReply::Fault(said) => Err(LoadError::Compile { source: wasmtime::Error::msg(said) }),
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

/// Reads length-prefixed bytes. Memory is allocated as the bytes arrive, not by the announced length.
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
        let error = LoadError::Compile { source: wasmtime::Error::msg("bad").context("worse") };
        let mut pipe = Vec::new();
        send_answer(&mut pipe, Err(error)).unwrap();
        let received = receive_answer(&mut pipe.as_slice()).unwrap().err().unwrap();
        assert_eq!(format!("{:#}", anyhow_text(&received)), "compiling the policy: worse: bad");
    }

    fn anyhow_text(error: &LoadError) -> String {
        use std::error::Error as _;
        format!("{error}: {}", error.source().map(ToString::to_string).unwrap_or_default())
    }
}
