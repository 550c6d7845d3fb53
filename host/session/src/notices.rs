//! All notices of the host: lines for the user that need no answer.
//!
//! Each function is one notice; `docs/screens-pi.md` shows an example of each.

use portcullis_decision::GrantScope;
use portcullis_text::escape;

/// An answer was saved. `session` is the name of the session in texts for the user.
#[must_use]
pub fn saved(scope: GrantScope, session: &str, covers: &str) -> String {
    match scope {
        GrantScope::Once | GrantScope::Session => format!("Until this {session} ends: {covers}"),
        GrantScope::Project => format!("Saved: {covers}, in this project"),
        GrantScope::User => format!("Saved: {covers}, in every project"),
    }
}

/// An answer that could not be written into the settings.
#[must_use]
pub fn not_saved(error: &str) -> String {
    format!("Your answer counts for this session only, because it could not be saved: {}.", escape(error))
}

/// A credential was added to the settings, after a yes to an offer.
#[must_use]
pub fn credential_added(adds: &str, name: &str) -> String {
    format!(
        "Saved: {}, in every project · undo: portcullis credentials remove {}",
        escape(adds),
        escape(name)
    )
}

/// A credential that could not be added to the settings.
#[must_use]
pub fn credential_not_added(error: &str) -> String {
    format!("The credential was not added to your settings: {}.", escape(error))
}

/// A notice of a policy.
#[must_use]
pub fn of_policy(policy: &str, text: &str) -> String {
    format!("{}: {}", escape(policy), escape(text))
}

/// A fault of the host.
#[must_use]
pub fn failed(doing: &str, panic: &str) -> String {
    format!("Portcullis failed while {doing} ({panic}); it now refuses everything in this session")
}

/// Edited settings from which no sandbox can be made.
#[must_use]
pub fn edit_refuses_commands(why: &str) -> String {
    format!(
        "Commands are refused, because no sandbox can be set up from the edited settings: {}. Fix them.",
        escape(why)
    )
}

/// The end of an answer on which the sandbox depends.
#[must_use]
pub fn answer_ended(why: &str) -> String {
    format!(
        "Commands are refused, because an answer has ended without which no sandbox can be set up: {}.",
        escape(why)
    )
}

/// A policy without rules for the branch, or another fact of version control, as it is now.
#[must_use]
pub fn no_rules_for_facts(why: &str) -> String {
    format!(
        "The project's version control has changed, and the rules for it cannot be put in force: {}. Until it \
         changes again, commands are refused.",
        escape(why)
    )
}

/// An answer that counts for files, but not for commands.
#[must_use]
pub fn not_for_commands(why: &str) -> String {
    format!(
        "Your answer applies to tools, but not to commands, because their sandbox cannot be changed: {}.",
        escape(why)
    )
}

/// A reservation that could not be given back.
#[must_use]
pub fn still_reserved(error: &str) -> String {
    format!("A reservation could not be given back: {}.", escape(error))
}

/// A limit of the network gate.
#[must_use]
pub fn network(why: &str) -> String {
    format!("network: {why}")
}

/// Settings of another sandbox.
#[must_use]
pub fn other_settings(file: &str, warning: &str) -> String {
    format!("{}: {warning}", escape(file))
}

/// Edits of the `settings` or `policies` that are in force.
#[must_use]
pub fn changed(what: &str, changes: &[String]) -> String {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for change in changes {
        let (label, item) = labelled(change);
        match groups.last_mut().filter(|(last, _)| !label.is_empty() && *last == label) {
            Some((_, items)) => items.push(item),
            None => groups.push((label, vec![item])),
        }
    }
    let words = |(label, items): (String, Vec<&str>)| match label.as_str() {
        "" => items.join(", "),
        label => format!("{label} {}", items.join(", ")),
    };
    format!("The {what} have changed: {}", groups.into_iter().map(words).collect::<Vec<_>>().join("; "))
}

/// Splits a change (`+ readable ~/notes`) into a label in words and its item. Others are items without a label.
fn labelled(change: &str) -> (String, &str) {
    let item = |sign: &str| change.strip_prefix(sign)?.split_once(' ');
    match (item("+ "), item("- ")) {
        (Some(("rule", item)), _) => ("new rule".to_owned(), item),
        (None, Some(("rule", item))) => ("removed rule".to_owned(), item),
        (Some((what, item)), _) => (format!("now {what}"), item),
        (None, Some((what, item))) => (format!("no longer {what}"), item),
        (None, None) => (String::new(), change),
    }
}

/// Edits that cannot be put in force.
#[must_use]
pub fn edit_not_in_force(edited: &str, error: &str) -> String {
    format!("{edited} cannot be used, so the previous ones are STILL in force: {}", escape(error))
}

/// Settings with which the session cannot be opened.
#[must_use]
pub fn blocked(error: &str) -> String {
    escape(&format!("Tools are blocked until you fix this: {error}"))
}

/// A policy whose publisher the user no longer trusts.
#[must_use]
pub fn revoked(error: &str) -> String {
    escape(&format!("Every tool is blocked until the session ends: {error}"))
}
