//! Commands outside the sandbox: refused unless the settings allow asking, and then asked each time.

use std::path::Path;

use portcullis_config::Escalation;
use portcullis_decision::request::{Action, Origin};
use portcullis_decision::rules::Ruling;
use portcullis_decision::{Decision, Effect};

use crate::authorized::Authorized;
use crate::cancel::Cancel;
use crate::commands::{CommandCall, CommandFailure, Program};
use crate::session::Session;

/// Id of the rule that asks.
const ASKED: &str = "host.escalation";
/// Id of the rule that refuses.
const OFF: &str = "host.escalation-off";

impl Session {
    /// Authorizes a command that its client runs outside the sandbox.
    ///
    /// # Errors
    /// When the working directory cannot be used.
    pub fn authorize_outside(
        &self,
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
        let action = match self.command_action(&command)? {
            Action::Command(execution) => Action::Escalation(execution),
            other @ (Action::File(_)
            | Action::Escalation(_)
            | Action::Network(_)
            | Action::Socket(_)
            | Action::Tool(_)
            | Action::Other(_)) => other,
        };
        let request = self.request(Origin::Agent, action);
        Ok(match self.settings().escalation {
            Escalation::Ask => self.authorize(request, Some(call), cancel),
            Escalation::Off => {
                self.refuse(request, OFF, "the settings do not let commands run outside of the sandbox")
            }
        })
    }
}

/// Tightens a decision on leaving the sandbox to a question at least.
///
/// This is always the user's decision, whatever policies allow.
pub(crate) fn tightened(action: &Action, decision: Decision) -> Decision {
    if !matches!(action, Action::Escalation(_)) {
        return decision;
    }
    decision.tightened(Ruling {
        effect: Effect::Ask,
        policy: "host".to_owned(),
        rule: ASKED.to_owned(),
        reason: "nothing holds a command outside of the sandbox".to_owned(),
        setting: String::new(),
        conceal: false,
    })
}
