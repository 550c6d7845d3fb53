//! The branch in which `portcullis run` runs a command.

use std::path::Path;
use std::sync::Arc;

use portcullis_bootstrap::branches::{self, OpenBranch, finish_interrupted};
use portcullis_bootstrap::loaded_settings::{LoadedSettings, Wanted};
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_bootstrap::session::{OpenSession, open_in_branch};
use portcullis_bootstrap::streams::say;
use portcullis_session::Prompter;

/// The branch in which a command runs.
pub(crate) struct Branch(OpenBranch);

impl Branch {
    /// Opens the branch with this name, or makes it; a new one for an empty name.
    pub(crate) fn begin(around: &ProcessEnv, loaded: &LoadedSettings, name: &str) -> anyhow::Result<Self> {
        let project = &loaded.resolved.workspace;
        recover(around, project)?;
        let name = Some(name).filter(|name| !name.is_empty());
        branches::begin(&around.state, project, name).map(Self)
    }

    /// Opens a session whose commands work in it.
    pub(crate) fn session(
        &self,
        around: &ProcessEnv,
        wanted: &Wanted,
        loaded: LoadedSettings,
        prompter: Arc<dyn Prompter>,
    ) -> anyhow::Result<OpenSession> {
        let opened = open_in_branch(around, wanted, loaded, prompter, self.0.layer())?;
        self.0.note_session(opened.session.id())?;
        Ok(opened)
    }

    /// Says what to do with it now. One that was begun for nothing is removed.
    pub(crate) fn end(self) -> anyhow::Result<()> {
        let name = self.0.stored().name.clone();
        if self.0.is_new_and_empty() {
            say(&format!("portcullis: nothing was changed in the project, so branch `{name}` is removed"));
            return self.0.remove();
        }
        say(&format!(
            "portcullis: the project is unchanged; `portcullis branch show {name}` shows the branch"
        ));
        Ok(())
    }
}

/// Takes back commits of a project's branches that were interrupted.
pub(super) fn recover(around: &ProcessEnv, project: &Path) -> anyhow::Result<()> {
    let all = branches::stored(&around.state, Some(project))?;
    for name in finish_interrupted(&around.state, &all)? {
        say(&format!("portcullis: a commit of branch `{name}` was interrupted, and is taken back"));
    }
    Ok(())
}
