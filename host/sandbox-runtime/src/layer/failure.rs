//! Steps of a setup that the kernel refuses.

use std::io;
use std::path::{Path, PathBuf};

use portcullis_sandbox::Stage;

/// A step that the kernel refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StepRefusal {
    pub(crate) stage: Stage,
    pub(crate) errno: i32,
}

/// A step of the setup that the kernel refused.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) stage: Stage,
    pub(crate) path: PathBuf,
    pub(crate) source: io::Error,
}

impl Failure {
    pub(crate) fn refusal(&self) -> StepRefusal {
        // An error without an errno comes from this program, not from the kernel.
        StepRefusal { stage: self.stage, errno: self.source.raw_os_error().unwrap_or(libc::EINVAL) }
    }
}

/// Adds the step to an error.
pub(crate) trait During<T> {
    /// For a step without a path.
    fn during(self, stage: Stage) -> Result<T, Failure>;

    /// For a step with a path.
    fn during_at(self, stage: Stage, path: &Path) -> Result<T, Failure>;
}

impl<T, E: Into<io::Error>> During<T> for Result<T, E> {
    fn during(self, stage: Stage) -> Result<T, Failure> {
        self.during_at(stage, Path::new(""))
    }

    fn during_at(self, stage: Stage, path: &Path) -> Result<T, Failure> {
        self.map_err(|source| Failure { stage, path: path.to_owned(), source: source.into() })
    }
}
