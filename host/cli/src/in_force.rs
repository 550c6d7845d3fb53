//! What is said to be in force, for a project in which no session runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use portcullis_config::Disk;
use portcullis_confine::{Tier, probe};
use portcullis_session::{Nobody, Session, Statements};
use serde_json::{Value, json};

use crate::page::{Page, Tint, tinted};
use crate::surroundings::Surroundings;
use crate::wire::{self, OWN_PROGRAM, Purpose, Wanted, Wired};

/// More entries of one list than a person reads.
pub(crate) const MOST_LISTED: usize = 12;
/// What is said while the settings switch the sandbox off.
const OFF: &str = "Nothing: the sandbox is switched off (`enabled` is false).";

/// What holds in a project.
pub(crate) enum InForce {
    /// The rules of the settings and policies.
    Rules(Box<Statements>),
    /// Nothing, because the sandbox is switched off.
    Off,
}

/// A session that only says what would be decided in `project`; none where the settings switch the sandbox off.
pub(crate) fn judging(
    around: &Surroundings,
    project: &Path,
    settings: Option<&Path>,
    disk: &dyn Disk,
) -> anyhow::Result<Option<Wired>> {
    let wanted = Wanted::judging(project.to_owned(), settings.map(PathBuf::from));
    let ground = wire::ground_on(around, &wanted, disk)?;
    if !ground.resolved.enabled {
        return Ok(None);
    }
    wire::session(around, &wanted, ground, Arc::new(Nobody)).map(Some)
}

/// Says what holds in `project`, where the sandbox that this machine gives is of `tier`.
pub(crate) fn in_force(
    around: &Surroundings,
    project: &Path,
    settings: Option<&Path>,
    disk: &dyn Disk,
    tier: Tier,
) -> anyhow::Result<InForce> {
    let wired = judging(around, project, settings, disk)?;
    Ok(InForce::of(wired.as_ref().map(|wired| wired.session.as_ref()), tier))
}

/// The tier of the sandbox that a session with these settings would have. Tried out, not read from settings of the
/// system.
pub(crate) fn tier_here() -> Tier {
    Tier::of(&probe(Path::new(OWN_PROGRAM)))
}

/// What a session would hold commands and tools to if the sandbox were on.
pub(crate) fn when_on(around: &Surroundings, wanted: &Wanted) -> anyhow::Result<Statements> {
    let wanted = Wanted { purpose: Purpose::Judge, ..wanted.clone() };
    let ground = wire::ground(around, &wanted)?;
    let wired = wire::session(around, &wanted, ground, Arc::new(Nobody))?;
    Ok(wired.session.statements(tier_here()))
}

impl InForce {
    /// What a session says; none: the sandbox is off.
    pub(crate) fn of(session: Option<&Session>, tier: Tier) -> Self {
        match session {
            Some(session) => Self::Rules(Box::new(session.statements(tier))),
            None => Self::Off,
        }
    }

    /// Writes it under a title.
    pub(crate) fn human(&self, page: &mut Page, title: &str) {
        page.line(&format!("\n{title}"));
        match self {
            Self::Off => page.row("  ", &[tinted(OFF, Tint::Bad)], &[]),
            Self::Rules(statements) => {
                for statement in statements.all(MOST_LISTED) {
                    // Whole, and its parts are escaped.
                    page.line(&format!("  {}", statement.text));
                }
            }
        }
    }

    /// Gives it to programs.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::Off => json!({ "statements": [{ "about": "sandbox", "text": OFF }] }),
            Self::Rules(statements) => statements.to_json(),
        }
    }
}
