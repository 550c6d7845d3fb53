//! Problems with their positions.

use std::path::Path;

use crate::error::{ConfigError, Problem};
use crate::position::Position;

/// A problem, with its position.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// The position.
    pub at: Position,
    /// JSON pointer to the value.
    pub pointer: String,
    /// The problem.
    pub problem: Problem,
}

/// Returns the error for a problem in a file.
pub fn invalid(file: &Path, fault: Fault) -> ConfigError {
    ConfigError::Invalid {
        file: file.to_owned(),
        at: fault.at,
        pointer: fault.pointer,
        problem: fault.problem,
    }
}
