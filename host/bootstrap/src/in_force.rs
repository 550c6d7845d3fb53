//! Describes the policy in force in a project without a running session.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use portcullis_sandbox::Tier;
use portcullis_sandbox_runtime::probe;
use portcullis_session::{NoUser, Session, Statements};
use portcullis_settings::Disk;
use serde_json::{Value, json};

use crate::confiner::confiner;
use crate::loaded_settings::{self, Purpose, Wanted};
use crate::process_env::{OWN_PROGRAM, ProcessEnv, is_executable};
use crate::session::{self, OpenSession};

/// Text if the settings disable the sandbox.
pub const OFF: &str = "Nothing: the sandbox is switched off (`enabled` is false).";

/// The policy in force in a project.
#[derive(Debug)]
pub enum InForce {
    /// The rules of settings and policies.
    Rules(Box<Statements>),
    /// None, because the sandbox is disabled.
    Off,
}

/// Opens a session in `project` that only decides, or returns `None` if the settings disable the sandbox.
pub fn judging(
    around: &ProcessEnv,
    project: &Path,
    settings: Option<&Path>,
    disk: &dyn Disk,
) -> anyhow::Result<Option<OpenSession>> {
    // As in pi's terminal: policies can be stricter where the user cannot be asked.
    let wanted =
        Wanted { interactive: true, ..Wanted::judging(project.to_owned(), settings.map(PathBuf::from)) };
    let loaded = loaded_settings::load_on(around, &wanted, disk)?;
    if !loaded.resolved.enabled {
        return Ok(None);
    }
    session::open(around, &wanted, loaded, Arc::new(NoUser)).map(Some)
}

/// Returns the policy in force in `project`, for a sandbox of `tier`.
pub fn in_force(
    around: &ProcessEnv,
    project: &Path,
    settings: Option<&Path>,
    disk: &dyn Disk,
    tier: Tier,
) -> anyhow::Result<InForce> {
    let wired = judging(around, project, settings, disk)?;
    Ok(InForce::for_session(wired.as_ref().map(|wired| wired.session.as_ref()), tier))
}

/// Returns the tier that a session's sandbox would have on this machine. It is measured, not read from system settings.
///
/// Where commands run under a profile, only a session's own self-test measures it.
pub fn tier_here(around: &ProcessEnv) -> Tier {
    if let Some(confiner) = confiner(around) {
        return if is_executable(&confiner) { Tier::Profile } else { Tier::None };
    }
    Tier::from_findings(&probe(Path::new(OWN_PROGRAM)))
}

/// Returns the statements for a session with the sandbox enabled.
pub fn when_on(around: &ProcessEnv, wanted: &Wanted) -> anyhow::Result<Statements> {
    let wanted = Wanted { purpose: Purpose::Judge, ..wanted.clone() };
    let loaded = loaded_settings::load(around, &wanted)?;
    let wired = session::open(around, &wanted, loaded, Arc::new(NoUser))?;
    Ok(Statements::for_session(&wired.session, tier_here(around)))
}

impl InForce {
    /// Returns the policy in force of a session; without one the sandbox is disabled.
    pub fn for_session(session: Option<&Session>, tier: Tier) -> Self {
        match session {
            Some(session) => Self::Rules(Box::new(Statements::for_session(session, tier))),
            None => Self::Off,
        }
    }

    /// Returns it as JSON.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Off => json!({ "statements": [{ "about": "sandbox", "text": OFF }] }),
            Self::Rules(statements) => statements.to_json(),
        }
    }
}
