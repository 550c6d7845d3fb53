//! Every refusal that the product can make: each names its rule, says what to do, and is short.
//!
//! After an intended change: `UPDATE_REFERENCE=1`, then read the difference of `docs/refusals.md`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod reference;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use portcullis_decision::host_rules::HOST;
use portcullis_decision::{RefusalOrigin, RefusalText, host_step};
use portcullis_settings::{PROTECTIONS, SENSITIVE};
use portcullis_settings_format::LIFTABLE;

use reference::is_up_to_date;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/refusals.md");
/// Maximum number of words of a refusal, with a place and its rule.
const WORDS_MAX: usize = 60;
/// Maximum number of words of the next step.
const STEP_MAX: usize = 16;
/// The one source that puts a rule into a text.
const WRITER: &str = "decision/src/refusal_text.rs";

/// Ids that only ask, or only allow: the refusal after their question is the answer's.
const NEVER_DENY: [&str; 5] =
    ["host.by-exec", "host.escalation", "host.left-to-others", "host.run-again", "host.symbolic-links"];

/// The usual reason of each rule that no table contains. The refusal itself may say more.
const OTHER_REASONS: [(&str, &str); 47] = [
    ("host.agent-directory", "the agent's settings and extensions lie in it"),
    ("host.ambiguous-path", "servers read the path of the request in different ways, so no rule matches it"),
    ("host.audit-failed", "the audit log cannot be written"),
    ("host.brokered-tls", "TLS of the program with a declared host failed, or cannot be set up"),
    ("host.brokered-upgrade", "the request asks for another protocol, which cannot be checked"),
    ("host.closing", "the session is ending"),
    ("host.command-ended", "the command that opened the connection has ended"),
    ("host.credential-purpose", "the credential is not for this request"),
    ("host.credential-signature", "the request is not signed in the way that the gate can sign it anew"),
    ("host.escalation-off", "running commands outside the sandbox is switched off"),
    ("host.failed-lookup", "a host to which only some requests may be sent could not be looked up"),
    ("host.fault", "a part of Portcullis failed"),
    ("host.git-hook-files", "your own git runs programs from it"),
    ("host.git-only", "your own `ssh` carries git's protocol only"),
    ("host.hard-links", "the file has another name (hard link), which a rule protects"),
    ("host.hidden-server-name", "the TLS connection hides the name of its server"),
    ("host.malformed", "the connection does not follow the protocol"),
    ("host.name-not-handed-on", "tools of other extensions would read its name as another one"),
    ("host.no-answer", "the question was not answered"),
    ("host.no-branch", "the session's branch cannot be mounted, and the project itself is not changed"),
    ("host.no-rules", "a policy has no rules for the project's branch as it is now"),
    ("host.no-server-name", "the TLS connection does not name its server"),
    ("host.other-account", "the request may carry a credential that is not in the settings"),
    ("host.other-server", "the connection asks for another server than the one that was allowed"),
    ("host.path-directories", "programs are started from it by name"),
    ("host.placeholder", "the placeholder of a credential stands where the settings do not have it"),
    ("host.policy-failed", "a policy failed, and a failure denies"),
    ("host.portcullis", "it contains Portcullis's own settings, logs or programs"),
    ("host.powershell", "PowerShell cannot be confined"),
    ("host.private-tmp", "it is a socket or a private entry of another program in the shared `/tmp`"),
    ("host.push-rule", "the push changes more than the settings permit, or cannot be read"),
    ("host.replacements-differ", "two policies want different outputs"),
    ("host.request-rule", "no rule for the host allows this request"),
    ("host.reservation-failed", "the reservation could not be checked or written"),
    ("host.reserved", "another session has reserved it"),
    ("host.rewrites-differ", "two policies want different inputs for the tool"),
    ("host.rewrites-endless", "policies rewrite each other's input again and again"),
    ("host.settings-changed", "the settings changed while the connection was open"),
    (
        "host.special-address",
        "the name leads to an address of this machine, a private network or a cloud's metadata",
    ),
    ("host.too-many-questions", "the command has asked too often"),
    ("host.too-many-waiting", "too many connections wait for an answer already"),
    (
        "host.unfiltered-search",
        "rules hide names in the directory, and only the sandbox's own tools leave them out",
    ),
    ("host.unreadable-answer", "the answer is compressed, so a credential in it could not be found"),
    ("host.unreadable-http", "the HTTP request cannot be read reliably"),
    ("host.unresolved-name", "the name has no address that may be used"),
    ("host.unusable-path", "the path cannot be opened safely"),
    ("host.wrong-permit", "the permit is for something else"),
];

/// Returns the sources of the host without their tests, by name.
fn sources() -> Vec<(String, String)> {
    fn below(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() && name != "tests" {
                below(&path, found);
            } else if name.ends_with(".rs") && !name.contains("test") {
                found.push(path);
            }
        }
    }
    let host = Path::new(ROOT).join("host");
    let mut files = Vec::new();
    for entry in fs::read_dir(&host).unwrap() {
        below(&entry.unwrap().path().join("src"), &mut files);
    }
    let text = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default().to_owned();
        (path.strip_prefix(&host).unwrap().display().to_string(), code)
    };
    let all: Vec<(String, String)> = files.iter().map(text).collect();
    assert!(all.len() > 300, "{} sources", all.len());
    all
}

