//! `team status`: shows the team's bundle on this machine, the packs it requires, and what is wrong.

use std::time::{Duration, SystemTime};

use portcullis_bootstrap::process_env::{ProcessEnv, unix_seconds};
use portcullis_bootstrap::teams::{self, Joined};
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::human::{ago, duration};
use portcullis_command_line::output::{Cell, Page, Tint, cell, tinted};
use portcullis_packs::Seconds;
use portcullis_teams::{HeldBundle, Owner, StagedMode, Trusted, Unprotected};
use serde_json::json;

use super::membership::joined;
use super::report::report;

pub(super) fn run(around: &ProcessEnv, as_json: bool) -> exit::Outcome {
    let joined = joined(around)?;
    let problem = teams::in_force(&around.agent_directory).err().map(|error| format!("{error:#}"));
    let opened = joined.open();
    let problem = problem.or_else(|| opened.as_ref().err().map(|error| format!("{error:#}")));
    let trusted = opened.ok().flatten();
    let bundle = trusted.as_ref().and_then(|trusted| trusted.bundle.as_ref());
    let last = joined.store.last_check();
    let failed = last.as_ref().and_then(|(_, problem)| problem.clone());
    let now = unix_seconds();
    let is_good = problem.is_none()
        && failed.is_none()
        && bundle.is_some_and(|bundle| !bundle.has_expired(now) && bundle.is_current);
    let mut page = Page::new(around);
    if as_json {
        page.json(&json!({
            "team": joined.membership.team,
            "registry": joined.membership.registry.place(),
            "file": joined.file,
            "mandatory": joined.membership.mandatory,
            "noSandbox": joined.membership.no_sandbox,
            "good": is_good,
            "problem": problem,
            "expired": bundle.map(|bundle| bundle.has_expired(now)),
            "signedBy": bundle.map(|bundle| &bundle.signed_by),
            "yanked": bundle.map(|bundle| &bundle.content.yanked),
            "settings": bundle.map(|bundle| &bundle.content.settings),
            "lastCheck": last.as_ref().map(|(at, problem)| json!({ "atMs": millis(*at), "problem": problem })),
            "inForce": report(around, &joined, trusted.as_ref()),
        }));
    } else {
        page.table("", &rows(&joined, trusted.as_ref(), bundle, now));
        page.table("  ", &packs(&joined, bundle));
        for line in problem.iter().chain(&failed) {
            page.row("", &[tinted("problem", Tint::Bad), cell(line)], &[7]);
        }
    }
    page.print()?;
    Ok(if is_good { Exit::Done } else { Exit::Bad })
}

fn rows(
    joined: &Joined,
    trusted: Option<&Trusted>,
    bundle: Option<&HeldBundle>,
    now: Seconds,
) -> Vec<Vec<Cell>> {
    let membership = &joined.membership;
    let row = |name: &str, text: &str| vec![cell(name), cell(text)];
    let by = match (joined.owner, membership.mandatory) {
        (Owner::User, _) => "joined by you",
        (Owner::Machine, true) => "mandatory on this machine",
        (Owner::Machine, false) => "joined by this machine",
    };
    let mut rows = vec![
        row("team", &format!("{}, {by} ({})", membership.team, joined.file.display())),
        row("from", &membership.registry.place()),
    ];
    match bundle {
        None => rows.push(vec![cell("bundle"), tinted("none is in force", Tint::Bad)]),
        Some(bundle) => {
            let since = trusted.map_or(0, |trusted| trusted.held.since);
            let version = bundle.content.version;
            rows.push(row("bundle", &format!("{version}, in force since {}", ago(ms(since)))));
            rows.push(row("digest", &bundle.digest));
            rows.push(row("signed by", &bundle.signed_by.join(", ")));
            rows.push(expiry(bundle, now));
            rows.extend(
                bundle
                    .content
                    .yanked
                    .iter()
                    .map(|one| row("taken back", &format!("version {}: {}", one.version, one.reason))),
            );
            let settings = bundle.content.settings.len();
            if settings > 0 {
                rows.push(row("settings", "`portcullis config show --changed` names those of the team"));
            }
        }
    }
    let checked = trusted.map_or(0, |trusted| trusted.held.checked_at);
    rows.push(row("checked", &if checked == 0 { "never".to_owned() } else { ago(ms(checked)) }));
    match membership.no_sandbox {
        Unprotected::Allow => {}
        Unprotected::Log => rows.push(row("--no-sandbox", "is recorded in the audit log")),
        Unprotected::Forbid => rows.push(row("--no-sandbox", "is forbidden")),
    }
    rows
}

fn expiry(bundle: &HeldBundle, now: Seconds) -> Vec<Cell> {
    let left = bundle.content.expires_at.saturating_sub(now);
    let time = Duration::from_secs(left.unsigned_abs());
    let (text, tint) = match (left > 0, bundle.is_current) {
        (true, true) => (format!("in {}", duration(time)), Tint::Good),
        (true, false) => {
            ("signed by keys that the team no longer uses; it stays in force".to_owned(), Tint::Open)
        }
        (false, _) => (format!("{} ago; it stays in force", duration(time)), Tint::Bad),
    };
    vec![cell("expires"), tinted(&text, tint)]
}

fn packs(joined: &Joined, bundle: Option<&HeldBundle>) -> Vec<Vec<Cell>> {
    let packs = bundle.iter().flat_map(|bundle| &bundle.content.packs);
    let row = |pack: &portcullis_teams::BundlePack| {
        let mode = match joined.mode(&pack.id, pack.stage) {
            StagedMode::Enforce => tinted("enforced", Tint::Good),
            StagedMode::Observe => tinted("only observed", Tint::Open),
            StagedMode::Off => tinted("not on this machine yet", Tint::Faint),
        };
        vec![cell(&pack.id), cell(&pack.version.to_string()), mode, cell(&pack.digest)]
    };
    packs.map(row).collect()
}

fn ms(seconds: Seconds) -> u64 {
    u64::try_from(seconds).unwrap_or(0).saturating_mul(1000)
}

fn millis(at: SystemTime) -> u64 {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
