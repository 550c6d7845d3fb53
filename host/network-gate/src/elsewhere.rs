//! Systems on which there is no gate.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use crate::{Judge, Listeners, Server, Sockets, Special};

/// Serves the networks of one session; there is none on this system.
#[derive(Debug)]
pub enum Gate {}

/// A port that leads inside; there is none on this system.
#[derive(Debug)]
pub enum WayIn {}

/// A network that is served; there is none on this system.
#[derive(Debug)]
pub enum Attached {}

/// Says what an address is that is no place on the internet; nothing is reached from here.
#[must_use]
pub fn special(_address: IpAddr) -> Option<Special> {
    None
}

impl Attached {
    /// Returns the address of the proxy inside.
    #[must_use]
    pub fn proxy(&self) -> &str {
        match *self {}
    }

    /// Returns the servers that listen inside.
    #[must_use]
    pub fn servers(&self) -> Vec<Server> {
        match *self {}
    }
}

impl Gate {
    /// Says that this system has no gate.
    ///
    /// # Errors
    /// Always.
    pub fn start(_descriptors: u64) -> io::Result<Self> {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }

    /// Serves a network.
    ///
    /// # Errors
    /// Never called.
    pub fn attach(&self, _listeners: Listeners, _judge: Arc<dyn Judge>) -> io::Result<Attached> {
        match *self {}
    }

    /// Leads connections inside.
    ///
    /// # Errors
    /// Never called.
    pub fn lead_in(
        &self,
        _listener: std::net::TcpListener,
        _port: u16,
        _sockets: Arc<dyn Sockets>,
    ) -> io::Result<WayIn> {
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
