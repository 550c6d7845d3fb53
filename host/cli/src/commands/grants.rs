//! `portcullis grants`: answers in force, in files and in running sessions.

use std::path::Path;

use anyhow::Context as _;
use portcullis_bootstrap::control::{Kept, Order, Outcome, ask};
use portcullis_bootstrap::loaded_settings;
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_bootstrap::streams::say;
use portcullis_settings::{KeptGrant, RealDisk, Store, discover, kept_grants, resolve, revoke};
use portcullis_text::{escape, utc};
use serde_json::json;

use super::asks::{ask_all, directory, done, parts};
use portcullis_command_line::args::asks::Grants;
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::human::path;
use portcullis_command_line::output::{Cell, Page, Tint, cell, tinted};
use portcullis_server::kept_answers::{spoken, still_allowed};

/// Runs the subcommand.
pub(crate) fn run(grants: &Grants) -> exit::Outcome {
    let around = ProcessEnv::read()?;
    match grants {
        Grants::List { project, all, json } => list(&around, project.as_deref(), *all, *json),
        Grants::Revoke { id, project } => take_back(&around, project.as_deref(), id),
    }
}

fn list(around: &ProcessEnv, project: Option<&Path>, all: bool, as_json: bool) -> exit::Outcome {
    let places = loaded_settings::places(around, project.unwrap_or(&around.cwd), None)?;
    let kept = kept_grants(&places, &RealDisk, all)?;
    let (remembered, exit) = remembered(around)?;
    let mut page = Page::new(around);
    if as_json {
        let session = |(session, kept): &(String, Kept)| {
            let id = format!("{session}:{}", kept.id);
            json!({ "id": id, "text": kept.text, "expiresAt": kept.expires_at })
        };
        let sessions: Vec<_> = remembered.iter().map(session).collect();
        page.json(&json!({ "kept": kept, "sessions": sessions }));
    } else {
        let rows: Vec<_> = remembered
            .iter()
            .map(of_session)
            .chain(kept.iter().map(|grant| of_file(around, grant)))
            .collect();
        if rows.is_empty() {
            page.line("nothing beyond the defaults is allowed");
        }
        page.table("", &rows);
    }
    page.print()?;
    Ok(exit)
}

fn of_session((session, kept): &(String, Kept)) -> Vec<Cell> {
    let place = format!("this session{}", end(kept.expires_at));
    vec![cell(&format!("{session}:{}", kept.id)), cell(&kept.text), tinted(&place, Tint::Faint)]
}

fn of_file(around: &ProcessEnv, grant: &KeptGrant) -> Vec<Cell> {
    let place =
        format!("{}:{}{}", path(around, &grant.origin.file), grant.origin.at.line, end(grant.expires_at));
    vec![cell(&grant.id), cell(&spoken(grant, &around.home)), tinted(&place, Tint::Faint)]
}

fn end(expires_at: u32) -> String {
    match expires_at {
        0 => String::new(),
        end => format!(", until {} UTC", utc(u64::from(end) * 1000)),
    }
}

/// Returns the answers that running sessions remember, with the short names of the sessions.
fn remembered(around: &ProcessEnv) -> anyhow::Result<(Vec<(String, Kept)>, Exit)> {
    let mut all = Vec::new();
    let (outcomes, exit) = ask_all(around, &Order::Remembered {})?;
    for (name, outcome) in outcomes {
        if let Outcome::Remembered { remembered } = outcome {
            all.extend(remembered.into_iter().map(|kept| (name.clone(), kept)));
        }
    }
    Ok((all, exit))
}

fn take_back(around: &ProcessEnv, project: Option<&Path>, id: &str) -> exit::Outcome {
    if id.contains(':') {
        let (session, number) = parts(id)?;
        return done(around, session, ask(&directory(around, session)?, &Order::Forget { id: number })?);
    }
    let places = loaded_settings::places(around, project.unwrap_or(&around.cwd), None)?;
    let kept = kept_grants(&places, &RealDisk, true)?;
    let grant = kept.iter().find(|grant| grant.id == id);
    let grant = grant.with_context(|| {
        format!("no answer has the id `{}`, see `portcullis grants list --all`", escape(id))
    })?;
    revoke(&Store::new(&places), grant)?;
    if let Err(error) = discover(&places, &RealDisk).and_then(|found| resolve(&found, &places, &RealDisk)) {
        let why = escape(&format!("{:#}", anyhow::Error::new(error)));
        say(&format!("portcullis: running sessions keep it until the settings can be used again: {why}"));
    }
    let left = kept_grants(&places, &RealDisk, false).unwrap_or_default();
    let (home, grant) = (&around.home, &grant);
    let what = format!("taken back: {}{}", spoken(grant, home), still_allowed(grant, &left, home));
    done(around, "", Some(Outcome::Done { what }))
}
