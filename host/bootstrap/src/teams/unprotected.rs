//! Whether pi may run without the sandbox on this machine.

use anyhow::Context as _;
use portcullis_audit::{Log, VerdictLine};
use portcullis_teams::Unprotected;
use serde_json::json;

use crate::process_env::{ProcessEnv, now, random_name};
use crate::teams::joined::joined;

/// Whether pi may run without the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unprotect {
    /// It may.
    Allowed,
    /// It may, and the log has a record of it.
    Logged,
    /// It may not.
    Forbidden,
}

/// Decides whether pi may run without the sandbox. Writes a record if the machine's file says so.
///
/// # Errors
/// If the membership file cannot be used, or the record cannot be written: then it may not.
pub fn may_be_unprotected(around: &ProcessEnv) -> anyhow::Result<Unprotect> {
    let Some(joined) = joined(&around.agent_directory)? else { return Ok(Unprotect::Allowed) };
    let (allowed, effect, reason) = match joined.membership.no_sandbox {
        Unprotected::Allow => return Ok(Unprotect::Allowed),
        Unprotected::Log => (Unprotect::Logged, "allow", "pi runs without the sandbox, as the user asked"),
        Unprotected::Forbid => {
            (Unprotect::Forbidden, "deny", "the machine's team file forbids `--no-sandbox`")
        }
    };
    let log = Log::open(&around.state.join("audit"), &random_name()?).context("opening the audit log")?;
    let since = now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    log.verdict(VerdictLine {
        at_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
        request: json!({ "action": "session.unprotected", "project": around.cwd, "user": around.user }),
        effect: effect.to_owned(),
        policy: "team".to_owned(),
        rule: "team.no-sandbox".to_owned(),
        reason: reason.to_owned(),
        setting: joined.file.display().to_string(),
        ..VerdictLine::default()
    })
    .context("writing the audit log")?;
    Ok(allowed)
}
