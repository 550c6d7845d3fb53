//! Commands outside the sandbox: refused unless the settings allow asking, and then asked each time.

use std::path::Path;

use portcullis_approvals::Cancel;
use portcullis_decision::request::{Action, Origin};
use portcullis_settings_format::Escalation;

use crate::authorized::Authorized;
use crate::command_call::{CommandCall, Program};
use crate::commands;
use crate::session::Session;
use crate::started::CommandFailure;

/// Id of the rule that refuses.
const OFF: &str = "host.escalation-off";

/// Authorizes a command that its client runs outside the sandbox.
///
/// # Errors
/// When the working directory cannot be used.
pub fn authorize(
    session: &Session,
    script: &str,
    cwd: &Path,
    call: &str,
    cancel: &Cancel,
) -> Result<Authorized, CommandFailure> {
    let command = CommandCall {
        program: Program::Script(script.to_owned()),
        cwd,
        environment: Vec::new(),
        timeout: None,
        origin: Origin::Agent,
        call: Some(call),
    };
    let action = match commands::action(session, &command)? {
        Action::Command(execution) => Action::Escalation(execution),
        other @ (Action::File(_)
        | Action::Escalation(_)
        | Action::Network(_)
        | Action::Socket(_)
        | Action::Tool(_)
        | Action::Other(_)) => other,
    };
    let request = session.request(Origin::Agent, action);
    Ok(match session.settings().escalation {
        Escalation::Ask => session.authorize(request, Some(call), cancel),
        Escalation::Off => {
            session.refuse(request, OFF, "the settings do not let commands run outside of the sandbox")
        }
    })
}
