//! `policy trust`: shows the trusted publishers, and adds entries to the user's trust file.

use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_bootstrap::streams::say;
use portcullis_bootstrap::trust_files;
use portcullis_command_line::args::share::{Dates, Publisher, Trust};
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::output::{Page, Tint, cell, tinted};
use portcullis_policy_tools::{KeyDates, NewPublisher, TrustChange, add_trust};
use serde_json::{Value, json};

pub(super) fn run(verb: Trust) -> exit::Outcome {
    let around = ProcessEnv::read()?;
    let (change, as_json) = match verb {
        Trust::List { json } => return list(&around, json),
        Trust::Publisher(publisher) => {
            let as_json = publisher.json;
            (TrustChange::Publisher(new_publisher(publisher)), as_json)
        }
        Trust::Key { publisher, keys, dates, json } => {
            (TrustChange::Keys { publisher, keys, dates: key_dates(dates) }, json)
        }
        Trust::Revoke { what, reason, json } => (TrustChange::Revocation { what, reason }, json),
        Trust::File { file, json } => (TrustChange::File(file), json),
    };
    let entries = add_trust(&around, change)?;
    let file = trust_files::user_file(&around.agent_directory);
    if as_json {
        let mut page = Page::new(&around);
        page.json(&json!({ "file": file, "added": entries }));
        page.print()?;
        return Ok(Exit::Done);
    }
    say(&format!("portcullis: written to `{}`", file.display()));
    Ok(Exit::Done)
}

fn new_publisher(publisher: Publisher) -> NewPublisher {
    let Publisher { name, namespaces, registry, keys, signers, threshold, dates, json: _ } = publisher;
    NewPublisher { name, namespaces, registry, keys, signers, threshold, dates: key_dates(dates) }
}

fn key_dates(dates: Dates) -> KeyDates {
    KeyDates { valid_after: dates.valid_after, valid_before: dates.valid_before }
}

fn list(around: &ProcessEnv, json: bool) -> exit::Outcome {
    let trust = trust_files::read(&around.agent_directory)?;
    let mut page = Page::new(around);
    if json {
        let publishers: Vec<Value> = trust
            .publishers
            .iter()
            .map(|publisher| {
                let keys: Vec<&str> = publisher.keys.iter().map(|(key, _)| key.fingerprint()).collect();
                json!({
                    "name": publisher.name, "namespaces": publisher.namespaces, "registry": publisher.registry,
                    "threshold": publisher.threshold, "keys": keys,
                })
            })
            .collect();
        let revoked: Vec<Value> =
            trust.revocations().map(|(what, reason)| json!({ "what": what, "reason": reason })).collect();
        page.json(&json!({
            "publishers": publishers, "revoked": revoked, "trusted": trust.trusted(),
            "requireSignature": trust.require_signature,
        }));
        page.print()?;
        return Ok(Exit::Done);
    }
    for publisher in &trust.publishers {
        let names: Vec<String> = publisher.namespaces.iter().map(|name| format!("{name}:")).collect();
        page.row("", &[cell(&publisher.name), cell(&names.join(" ")), cell(&publisher.registry)], &[]);
        for (key, _) in &publisher.keys {
            let word = match trust.revoked(key.fingerprint()) {
                Some(reason) => tinted(&format!("revoked: {reason}"), Tint::Bad),
                None => tinted("", Tint::Plain),
            };
            page.row("  ", &[cell(key.fingerprint()), word], &[]);
        }
    }
    let revoked: Vec<_> = trust
        .revocations()
        .map(|(what, reason)| vec![tinted("revoked", Tint::Bad), cell(what), cell(reason)])
        .collect();
    page.table("", &revoked);
    if trust.publishers.is_empty() && trust.trusted().is_empty() && revoked.is_empty() {
        page.line("no trusted publishers; add one with `portcullis policy trust publisher`");
    }
    let trusted: Vec<_> =
        trust.trusted().iter().map(|digest| vec![tinted("trusted", Tint::Open), cell(digest)]).collect();
    page.table("", &trusted);
    page.print()?;
    Ok(Exit::Done)
}
