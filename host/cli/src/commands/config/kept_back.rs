//! Environment variables that commands do not get. Only names are printed, never values.

use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_command_line::output::{Page, Tint, cell, tinted};
use portcullis_session::{KeptBack, Session, Withheld, kept_back};
use serde_json::{Value, json};

/// Returns the variables of this environment that the session's rules keep from commands.
pub(super) fn variables(around: &ProcessEnv, session: &Session) -> Vec<(String, KeptBack)> {
    let force = session.effective_policy();
    let kept_back = kept_back(&around.variables, &force.rules);
    kept_back.into_iter().map(|(name, why)| (name.to_owned(), why)).collect()
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
