//! A client in a sandbox, as it is known outside.
//!
//! Any process beside pi in the sandbox could pretend to be pi. So the client's statements about itself do not matter:
//! working directory, agent directory, trust in the project and presence of a user are known outside.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail, ensure};
use portcullis_bootstrap::loaded_settings::Wanted;
use portcullis_bootstrap::session::OpenSession;
use portcullis_rpc::{HelloParams, Switch};
use portcullis_session::Prompter;
use rustix::fs::OFlags;

/// Maximum size of a file with a tool's full output that is copied.
const LONGEST_OUTPUT: u64 = 256 * 1024 * 1024;

/// Facts about the client, known outside.
pub(crate) struct Contained {
    /// Its working directory; canonical.
    pub(crate) project: PathBuf,
    /// Whether the user said on the command line that the project is trusted.
    pub(crate) trusted: bool,
    /// Whether a user can answer.
    pub(crate) interactive: bool,
    /// The prompter for questions.
    pub(crate) prompter: Arc<dyn Prompter>,
    /// The directory that the client sees as `/tmp`.
    pub(crate) temp: PathBuf,
    /// A session slot, held until teardown.
    pub(crate) _place: Arc<()>,
}

impl Contained {
    /// Returns the setup of the session, whatever the client says.
    pub(super) fn wanted(&self, hello: &HelloParams, said: Wanted) -> anyhow::Result<Wanted> {
        let cwd = hello.cwd.as_path();
        let is_here = cwd.canonicalize().is_ok_and(|cwd| cwd == self.project);
        ensure!(
            is_here,
            "this pi is contained in `{}` and cannot work in `{}`; start another one there",
            self.project.display(),
            cwd.display()
        );
        if hello.sandbox == Some(Switch::Off) {
            bail!("a contained pi does not work without the sandbox; start it without `--contain`");
        }
        Ok(Wanted {
            project: self.project.clone(),
            trusted: self.trusted,
            interactive: self.interactive,
            ..said
        })
    }

    /// Copies a file with a tool's full output from pi's `/tmp` to that of the session.
    pub(super) fn bring(&self, path: &Path, wired: &OpenSession) -> anyhow::Result<()> {
        let name = path.file_name().filter(|_| path.parent() == Some(Path::new("/tmp")));
        let name = name.context("it is not in the temporary directory of pi")?;
        let from = open_plain(&self.temp.join(name)).context("opening it")?;
        let to = wired.temp().context("the session has no temporary directory")?.join(name);
        let mut options = OpenOptions::new();
        // `create_new` does not follow a name that a command has created there.
        let to = options.write(true).create_new(true).mode(0o600).open(to);
        let mut to = to.context("making a copy")?;
        wired.give_away(&to)?;
        io::copy(&mut from.take(LONGEST_OUTPUT), &mut to).context("copying it")?;
        Ok(())
    }
}

/// Opens a regular file that another process may replace at any time.
fn open_plain(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
}
