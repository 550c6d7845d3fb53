//! `portcullis config edit`: edits a copy of a settings file and installs it only if it is valid.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};
use portcullis_bootstrap::loaded_settings;
use portcullis_bootstrap::process_env::{ProcessEnv, random_name};
use portcullis_bootstrap::streams::say;
use portcullis_bootstrap::untrusted_paths::UntrustedPaths;
use portcullis_command_line::args::config::SettingsFile;
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::output::Page;
use portcullis_settings::{Places, RealDisk, Store, validate};
use portcullis_settings_format::{BUILT_IN, FileKind};

use super::in_use;
use super::validate::human;

/// The editor if neither VISUAL nor EDITOR is set.
const USUAL_EDITOR: &str = "vi";

pub(super) fn run(around: &ProcessEnv, places: &Places, which: Option<SettingsFile>) -> exit::Outcome {
    let (file, kind) = wanted(places, which)?;
    let before = match std::fs::read(&file) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(error).with_context(|| format!("reading `{}`", file.display())),
    };
    let usual = if kind == FileKind::Settings { BUILT_IN } else { "{}\n" };
    let begins = before.as_deref().unwrap_or(usual.as_bytes());
    let copy = Copy::make(around, &file, begins)?;
    let path = path(around, &loaded_settings::reach(around, &places.workspace))?;
    loop {
        edit(around, &copy.file, &path)?;
        let text = std::fs::read_to_string(&copy.file).context("reading the edited copy")?;
        if begins == text.as_bytes() {
            say("nothing was changed");
            return Ok(Exit::Done);
        }
        let checked = validate(&copy.file, kind, &RealDisk);
        if checked.mistakes.is_empty() {
            let store = Store::new(places);
            if let Err(error) = store.replace(&file, kind, before.as_deref(), &text) {
                return Err(anyhow::Error::new(error).context(copy.keep()));
            }
            say(&format!("written: {}; running sessions take it over at once", file.display()));
            return Ok(Exit::Done);
        }
        let mut page = Page::new(around);
        human(&mut page, checked);
        page.print()?;
        if !again()? {
            bail!("nothing was changed; {}", copy.keep());
        }
    }
}

/// Returns the file to edit: the named one, else the one that applies or has a mistake.
fn wanted(places: &Places, which: Option<SettingsFile>) -> anyhow::Result<(PathBuf, FileKind)> {
    let file = match which {
        Some(SettingsFile::Default) => places.default_file(),
        Some(SettingsFile::Projects) => places.projects_file(),
        Some(SettingsFile::Layered) => places.layered_file(),
        Some(SettingsFile::LayeredProjects) => places.layered_entries_file(),
        None => in_use::file_in_use(places)?,
    };
    ensure!(
        !places.is_of_others(&file),
        "`{}` has a mistake, and other users can write it; fix it yourself, see `portcullis config validate`",
        file.display()
    );
    let kind =
        if places.settings.as_ref() == Some(&file) { FileKind::Settings } else { FileKind::from_name(&file) };
    Ok((file, kind))
}

/// Returns PATH without the directories that commands can write.
///
/// The editor runs outside any sandbox and is looked up by name.
fn path(around: &ProcessEnv, reach: &UntrustedPaths) -> anyhow::Result<OsString> {
    let kept = around.path.iter().filter(|directory| !reach.holds(directory));
    std::env::join_paths(kept).context("taking directories out of PATH")
}

/// Starts the editor as git and other programs do: the variable is a shell command line.
fn edit(around: &ProcessEnv, file: &Path, path: &OsStr) -> anyhow::Result<()> {
    let variable = |wanted: &str| {
        let found = around.variables.iter().find(|(name, value)| name == wanted && !value.trim().is_empty());
        found.map(|(_, value)| value.as_str())
    };
    let editor = variable("VISUAL").or_else(|| variable("EDITOR")).unwrap_or(USUAL_EDITOR);
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(format!("{editor} \"$1\"")).arg(editor).arg(file).env("PATH", path);
    let status = command.status().with_context(|| format!("starting the editor `{editor}`"))?;
    ensure!(
        status.success(),
        "the editor `{editor}` ended with {status}, nothing was changed; set VISUAL or EDITOR to another one"
    );
    Ok(())
}

/// Asks whether to open the editor again; returns false without a terminal.
fn again() -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        return Ok(false);
    }
    let mut error = portcullis_bootstrap::streams::errors();
    write!(error, "edit again? [Y/n] ")?;
    error.flush()?;
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line)?;
    Ok(read > 0 && !line.trim().eq_ignore_ascii_case("n"))
}

/// A copy that only the user can read, in a directory that commands cannot see.
///
/// So no agent can change the settings while they are edited.
struct Copy {
    directory: PathBuf,
    file: PathBuf,
    kept: std::cell::Cell<bool>,
}

impl Copy {
    fn make(around: &ProcessEnv, file: &Path, bytes: &[u8]) -> anyhow::Result<Self> {
        let directory = around.state.join(format!("edit-{}", random_name()?));
        let name = file.file_name().context("a settings file has a name")?;
        let copy = Self { file: directory.join(name), directory, kept: std::cell::Cell::new(false) };
        let making = || format!("making a copy in `{}`", copy.directory.display());
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&copy.directory)
            .with_context(making)?;
        let mut options = std::fs::OpenOptions::new();
        let mut copied =
            options.write(true).create_new(true).mode(0o600).open(&copy.file).with_context(making)?;
        copied.write_all(bytes).with_context(making)?;
        Ok(copy)
    }

    /// Keeps the copy with the user's changes, and returns a text that says where it is.
    fn keep(&self) -> String {
        self.kept.set(true);
        format!("your text is in `{}`", self.file.display())
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        if !self.kept.get() {
            let _an_editor_may_have_left_more = std::fs::remove_dir_all(&self.directory);
        }
    }
}
