//! Describes the policy in force in a project without a running session.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use portcullis_config::Disk;
use portcullis_sandbox::Tier;
use portcullis_sandbox_runtime::probe;
use portcullis_session::{Nobody, Session, Statements};
use serde_json::{Value, json};

use crate::bootstrap::{self, OWN_PROGRAM, Purpose, Wanted, Wired};
use crate::output::{Page, Tint, tinted};
use crate::process_env::ProcessEnv;

/// Maximum number of items of a list to print. `--json` has all.
const MOST_LISTED: usize = 8;
/// Maximum number of items of a list in pi's terminal, where the statements share the screen with a menu.
pub(crate) const MOST_ON_SCREEN: usize = 3;
/// Text if the settings disable the sandbox.
const OFF: &str = "Nothing: the sandbox is switched off (`enabled` is false).";

/// The policy in force in a project.
pub(crate) enum InForce {
    /// The rules of settings and policies.
    Rules(Box<Statements>),
    /// None, because the sandbox is disabled.
    Off,
}

/// Opens a session in `project` that only decides, or returns `None` if the settings disable the sandbox.
pub(crate) fn judging(
    around: &ProcessEnv,
    project: &Path,
    settings: Option<&Path>,
    disk: &dyn Disk,
) -> anyhow::Result<Option<Wired>> {
    // As in pi's terminal: policies can be stricter where the user cannot be asked.
    let wanted =
        Wanted { interactive: true, ..Wanted::judging(project.to_owned(), settings.map(PathBuf::from)) };
    let loaded = bootstrap::load_settings_on(around, &wanted, disk)?;
    if !loaded.resolved.enabled {
        return Ok(None);
    }
    bootstrap::session(around, &wanted, loaded, Arc::new(Nobody)).map(Some)
}

/// Returns the policy in force in `project`, for a sandbox of `tier`.
pub(crate) fn in_force(
    around: &ProcessEnv,
    project: &Path,
    settings: Option<&Path>,
    disk: &dyn Disk,
    tier: Tier,
) -> anyhow::Result<InForce> {
    let wired = judging(around, project, settings, disk)?;
    Ok(InForce::of(wired.as_ref().map(|wired| wired.session.as_ref()), tier))
}

/// Returns the tier that a session's sandbox would have on this machine. It is measured, not read from system settings.
pub(crate) fn tier_here() -> Tier {
    Tier::of(&probe(Path::new(OWN_PROGRAM)))
}

/// Returns the statements for a session with the sandbox enabled.
pub(crate) fn when_on(around: &ProcessEnv, wanted: &Wanted) -> anyhow::Result<Statements> {
    let wanted = Wanted { purpose: Purpose::Judge, ..wanted.clone() };
    let loaded = bootstrap::load_settings(around, &wanted)?;
    let wired = bootstrap::session(around, &wanted, loaded, Arc::new(Nobody))?;
    Ok(Statements::of(&wired.session, tier_here()))
}

impl InForce {
    /// Returns the policy in force of a session; without one the sandbox is disabled.
    pub(crate) fn of(session: Option<&Session>, tier: Tier) -> Self {
        match session {
            Some(session) => Self::Rules(Box::new(Statements::of(session, tier))),
            None => Self::Off,
        }
    }

    /// Prints it under a title.
    pub(crate) fn human(&self, page: &mut Page, title: &str) {
        page.line(&format!("\n{title}"));
        match self {
            Self::Off => page.row("  ", &[tinted(OFF, Tint::Bad)], &[]),
            Self::Rules(statements) => {
                for statement in statements.all(MOST_LISTED) {
                    // Full length; its parts are already escaped.
                    page.line(&format!("  {}", statement.text));
                }
            }
        }
    }

    /// Returns it as JSON.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::Off => json!({ "statements": [{ "about": "sandbox", "text": OFF }] }),
            Self::Rules(statements) => statements.to_json(),
        }
    }
}
