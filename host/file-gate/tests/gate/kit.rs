//! A test directory with files, and decisions about them.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use portcullis_decision::request::{
    Action, Content, FileAccess, FileOperation, Origin, PathKind, PathRef, Text, Zone,
};
use portcullis_decision::{Base, Chain, Context, Permit, Request, RuleSet};
use portcullis_file_gate::{
    FileContent, FileError, Gate, Limits, Listing, Located, Purpose, Views, WriteOptions, Written,
};
use tempfile::TempDir;

/// A directory with a project `p` and a secret `secret/f` beside it, and a gate in the host's view.
pub(crate) struct TestDir {
    directory: TempDir,
    pub(crate) gate: Gate,
}

/// The reason why a request failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It was not allowed.
    Denied,
    /// It was allowed, but failed.
    Failed(FileError),
}

impl TestDir {
    pub(crate) fn new() -> Self {
        // Not below `/tmp`, which a sandbox replaces.
        let directory = tempfile::Builder::new().prefix("portcullis-test-").tempdir_in("/var/tmp");
        let directory = directory.expect("a directory");
        fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).expect("opened to all");
        for name in ["p", "secret"] {
            fs::create_dir(directory.path().join(name)).expect("a directory");
        }
        fs::write(directory.path().join("secret/f"), "TOPSECRET").expect("a file");
        Self { directory, gate: Gate::new(Views::Host).expect("a gate") }
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file without the gate.
    pub(crate) fn put(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).expect("written");
        path
    }

    pub(crate) fn link(&self, target: impl AsRef<Path>, name: &str) {
        std::os::unix::fs::symlink(target, self.path(name)).expect("a link");
    }

    /// Reads a file without the gate.
    pub(crate) fn content(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("read")
    }

    pub(crate) fn mode(&self, name: &str) -> u32 {
        fs::symlink_metadata(self.path(name)).expect("a file").mode() & 0o7777
    }

    /// Decides like a policy that allows only the files in the project.
    pub(crate) fn decide(&self, located: &Located, operation: FileOperation) -> Option<Permit> {
        permit_below(&self.path("p"), located, operation)
    }

    pub(crate) fn locate(&self, name: impl AsRef<Path>, purpose: Purpose) -> Result<Located, FileError> {
        self.gate.locate(&self.path(name), purpose)
    }

    pub(crate) fn read(&self, name: impl AsRef<Path>) -> Result<FileContent, Failure> {
        let located = self.locate(name, Purpose::Existing)?;
        let permit = self.decide(&located, FileOperation::Read).ok_or(Failure::Denied)?;
        Ok(self.gate.read(located, permit, Limits::default())?)
    }

    pub(crate) fn write(&self, name: impl AsRef<Path>, content: &str) -> Result<Written, Failure> {
        self.write_with(name, content, WriteOptions::default())
    }

    pub(crate) fn write_with(
        &self,
        name: impl AsRef<Path>,
        content: &str,
        options: WriteOptions,
    ) -> Result<Written, Failure> {
        let located = self.locate(name, Purpose::ForWriting)?;
        let permit = self.decide(&located, writing(content)).ok_or(Failure::Denied)?;
        Ok(self.gate.write(located, permit, content.as_bytes(), options)?)
    }

    pub(crate) fn list(
        &self,
        name: &str,
        limits: Limits,
        keep: &mut dyn FnMut(&Path, PathKind) -> bool,
    ) -> Result<Listing, Failure> {
        let located = self.locate(name, Purpose::Existing)?;
        let permit = self.decide(&located, FileOperation::List).ok_or(Failure::Denied)?;
        Ok(self.gate.list(located, permit, limits, keep)?)
    }

    /// Returns the names in a directory, sorted, without the gate.
    pub(crate) fn names(&self, name: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(name)).expect("a directory");
        let name = |entry: std::io::Result<fs::DirEntry>| {
            entry.expect("an entry").file_name().to_string_lossy().into_owned()
        };
        let mut names: Vec<String> = entries.map(name).collect();
        names.sort();
        names
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        Self::Failed(error)
    }
}

pub(crate) fn writing(content: &str) -> FileOperation {
    FileOperation::Write(Content::Text(Text::cut(content)))
}

/// Returns a permit from the real chain, with rules that allow everything below `top` and ask for the rest.
pub(crate) fn permit_below(top: &Path, located: &Located, operation: FileOperation) -> Option<Permit> {
    let path = PathRef::plain(located.canonical_text(), Zone::Workspace, located.kind());
    let action = Action::File(FileAccess { path, operation, facts: located.facts() });
    let request = Request { id: "1".into(), parent: None, origin: Origin::Agent, action, facts: vec![] };
    let base = Base { workspace: vec![top.to_owned()], ..Base::default() };
    let rules = RuleSet::compile(Vec::new(), base, &[]);
    Chain::default().decide(&request, &context(), &rules, &[]).permit(&request)
}

fn context() -> Context {
    Context { session_id: "s".into(), interactive: true, ..Context::default() }
}

pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").expect("procfs").uid() == 0
}

/// Checks that an operation failed with a certain error.
#[macro_export]
macro_rules! assert_fails {
    ($result:expr, $error:pat) => {
        match $result {
            Err($crate::kit::Failure::Failed($error)) => {}
            other => panic!("{} and not {}: {other:?}", stringify!($result), stringify!($error)),
        }
    };
}
