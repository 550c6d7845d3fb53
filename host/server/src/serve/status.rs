//! The status for the footer and the model.

use portcullis_rpc::{SandboxState, StatusResponse};
use portcullis_sandbox::{Force as LayerForce, Layer, Tier};
use portcullis_session::{Session, Statements};
use portcullis_settings_format::Escalation;
use portcullis_text::escape;

use crate::serve::host::{Host, Stage};
use crate::serve::reading::after_fault;
use crate::serve::{agent_text, system_prompt};

impl Host {
    pub(super) fn status(&self) -> StatusResponse {
        match self.stage().as_ref() {
            // A fault outside of a request, such as in answering a command's call, does not change the stage.
            Stage::Open(wired) if let Some(why) = wired.session.failure() => closed_by_fault(why),
            Stage::Open(wired) => self.with_changes(self.as_contained(open(&wired.session))),
            Stage::Off => plain(SandboxState::Disabled, None),
            Stage::Closed(why) => plain(SandboxState::Closed, Some(escape(why))),
        }
    }
}

impl Host {
    /// Adds changes and problems of the settings files.
    fn with_changes(&self, mut status: StatusResponse) -> StatusResponse {
        let Some(watch) = self.watch.get() else { return status };
        if let Some(problem) = watch.problem() {
            status.warnings.insert(0, problem);
        }
        status.brief.push_str(&system_prompt::changed(&watch.changes()));
        status
    }
}

fn plain(state: SandboxState, warning: Option<String>) -> StatusResponse {
    let warnings = warning.into_iter().collect();
    StatusResponse {
        state,
        domains: 0,
        write_paths: 0,
        summary: String::new(),
        waiting: 0,
        reservations: false,
        escalation: false,
        contained: false,
        reduced: None,
        brief: String::new(),
        warnings,
    }
}

fn closed_by_fault(why: &str) -> StatusResponse {
    plain(SandboxState::Closed, Some(after_fault(&escape(why))))
}

fn open(session: &Session) -> StatusResponse {
    let statements = Statements::for_session(session, Tier::Full);
    StatusResponse {
        state: SandboxState::Enabled,
        domains: count(statements.open_hosts()),
        write_paths: count(statements.written_places()),
        summary: statements.summary(),
        waiting: count(session.waiting()),
        reservations: session.wants_reservations(),
        escalation: session.settings().escalation == Escalation::Ask,
        contained: false,
        reduced: reduced(session),
        brief: agent_text::brief(session, &statements),
        warnings: warnings(session),
    }
}

/// Returns which parts of the sandbox are missing, in a few words.
pub(super) fn reduced(session: &Session) -> Option<String> {
    let force = session.effective_policy();
    let Ok(confinement) = &force.confinement else {
        return Some("no commands".to_owned());
    };
    let tier = confinement.report().tier();
    (tier != Tier::Full).then(|| format!("tier {tier}"))
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn warnings(session: &Session) -> Vec<String> {
    let force = session.effective_policy();
    let settings = session.settings();
    let mut warnings: Vec<String> =
        settings.warnings.iter().map(|warning| format!("{}: {}", warning.origin, warning.text)).collect();
    match &force.confinement {
        Err(reason) => {
            warnings
                .push(format!("commands are refused, the sandbox could not be set up: {}", escape(reason)));
        }
        Ok(confinement) => {
            let tier = confinement.report().tier();
            if tier != Tier::Full {
                let lacks = tier.lacks().join("; ");
                warnings
                    .push(format!("the sandbox is only of the tier `{tier}`, which does not stop: {lacks}"));
            }
            for (layer, force) in &confinement.report().layers {
                // Few machines have all control group controllers, and the limits apply without them; `doctor` reports
                // it.
                let is_worth_saying = *layer != Layer::ControlGroup;
                if let LayerForce::Partial(missing) = force
                    && is_worth_saying
                {
                    warnings.push(format!("{layer} is only partly in force: {}", escape(missing)));
                }
            }
        }
    }
    warnings
}
