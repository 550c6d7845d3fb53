//! Systems on which there is no gate.

use std::io;
use std::sync::Arc;

use crate::{Judge, Listeners};

/// Serves the networks of one session; there is none on this system.
#[derive(Debug)]
pub enum Gate {}

/// A network that is served; there is none on this system.
#[derive(Debug)]
pub enum Attached {}

impl Attached {
    /// Returns the address of the proxy inside.
    #[must_use]
    pub fn proxy(&self) -> &str {
        match *self {}
    }
}

impl Gate {
    /// Says that this system has no gate.
    ///
    /// # Errors
    /// Always.
    pub fn start() -> io::Result<Self> {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }

    /// Serves a network.
    ///
    /// # Errors
    /// Never called.
    pub fn attach(&self, _listeners: Listeners, _judge: Arc<dyn Judge>) -> io::Result<Attached> {
        match *self {}
    }

    /// Closes every connection.
    pub fn close(&self) {
        match *self {}
    }

    /// Waits for what has ended.
    pub fn settle(&self, _command: u32) {
        match *self {}
    }
}
