//! The results of a self-test.

use std::fmt;

/// The result of an attack or of a control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// An attack that succeeds without the sandbox failed in it; a control worked.
    Good,
    /// An attack succeeded in the sandbox.
    CameThrough,
    /// An attack fails even without the sandbox, so its failure proves nothing.
    Untried,
    /// Ordinary work is not possible in the sandbox.
    NotWorking,
}

/// One attack or control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finding {
    /// What was tried, in a few words.
    pub what: &'static str,
    /// Whether it must fail in the sandbox; otherwise it must succeed.
    pub is_attack: bool,
    /// The result.
    pub outcome: Outcome,
}

/// The results of a self-test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Findings {
    /// Every attack and every control.
    pub list: Vec<Finding>,
}

impl Findings {
    /// Returns true if nothing came through, and everything was tried.
    #[must_use]
    pub fn are_good(&self) -> bool {
        !self.list.is_empty() && self.list.iter().all(|finding| finding.outcome == Outcome::Good)
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = |outcome| {
            let found = self.list.iter().filter(move |finding| finding.outcome == outcome);
            found.map(|finding| finding.what).collect::<Vec<_>>().join(", ")
        };
        formatter.write_str("the sandbox has failed its test on this machine")?;
        for (outcome, words) in [
            (Outcome::CameThrough, "not stopped"),
            (Outcome::NotWorking, "not possible in it"),
            (Outcome::Untried, "not possible even without it"),
        ] {
            let list = named(outcome);
            if !list.is_empty() {
                write!(formatter, "; {words}: {list}")?;
            }
        }
        Ok(())
    }
}
