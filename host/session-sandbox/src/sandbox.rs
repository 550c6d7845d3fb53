//! Sets up sandboxes for the session, and never a weaker one than required.

use std::io::ErrorKind;
use std::sync::Arc;

use portcullis_decision::RuleSet;
use portcullis_sandbox::{IsolationMode, Profile, Report, Stage, Tier, WayOut, bound_sockets};
use portcullis_sandbox_runtime::{Confinement, StartError};

use crate::confining::Confining;
use crate::error::with_causes;
use crate::network::{Network, Sandbox};
use crate::profile::profile;
use crate::profile_sandbox;
use crate::replaceable_paths::Surveyed;
use crate::requirements::Requirements;

/// The number of plans that are made for one sandbox while files vanish between the plan and its mounts.
const MAX_PLANS: u32 = 8;

/// Sets up a sandbox, or returns why that failed. `stricter` holds the rules if they differ from the session's.
pub fn confinement(
    (how, network): (&Confining, Option<&Network>),
    surveyed: Surveyed<'_>,
    stricter: Option<&Arc<RuleSet>>,
    wanted: Requirements<'_>,
) -> Result<Arc<Sandbox>, String> {
    let Surveyed { rules, .. } = surveyed;
    let (executable, temp, order) = match how {
        Confining::Sandbox { executable, temp, order } => (executable, temp, order),
        Confining::Profile(places) => {
            return profile_sandbox::start(places, network, rules, stricter, wanted);
        }
        Confining::NoCommands => return Err("no command is run here".to_owned()),
    };
    let profile = || {
        let bound = bound_sockets(&rules.base().workspace);
        let profile = profile(surveyed, temp, &bound, wanted)?;
        Ok::<_, String>(Profile { order: Some(order.clone()), ..profile })
    };
    if wanted.walls == IsolationMode::Landlock {
        let confinement =
            Confinement::start_without_namespaces(executable, &profile()?).map_err(start_error)?;
        require(confinement.report(), wanted.tier)?;
        return Ok(Arc::new(Sandbox::new(confinement, None, wanted.changes)));
    }
    let way_out = || WayOut { host_ports: rules.loopback_ports(), hold: wanted.hold };
    let start = |with_names: bool| {
        let mut attempts = 0;
        loop {
            let profile = profile()?;
            let profile = if with_names { profile } else { Profile { names: None, ..profile } };
            attempts += 1;
            match Confinement::start_gated(executable, &profile, way_out()) {
                // A file, such as a socket, has vanished since the plan was made; make a new plan without it.
                Err(StartError::Refused { source, .. })
                    if source.kind() == ErrorKind::NotFound && attempts < MAX_PLANS => {}
                started => return Ok::<_, String>(started),
            }
        }
    };
    let started = match start(true)? {
        Err(StartError::Refused { stage: Stage::Landlock | Stage::Seccomp, .. })
            if wanted.tier < Tier::Full =>
        {
            no_name_patterns(rules)?;
            start(false)?
        }
        started => started,
    };
    let (confinement, gate) = started.map_err(start_error)?;
    require(confinement.report(), wanted.tier)?;
    // Without a gate every connection is refused; the report of the sandbox says so.
    let attached = match (network, gate) {
        (Some(network), Ok(listeners)) => {
            Some(network.serve(listeners, stricter.cloned()).map_err(|error| with_causes(&error))?)
        }
        (None, _) | (_, Err(_)) => None,
    };
    Ok(Arc::new(Sandbox::new(confinement, attached, wanted.changes)))
}

fn start_error(error: StartError) -> String {
    format!("{}; `portcullis doctor` says more", with_causes(&error))
}

/// Checks that no rule restricts names, for tiers in which only places are enforced.
fn no_name_patterns(rules: &RuleSet) -> Result<(), String> {
    match rules.patterns_on_reading().chain(rules.patterns_on_writing()).next() {
        None => Ok(()),
        Some((layer, rule)) => Err(format!(
            "the rule `{}` of `{}` is a pattern over names (`{}`), to which commands are held in the tier `full` only",
            rule.id, layer.name, rule.pattern
        )),
    }
}

/// Returns an error if the sandbox has less than the required tier.
fn require(report: &Report, tier: Tier) -> Result<(), String> {
    let has = report.tier();
    if has >= tier {
        return Ok(());
    }
    Err(format!(
        "this machine gives the tier `{has}` only, and the settings require `{tier}`; `portcullis doctor` says what \
         is missing, and `\"requiredTier\": \"{has}\"` in your settings does without: {}",
        has.lacks().join("; ")
    ))
}

#[cfg(test)]
mod tests {
    use portcullis_sandbox::{Force as LayerForce, Layer};

    use super::*;

    #[test]
    fn less_than_required_is_nothing() {
        let report = |effective| Report {
            layers: vec![(Layer::Landlock, effective), (Layer::Names, LayerForce::Full)],
            controllers: Vec::new(),
        };
        let without = report(LayerForce::None("not there".to_owned()));
        assert!(require(&report(LayerForce::Full), Tier::Full).is_ok());
        assert!(require(&without, Tier::Namespaces).is_ok());
        let said = require(&without, Tier::Full).unwrap_err();
        assert!(
            said.contains("`namespaces` only") && said.contains("\"requiredTier\": \"namespaces\""),
            "{said}"
        );
    }
}
