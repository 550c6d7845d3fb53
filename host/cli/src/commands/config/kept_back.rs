//! Which variables of the environment commands do not get. Only names are told, never values.

use std::sync::Arc;

use portcullis_decision::context::AgentInfo;
use portcullis_session::{Inmate, KeptBack, Nobody, Withheld, kept_back};
use serde_json::{Value, json};

use crate::args::config::Place;
use crate::page::{Page, Tint, cell, tinted};
use crate::surroundings::Surroundings;
use crate::wire::{self, Purpose, Wanted};

/// Returns the variables of this environment that commands of a session here would not get, by the rules that it would
/// have.
pub(super) fn variables(around: &Surroundings, place: &Place) -> anyhow::Result<Vec<(String, KeptBack)>> {
    let wanted = Wanted {
        project: place.project.clone().unwrap_or_else(|| around.cwd.clone()),
        settings: place.settings.clone(),
        policies: Vec::new(),
        agent: AgentInfo {
            name: "portcullis".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..AgentInfo::default()
        },
        trusted: false,
        interactive: false,
        purpose: Purpose::Judge,
        inmate: Inmate::Commands,
    };
    let ground = wire::ground(around, &wanted)?;
    let wired = wire::session(around, &wanted, ground, Arc::new(Nobody))?;
    let force = wired.session.force();
    let kept_back = kept_back(&around.variables, &force.rules);
    Ok(kept_back.into_iter().map(|(name, why)| (name.to_owned(), why)).collect())
}

pub(super) fn human(page: &mut Page, variables: &[(String, KeptBack)]) {
    if variables.is_empty() {
        return;
    }
    page.line("\nvariables of this environment that commands do not get");
    let row = |(name, why): &(String, KeptBack)| vec![cell(name), tinted(reason(*why), Tint::Faint)];
    page.table("  ", &variables.iter().map(row).collect::<Vec<_>>());
    page.line("to let one through, add its name to `environment.keep` in the settings");
}

pub(super) fn json(variables: &[(String, KeptBack)]) -> Value {
    variables.iter().map(|(name, why)| json!({ "name": name, "reason": reason(*why) })).collect()
}

fn reason(why: KeptBack) -> &'static str {
    match why {
        KeptBack::ByRule => "a rule drops it",
        KeptBack::ByHost(Withheld::Injects) => "programs load code or settings through it",
        KeptBack::ByHost(Withheld::LeadsOut) => "it leads to a socket or an agent outside the sandbox",
        KeptBack::ByHost(Withheld::CredentialName) => "its name is one of a credential",
        KeptBack::ByHost(Withheld::CredentialValue) => "its value looks like a credential",
    }
}
