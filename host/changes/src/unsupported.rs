//! Without brokers and descriptors nothing is recorded.

use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};

use crate::bounds::Bounds;
use crate::state::Changed;

/// The record of a session's changes; there is none on this system.
#[derive(Debug)]
pub struct SessionChanges(Infallible);

/// A tool's call that is about to write.
#[derive(Debug)]
pub struct ToolCall(Infallible);

/// Returns that there is none.
///
/// # Errors
/// Always.
pub fn make(_directory: &Path, _bounds: Bounds) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns that there is none.
///
/// # Errors
/// Always.
pub fn is_empty(_directory: &Path) -> io::Result<bool> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns that there are none.
#[must_use]
pub fn files(_directory: &Path) -> Vec<PathBuf> {
    Vec::new()
}

impl SessionChanges {
    /// Returns that there is none.
    ///
    /// # Errors
    /// Always.
    pub fn open(_directory: &Path) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Cannot be called.
    ///
    /// # Errors
    /// None.
    pub fn turn(&self, _id: &str, _label: &str) -> io::Result<()> {
        match self.0 {}
    }

    /// Cannot be called.
    ///
    /// # Errors
    /// None.
    pub fn length(&self) -> io::Result<u64> {
        match self.0 {}
    }

    /// Cannot be called.
    ///
    /// # Errors
    /// None.
    pub fn finish(
        &self,
        _call: (u64, u64),
        _start: u64,
        _id: Option<&str>,
        _label: &str,
    ) -> io::Result<Changed> {
        match self.0 {}
    }

    /// Cannot be called.
    pub fn refused(&self) -> Option<&Path> {
        match self.0 {}
    }

    /// Cannot be called.
    ///
    /// # Errors
    /// None.
    pub fn before_tool(&self, _path: &Path) -> io::Result<ToolCall> {
        match self.0 {}
    }

    /// Cannot be called.
    ///
    /// # Errors
    /// None.
    pub fn after_tool(&self, call: &ToolCall, _id: Option<&str>, _tool: &str) -> io::Result<Changed> {
        match call.0 {}
    }
}
