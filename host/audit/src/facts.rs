//! The facts that policies get with a request, logged so that a decision can be repeated.
//!
//! They are the same for nearly all decisions of a session, and larger than most requests. So they are written only
//! when they change and at the start of each file; later lines refer to the line that contains them.

use std::sync::Arc;

use serde_json::Value;

use crate::mask::{MASK, digest, mask};
use crate::record::VerdictLine;

/// Maximum size of a session's facts in a line, in bytes; a long `PATH` takes a fourth of it.
const LARGEST_FACTS: usize = 16 * 1024;

/// Maximum size of the grants, in bytes. Few grants cover a request.
pub(crate) const LARGEST_GRANTS: usize = 8 * 1024;

/// The facts that were written last, before masking.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Facts {
    value: Arc<Value>,
    at: u64,
}

impl Facts {
    /// Sets the facts of the verdict in line `sequence`: the new ones of `told`, or a reference.
    ///
    /// Returns the last facts after that line is written, if they have changed.
    pub(crate) fn refer(&self, verdict: &mut VerdictLine, told: &Arc<Value>, sequence: u64) -> Option<Self> {
        verdict.facts_at = 0;
        if told.is_null() {
            return None;
        }
        if Arc::ptr_eq(told, &self.value) || *told == self.value {
            verdict.facts_at = self.at;
            return None;
        }
        verdict.facts = bounded(mask(Value::clone(told)), LARGEST_FACTS);
        verdict.facts_at = sequence;
        Some(Self { value: Arc::clone(told), at: sequence })
    }
}

/// Returns a value, or its length and hash if it is too long.
pub(crate) fn bounded(value: Value, most: usize) -> Value {
    if value.is_null() {
        return value;
    }
    let text = value.to_string();
    if text.len() <= most { value } else { digest(&text) }
}

/// The facts that later lines of a log can refer to. It must get every verdict of the log, in order.
#[derive(Debug, Default)]
pub struct Recall {
    last: Option<(u64, Value)>,
}

impl Recall {
    /// Returns the facts of the verdict in line `sequence`, or `None` if the log does not contain them.
    pub fn facts(&mut self, sequence: u64, verdict: &VerdictLine) -> Option<&Value> {
        if !verdict.facts.is_null() {
            self.last = Some((sequence, verdict.facts.clone()));
        }
        let (at, facts) = self.last.as_ref()?;
        (*at == verdict.facts_at).then_some(facts)
    }
}

/// Returns true if a part of a line is complete: not masked, cut, or replaced by its hash.
#[must_use]
pub fn is_whole(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.contains(MASK),
        Value::Array(items) => items.iter().all(is_whole),
        Value::Object(members) => !members.contains_key("sha256") && members.values().all(is_whole),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn verdict(facts: Value) -> VerdictLine {
        VerdictLine { facts, ..VerdictLine::default() }
    }

    /// Returns the line of a verdict, and the last facts after it.
    fn refer(facts: &Facts, told: &Value, sequence: u64) -> (VerdictLine, Option<Facts>) {
        let mut line = VerdictLine::default();
        let new = facts.refer(&mut line, &Arc::new(told.clone()), sequence);
        (line, new)
    }

    #[test]
    fn written_where_they_change() {
        let mut facts = Facts::default();
        let mut recall = Recall::default();
        let (one, two) = (json!({ "home": "/home/u" }), json!({ "home": "/home/v" }));
        let told = [&one, &one, &Value::Null, &one, &two, &two, &one];
        let mut at = Vec::new();
        for (sequence, value) in (1..).zip(told) {
            let (line, new) = refer(&facts, value, sequence);
            facts = new.unwrap_or(facts);
            assert_eq!(recall.facts(sequence, &line).cloned().unwrap_or_default(), *value, "{sequence}");
            at.push((line.facts_at, line.facts.is_null()));
        }
        let expected = [(1, false), (1, true), (0, true), (1, true), (5, false), (5, true), (7, false)];
        assert_eq!(at, expected);
    }

    #[test]
    fn what_was_not_seen_is_not_known() {
        let mut recall = Recall::default();
        assert_eq!(recall.facts(3, &VerdictLine { facts_at: 1, ..VerdictLine::default() }), None);
        assert!(recall.facts(4, &VerdictLine { facts_at: 4, ..verdict(json!({ "a": 1 })) }).is_some());
        assert_eq!(recall.facts(5, &VerdictLine { facts_at: 1, ..VerdictLine::default() }), None);
    }

    #[test]
    fn secrets_and_long_ones_are_not_kept() {
        let told = json!({ "session-file": "/x", "api-key": "hunter2" });
        let (line, facts) = refer(&Facts::default(), &told, 1);
        assert_eq!(line.facts, json!({ "session-file": "/x", "api-key": MASK }));
        assert!(!is_whole(&line.facts));
        // Equal facts are recognized, masked or not.
        let (again, new) = refer(&facts.unwrap(), &told, 2);
        assert_eq!((again.facts_at, again.facts, new), (1, Value::Null, None));

        let path: Vec<String> = (0..2000).map(|number| format!("/opt/tool-{number}/bin")).collect();
        let (long, new) = refer(&Facts::default(), &json!({ "path": path }), 1);
        assert!(new.is_some());
        assert!(long.facts.get("sha256").is_some() && !is_whole(&long.facts), "{}", long.facts);
        assert!(is_whole(&json!({ "a": ["b", 1, null] })));
    }
}
