//! Explains which of the votes decided, and why.

use serde::Serialize;

use crate::record::{PolicyLine, VerdictLine};

/// The vote that decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Winner {
    /// Its index in [`VerdictLine::policies`]; `None` if no vote decided.
    pub place: Option<usize>,
    /// Why it decided.
    pub why: Explanation,
}

/// Why a vote decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Explanation {
    /// No vote was stricter.
    Strictest,
    /// Another vote was stricter, and `combine` in the settings prefers this one.
    Preferred,
    /// The policy failed, and a failure denies.
    Failed,
    /// The policy asked, and the user, or an earlier answer of the user, allowed it.
    Granted,
    /// The policy asked, and it was not allowed.
    Refused,
    /// No policy decided, so the user was asked.
    NoOpinion,
    /// The host decided by itself.
    Host,
}

impl Explanation {
    /// Returns the reason as a sentence for the user.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Strictest => "the strictest vote counts",
            Self::Preferred => "`combine` in the settings prefers it to a stricter one",
            Self::Failed => "the policy failed, and a failure denies",
            Self::Granted => "the rule asks, and the answer was yes",
            Self::Refused => "the rule asks, and without a yes it is refused",
            Self::NoOpinion => "no rule matched, so the user is asked",
            Self::Host => "the host itself decided",
        }
    }
}

/// Returns the vote that decided.
///
/// ```
/// use portcullis_audit::{PolicyLine, VerdictLine, Explanation, winner};
/// let vote = |name: &str, verdict: &str| PolicyLine {
///     name: name.to_owned(),
///     verdict: verdict.to_owned(),
///     counts: true,
///     ..PolicyLine::default()
/// };
/// let line = VerdictLine {
///     effect: "deny".to_owned(),
///     policy: "settings".to_owned(),
///     policies: vec![vote("workspace", "allow"), vote("rules:settings", "deny")],
///     ..VerdictLine::default()
/// };
/// let winner = winner(&line);
/// assert_eq!((winner.place, winner.why), (Some(1), Explanation::Strictest));
/// ```
#[must_use]
pub fn winner(line: &VerdictLine) -> Winner {
    let place = line.policies.iter().position(|vote| vote.counts && decided(vote, line));
    let vote = place.and_then(|place| line.policies.get(place));
    let asked = vote.is_some_and(|vote| vote.verdict == "ask") || (vote.is_none() && is_unopposed(line));
    let strictest = line.policies.iter().filter(|vote| vote.counts).map(strictness).max().unwrap_or(0);
    let why = match vote {
        _ if asked && line.effect == "allow" => Explanation::Granted,
        _ if asked && line.effect == "deny" => Explanation::Refused,
        None if is_unopposed(line) => Explanation::NoOpinion,
        None => Explanation::Host,
        Some(vote) if vote.verdict == "failed" => Explanation::Failed,
        Some(vote) if strictness(vote) < strictest => Explanation::Preferred,
        Some(_) => Explanation::Strictest,
    };
    Winner { place, why }
}

/// The user's own answer has the rule that asked.
fn decided(vote: &PolicyLine, line: &VerdictLine) -> bool {
    if line.policy == "user" {
        return vote.verdict == "ask" && vote.rule == line.rule;
    }
    let name = vote.name.strip_prefix("rules:").unwrap_or(&vote.name);
    name == line.policy && vote.rule == line.rule && vote.verdict != "abstain"
}

fn is_unopposed(line: &VerdictLine) -> bool {
    line.rule == "base.no-opinion"
}

fn strictness(vote: &PolicyLine) -> u8 {
    match vote.verdict.as_str() {
        "allow" => 1,
        "ask" => 2,
        "deny" | "failed" => 3,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Votes have the form `name verdict rule`, with `~` before one that is only observed.
    fn check(effect: &str, policy: &str, rule: &str, votes: &[&str], place: Option<usize>, why: Explanation) {
        let vote = |text: &&str| {
            let (counts, text) = text.strip_prefix('~').map_or((true, *text), |text| (false, text));
            let mut words = text.split(' ').map(str::to_owned);
            let mut next = || words.next().unwrap_or_default();
            PolicyLine { name: next(), verdict: next(), rule: next(), counts, ..PolicyLine::default() }
        };
        let line = VerdictLine {
            effect: effect.to_owned(),
            policy: policy.to_owned(),
            rule: rule.to_owned(),
            policies: votes.iter().map(vote).collect(),
            ..VerdictLine::default()
        };
        assert_eq!(winner(&line), Winner { place, why }, "{effect} {policy} {rule} {votes:?}");
    }

    #[test]
    fn who_decided() {
        let w = "workspace";
        check(
            "allow",
            w,
            "w.x",
            &["workspace allow w.x", "rules:base ask b"],
            Some(0),
            Explanation::Preferred,
        );
        check("allow", w, "w.x", &["workspace allow w.x", "~strict deny s"], Some(0), Explanation::Strictest);
        check(
            "deny",
            "base",
            "b",
            &["workspace allow w", "rules:base deny b"],
            Some(1),
            Explanation::Strictest,
        );
        check("deny", w, "f", &["workspace failed f", "team allow t"], Some(0), Explanation::Failed);
        check("deny", w, "w.x", &["workspace ask w.x"], Some(0), Explanation::Refused);
        check("ask", w, "w.x", &["workspace ask w.x"], Some(0), Explanation::Strictest);
        check("allow", "user", "t", &["workspace ask w", "team ask t"], Some(1), Explanation::Granted);
        check("ask", "base", "base.no-opinion", &["workspace abstain"], None, Explanation::NoOpinion);
        check("deny", "base", "base.no-opinion", &["workspace abstain"], None, Explanation::Refused);
        check("allow", "user", "base.no-opinion", &[], None, Explanation::Granted);
        check("deny", "host", "host.audit-failed", &[], None, Explanation::Host);
        check("allow", "team", "t", &["team allow t", "workspace deny w"], Some(0), Explanation::Preferred);
    }
}
