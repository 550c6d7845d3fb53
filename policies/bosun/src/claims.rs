//! Reservations: paths of other agents are not written, and written paths are claimed.

use portcullis_sdk::reservation::{Claim, Until, claims, release, reserve};
use portcullis_sdk::{
    Context, Evaluation, FileOperation, FilePattern, FileRights, FileRule, PathRef, Request, ToolCall, Zone,
};
use serde::Deserialize;

use crate::config::{Config, Reservations};
use crate::rule_ids::{CLAIM, FREE, OWN, RESERVED, UNCLAIMED, UNKNOWN};

/// Name and provider of the tool by which agents reserve paths.
const TOOL: (&str, &str) = ("reserve", "portcullis");

/// The arguments of the tool.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wish {
    #[serde(default)]
    paths: Vec<String>,
    #[serde(default)]
    release: bool,
}

/// Returns the verdict on a change of `paths`.
pub(crate) fn write(config: &Config, request: &Request, paths: &[&PathRef]) -> Evaluation {
    let Some(claims) = claims(request) else { return unknown() };
    // The session's own temporary directory is not shared with other agents.
    let paths: Vec<&str> =
        paths.iter().filter(|path| path.zone != Zone::Temp).map(|path| path.canonical.as_str()).collect();
    if paths.is_empty() {
        return Evaluation::abstain();
    }
    if let Some(claim) = others(&claims, &paths) {
        return reserved(claim);
    }
    let is_own = |path: &&str| claims.iter().any(|claim| claim.own && claim.covers(path));
    if config.reservations == Reservations::Required && !paths.iter().all(is_own) {
        return Evaluation::deny(UNCLAIMED, "this agent has not reserved it")
            .setting("/reservations")
            .hint("reserve what you are about to change with the tool `reserve`");
    }
    let (until, rule, reason) = match config.reservations {
        Reservations::Automatic => (Until::Session, OWN, "it is this agent's from now on"),
        Reservations::Claimed | Reservations::Required | Reservations::Off => {
            (Until::Call, FREE, "no other agent has reserved it")
        }
    };
    Evaluation::allow(rule, reason).oblige(reserve(&paths, until))
}

/// Returns the verdict on a tool call: reservations are decided, other calls are left to others.
pub(crate) fn tool(config: &Config, request: &Request, context: &Context, call: &ToolCall) -> Evaluation {
    if (call.name.as_str(), call.provider.as_str()) != TOOL {
        return Evaluation::abstain();
    }
    let Some(claims) = claims(request) else { return unknown() };
    let Ok(wish) = serde_json::from_str::<Wish>(&call.input) else {
        return Evaluation::deny(CLAIM, "the call cannot be understood")
            .hint("give `paths`, a list of paths, and `release` where they are to be given back");
    };
    let paths: Vec<String> = wish.paths.iter().filter_map(|path| context.absolute(path)).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    if paths.is_empty() {
        return Evaluation::allow(CLAIM, "agents may see what is reserved");
    }
    if wish.release {
        return Evaluation::allow(CLAIM, "agents give back what they have").oblige(release(&paths));
    }
    let may_write = |path: &&str| {
        let mut places = config.allow_write.iter().filter_map(|entry| context.absolute(entry));
        places.any(|place| FilePattern::tree(place).matches(path).unwrap_or(false))
    };
    if !paths.iter().all(may_write) {
        return Evaluation::deny(CLAIM, "only what may be written can be reserved")
            .hint("reserve files below the places of `allow_write`");
    }
    match others(&claims, &paths) {
        Some(claim) => reserved(claim),
        None => {
            Evaluation::allow(CLAIM, "no other agent has reserved it").oblige(reserve(&paths, Until::Session))
        }
    }
}

/// Returns the rules that keep a command from claimed paths; `None` if the host gives no reliable list.
pub(crate) fn command(request: &Request) -> Option<Vec<FileRule>> {
    let others = claims(request)?.into_iter().filter(|claim| !claim.own);
    let rule = |claim: Claim| {
        FileRule::deny(RESERVED, FilePattern::tree(claim.path), FileRights::WRITE)
            .reason(format!("the agent `{}` has reserved it", claim.agent))
    };
    Some(others.map(rule).collect())
}

/// Returns the paths that an operation changes; empty if it changes none.
pub(crate) fn changed<'a>(path: &'a PathRef, operation: &'a FileOperation) -> Vec<&'a PathRef> {
    match operation {
        FileOperation::Read | FileOperation::List | FileOperation::Search(_) => Vec::new(),
        FileOperation::Move(other) | FileOperation::Link(other) => vec![path, other],
        FileOperation::Write(_)
        | FileOperation::Edit(_)
        | FileOperation::CreateDirectory
        | FileOperation::Delete
        | FileOperation::Symlink(_)
        | FileOperation::ChangeMetadata
        | FileOperation::Other(_) => vec![path],
    }
}

fn others<'a>(claims: &'a [Claim], paths: &[&str]) -> Option<&'a Claim> {
    claims.iter().find(|claim| !claim.own && paths.iter().any(|path| claim.overlaps(path)))
}

fn reserved(claim: &Claim) -> Evaluation {
    Evaluation::deny(RESERVED, format!("the agent `{}` has reserved `{}`", claim.agent, claim.path))
        .setting("/reservations")
        .hint("work on something else until it is given back, or ask the user")
}

fn unknown() -> Evaluation {
    Evaluation::deny(UNKNOWN, "the host does not say what is reserved")
        .setting("/reservations")
        .hint("the user has to repair the reservations, or set `reservations` to `off`")
}
