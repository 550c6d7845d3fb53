//! What the footer and the model are told.

use portcullis_confine::{Force as LayerForce, Tier};
use portcullis_rpc::{SandboxState, StatusResponse};
use portcullis_session::{Session, visible};

use crate::serve::{Host, Stage};

impl Host {
    pub(super) fn status(&self) -> StatusResponse {
        match self.stage().as_ref() {
            Stage::Open(wired) => open(&wired.session),
            Stage::Off => plain(SandboxState::Disabled, None),
            Stage::Closed(why) => plain(SandboxState::Closed, Some(visible(why))),
        }
    }
}

fn plain(state: SandboxState, warning: Option<String>) -> StatusResponse {
    let warnings = warning.into_iter().collect();
    StatusResponse { state, domains: 0, write_paths: 0, brief: String::new(), warnings }
}

fn open(session: &Session) -> StatusResponse {
    let settings = session.settings();
    StatusResponse {
        state: SandboxState::Enabled,
        domains: count(settings.allowed_domains.len()),
        write_paths: count(settings.allow_write.len()),
        brief: brief(session),
        warnings: warnings(session),
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn warnings(session: &Session) -> Vec<String> {
    let force = session.force();
    let settings = session.settings();
    let mut warnings: Vec<String> =
        settings.warnings.iter().map(|warning| format!("{}: {}", warning.origin, warning.text)).collect();
    match &force.confinement {
        Err(reason) => {
            warnings
                .push(format!("commands are refused, the sandbox could not be set up: {}", visible(reason)));
        }
        Ok(confinement) => {
            let tier = confinement.report().tier();
            if tier != Tier::Full {
                let lacks = tier.lacks().join("; ");
                warnings
                    .push(format!("the sandbox is only of the tier `{tier}`, which does not stop: {lacks}"));
            }
            for (layer, force) in &confinement.report().layers {
                if let LayerForce::Partial(missing) = force {
                    warnings.push(format!("{layer} is only partly in force: {}", visible(missing)));
                }
            }
        }
    }
    warnings
}

/// What the model is told up front: what the host knows, then each policy in quotation.
fn brief(session: &Session) -> String {
    let settings = session.settings();
    let mut lines = vec![format!(
        "Tools and commands run in a sandbox. The project is {}; {} is private to this session. \
         What is refused says why; do not try to get around it, say what you need instead.",
        settings.workspace.display(),
        settings.temp.display(),
    )];
    for (policy, brief) in session.briefs() {
        let quoted: Vec<String> = brief.lines().take(20).map(|line| format!("> {}", visible(line))).collect();
        lines.push(format!("Policy `{}` says:\n{}", visible(&policy), quoted.join("\n")));
    }
    lines.join("\n")
}