/// Returns the ids of the host's rules that its sources name.
fn ids_in_sources() -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    for (name, text) in sources() {
        // The table of steps names them all.
        if name == WRITER {
            continue;
        }
        for part in text.split('"') {
            let is_id = part.strip_prefix("host.").is_some_and(|rest| {
                !rest.is_empty() && rest.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-')
            });
            // Files of pi's extension and of the crate `changes`, and an attribute of OpenTelemetry.
            if is_id && !["host.json", "host.rs", "host.name"].contains(&part) {
                ids.insert(part.to_owned());
            }
        }
    }
    assert!(ids.len() > 60, "{ids:?}");
    ids
}

/// Returns the reasons that tables give, by the id of their rule; of several the longest.
fn reasons() -> BTreeMap<&'static str, String> {
    let mut reasons: BTreeMap<&str, String> = BTreeMap::new();
    let rules = portcullis_exec_surface::RULES.iter().map(|rule| (rule.id, rule.reason.to_owned()));
    let protections = PROTECTIONS.iter().map(|each| (each.id, each.reason.to_owned()));
    let sensitive = SENSITIVE.iter().map(|entry| (entry.id, entry.reason()));
    for (id, reason) in rules.chain(protections).chain(sensitive) {
        let known = reasons.entry(id).or_default();
        if reason.len() > known.len() {
            *known = reason;
        }
    }
    reasons
}

#[test]
fn every_rule_of_the_host_has_a_next_step() {
    let ids = ids_in_sources();
    for id in &ids {
        let known =
            [host_step(id).is_some(), LIFTABLE.contains(&id.as_str()), NEVER_DENY.contains(&id.as_str())];
        assert_eq!(known.iter().filter(|is_known| **is_known).count(), 1, "{id}: {known:?}");
    }
    for id in LIFTABLE.iter().chain(&NEVER_DENY) {
        assert!(ids.contains(*id), "no source names `{id}`");
    }
    let steps = fs::read_to_string(Path::new(ROOT).join("host").join(WRITER)).unwrap();
    let steps = steps.lines().filter_map(|line| line.strip_prefix("    (\"host.")?.split_once('"'));
    for (id, _) in steps.filter(|(id, _)| !id.is_empty()) {
        assert!(ids.contains(&format!("host.{id}")), "no source names `host.{id}`");
    }
}

#[test]
fn every_refusal_names_its_rule_and_the_next_step_and_is_short() {
    let all = reasons();
    let ids = ids_in_sources();
    let host =
        ids.iter().map(|id| (HOST, id.as_str(), all.get(id.as_str()).map_or("it is denied", String::as_str)));
    let others = [
        ("base", "base.outside", "it lies outside this project"),
        ("base", "base.network", "no rule names this host"),
        ("settings", "filesystem.denyWrite[0]", "`fixtures` is denied in the settings"),
        ("git-guard", "git.push", "it goes to the branch that is checked out"),
    ];
    let origins = [RefusalOrigin::Rule, RefusalOrigin::User, RefusalOrigin::Unanswered];
    for (policy, rule, reason) in host.chain(others) {
        for origin in origins {
            for what in [None, Some("/home/ann/src/shop/notes.txt --write")] {
                let refusal = RefusalText { origin, ..RefusalText::by_rule(policy, rule, reason) };
                let (text, step) = (refusal.with_next_step(what), refusal.next_step(what));
                assert!(text.contains(&format!("(rule `{rule}` of `{policy}`)")), "{text}");
                assert!(!step.trim().is_empty() && text.ends_with(&step), "{text}");
                assert!(step.starts_with(char::is_uppercase), "{step}");
                assert!(!refusal.remedy(what).is_empty(), "{rule}");
                let count = |text: &str| text.split_whitespace().count();
                assert!(count(&text) <= WORDS_MAX, "{} words: {text}", count(&text));
                assert!(count(&step) <= STEP_MAX, "{} words: {step}", count(&step));
                assert!(reason.len() < 200 && !reason.ends_with('.'), "{rule}: {reason}");
            }
        }
    }
}

#[test]
fn no_other_source_puts_a_rule_into_a_text() {
    // Where the sandbox cannot be set up, or where the rule itself is the subject.
    const ALLOWED: [&str; 1] = [WRITER];
    let writes = |text: &str| {
        text.lines().any(|line| line.contains("(rule `{") && !line.trim_start().starts_with("//"))
    };
    let writers: Vec<String> =
        sources().into_iter().filter(|(_, text)| writes(text)).map(|(name, _)| name).collect();
    assert_eq!(writers, ALLOWED);
}

#[test]
fn the_page_shows_every_refusal() {
    let mut page = "# Refusals\n\nThe rules of Portcullis itself: why each refuses, and how you can allow it. \
        A refusal names its rule in brackets. `portcullis explain` shows the newest refusal and how to allow it.\n\n\
        If you were asked and said no, or could not be asked, `portcullis allow` with the path or host allows it.\n\n\
        Generated by a test from the rules.\n\n| rule | why | to allow |\n|---|---|---|\n"
        .to_owned();
    let reasons = reasons();
    for id in ids_in_sources().iter().filter(|id| !NEVER_DENY.contains(&id.as_str())) {
        let other = OTHER_REASONS.iter().find(|(rule, _)| rule == id).map(|(_, reason)| *reason);
        let reason = reasons.get(id.as_str()).map(String::as_str).or(other);
        let reason = reason.unwrap_or_else(|| panic!("no reason for `{id}`"));
        let why = reason.split("; only your settings").next().unwrap_or_default();
        let remedy = RefusalText::by_rule(HOST, id, reason).remedy(None);
        writeln!(page, "| `{id}` | {why} | {remedy} |").unwrap();
    }
    is_up_to_date(PAGE, &page);
}
