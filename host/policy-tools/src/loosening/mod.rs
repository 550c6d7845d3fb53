//! Finds what a new version of a policy allows and the old one does not.
//!
//! Standing rules are compared for all paths, hosts and names: the patterns of both versions are walked as one
//! automaton, and each way in which they can match has an example, which the enforcer's own rule set then judges. A
//! policy is one of several, so a change counts as loosening if it loosens the decision alone or beside another policy.

mod classes;
mod commands;
mod files;
mod network;
mod witness;

#[cfg(test)]
mod tests;

use portcullis_decision::profile::Profile;
use portcullis_decision::{Base, Context};

use crate::corpus::{Change, PolicyAnswer};
use witness::Loosening;

/// Returns where new standing rules are milder than old ones, each with a witness.
pub(crate) fn of_rules(old: &Profile, new: &Profile, base: &Base) -> Vec<Change> {
    // Attributes that only inform, and reasons, do not decide.
    let found = files::loosened(old, new, base).and_then(|mut found| {
        found.extend(network::loosened(old, new)?);
        found.extend(commands::loosened(old, new)?);
        Ok(found)
    });
    match found {
        Ok(found) => found.into_iter().map(Loosening::into_change).collect(),
        // What cannot be compared may be milder.
        Err(error) => {
            let [old, new] = ["compared", "not compared"].map(|word| PolicyAnswer::new(word, "", ""));
            let new = PolicyAnswer { reason: error.to_string(), ..new };
            vec![Change { name: format!("standing rules: {error}"), old, new, loosens: true, beside: None }]
        }
    }
}

/// Returns the host's base rules in a context.
pub(crate) fn base_of(context: &Context) -> Base {
    let path = |text: &str| portcullis_decision::path_text::decode(text).filter(|path| path.is_absolute());
    let mut closed: Vec<_> = ["/home", "/root", &context.machine.home].into_iter().filter_map(path).collect();
    closed.sort();
    closed.dedup();
    Base {
        workspace: context.workspace.roots.iter().filter_map(|root| path(root)).collect(),
        temp: path(&context.machine.temp).unwrap_or_else(|| "/tmp".into()),
        closed,
        ..Base::default()
    }
}
