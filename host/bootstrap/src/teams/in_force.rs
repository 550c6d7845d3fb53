//! The team's bundle that a session applies: its settings, packs, presets and trusted publishers.

use std::path::Path;

use anyhow::Context as _;
use portcullis_packs::{Seconds, Trust};
use portcullis_settings::TeamSettings;
use portcullis_teams::{HeldBundle, Trusted, Unprotected};

use crate::process_env;
use crate::teams::joined::{Joined, joined};

const DAY: Seconds = 24 * 60 * 60;
/// How long a bundle is in force without a confirmation before sessions warn: as long as a timestamp is valid.
const UNCONFIRMED_DAYS: Seconds = 14;

/// A team, and the parts of its bundle that a session applies.
#[derive(Debug, Clone)]
pub struct InForce {
    /// The team.
    pub joined: Joined,
    /// The accepted documents.
    pub trusted: Option<Trusted>,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// Returns the bundle in force.
///
/// # Errors
/// If the machine requires a bundle and has none that can be used. The session must then deny every request.
pub fn in_force(agent_directory: &Path) -> anyhow::Result<Option<InForce>> {
    let Some(joined) = joined(agent_directory)? else { return Ok(None) };
    let opened = joined.open().and_then(|trusted| {
        trusted
            .as_ref()
            .and_then(|trusted| trusted.bundle.as_ref())
            .map_or(Ok(()), |bundle| joined.check(bundle))?;
        Ok(trusted)
    });
    let team = &joined.membership.team;
    let (trusted, warnings) = match opened {
        Ok(trusted) if trusted.as_ref().is_some_and(|trusted| trusted.bundle.is_some()) => {
            let warnings = warnings(trusted.as_ref(), process_env::unix_seconds());
            (trusted, warnings)
        }
        opened if joined.membership.mandatory => {
            let why = format!(
                "this machine requires the bundle of the team `{team}` (`{}`), and has none that it can use; \
                 `portcullis team update` gets it",
                joined.file.display()
            );
            return match opened {
                Ok(_) => Err(anyhow::Error::msg(why)),
                Err(error) => Err(error.context(why)),
            };
        }
        Ok(trusted) => {
            let text =
                format!("there is no bundle of the team `{team}` yet; `portcullis team update` gets it");
            (trusted, vec![text])
        }
        Err(error) => (None, vec![format!("the bundle of the team `{team}` is not in force: {error:#}")]),
    };
    Ok(Some(InForce { joined, trusted, warnings }))
}

/// Returns what the user should know of a bundle in force.
fn warnings(trusted: Option<&Trusted>, now: Seconds) -> Vec<String> {
    let mut warnings = Vec::new();
    let Some((trusted, bundle)) = trusted.and_then(|trusted| Some((trusted, trusted.bundle.as_ref()?)))
    else {
        return warnings;
    };
    let (team, version) = (&trusted.root.team, bundle.content.version);
    if bundle.has_expired(now) {
        warnings.push(format!(
            "bundle {version} of the team `{team}` has expired; what it requires stays in force, and `portcullis team \
             update` looks for a newer one"
        ));
    }
    let unconfirmed = now.saturating_sub(trusted.held.checked_at) / DAY;
    if unconfirmed > UNCONFIRMED_DAYS {
        warnings.push(format!(
            "bundle {version} of the team `{team}` was not confirmed for {unconfirmed} days; what it requires stays in \
             force, and `portcullis team status` says why"
        ));
    }
    if !bundle.is_current {
        warnings.push(format!(
            "bundle {version} of the team `{team}` is signed by keys that the team no longer uses; what it requires \
             stays in force, and `portcullis team update` looks for a newer one"
        ));
    }
    warnings
}

impl InForce {
    /// Returns the bundle in force.
    #[must_use]
    pub fn bundle(&self) -> Option<&HeldBundle> {
        self.trusted.as_ref()?.bundle.as_ref()
    }

    /// Returns what the bundle contributes to the settings.
    #[must_use]
    pub fn settings(&self) -> TeamSettings {
        let content = self.bundle().map(|bundle| &bundle.content);
        let settings = content.map(|content| content.settings.clone()).unwrap_or_default();
        TeamSettings {
            file: self.joined.store.held_file(),
            settings: serde_json::Value::Object(settings).to_string(),
            presets: content.map(|content| content.presets.clone()).unwrap_or_default(),
            warnings: self.warnings.clone(),
        }
    }
}

/// Returns true if the machine forbids to switch the sandbox off.
///
/// # Errors
/// If the membership file cannot be used.
pub fn keeps_sandbox(agent_directory: &Path) -> anyhow::Result<bool> {
    Ok(joined(agent_directory)?.is_some_and(|joined| joined.membership.no_sandbox == Unprotected::Forbid))
}

/// Returns the publishers and revocations of the bundle in force.
///
/// # Errors
/// Those of [`in_force`].
pub fn trust(agent_directory: &Path) -> anyhow::Result<Trust> {
    let in_force = in_force(agent_directory)?;
    match in_force.as_ref().and_then(InForce::bundle) {
        Some(bundle) => bundle.content.trust().context("the trust in the team's bundle"),
        None => Ok(Trust::default()),
    }
}
