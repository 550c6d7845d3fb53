//! Stubs for systems that have no gate.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use crate::{Judge, Listeners, Server, Sockets, Special};

/// The gate of one session; it does not exist on this system.
#[derive(Debug)]
pub enum Gate {}

/// A host port that forwards into a network; it does not exist on this system.
#[derive(Debug)]
pub enum WayIn {}

/// A served network; it does not exist on this system.
#[derive(Debug)]
pub enum Attached {}

/// Returns the kind of an address outside the public internet; always `None`, since this system makes no connections.
#[must_use]
pub fn special(_address: IpAddr) -> Option<Special> {
    None
}

impl Attached {
    /// Returns the URL of the proxy inside the network.
    #[must_use]
    pub fn proxy(&self) -> &str {
        match *self {}
    }

    /// Returns the servers that listen inside the network.
    #[must_use]
    pub fn servers(&self) -> Vec<Server> {
        match *self {}
    }
}

impl Gate {
    /// Fails, because this system has no gate.
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

    /// Forwards connections into a network.
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

    /// Waits until the connections of a command have been reported.
    pub fn wait_for_connections(&self, _command: u32) {
        match *self {}
    }
}
