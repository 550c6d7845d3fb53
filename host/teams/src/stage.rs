//! Staged introduction: on which machines a pack is enforced, on which it only observes.

use serde::{Deserialize, Serialize};

/// Shares of the machines, in percent. The same machines come first every time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Stage {
    /// The machines on which the pack is enforced.
    #[serde(default = "all")]
    pub enforce: u8,
    /// The machines on which it runs at all; where it is not enforced, its verdicts are only logged.
    #[serde(default = "all")]
    pub observe: u8,
}

fn all() -> u8 {
    100
}

impl Default for Stage {
    fn default() -> Self {
        Self { enforce: 100, observe: 100 }
    }
}

/// How a pack runs on a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StagedMode {
    /// It does not run.
    Off,
    /// Its verdicts are logged.
    Observe,
    /// Its verdicts count, as far as they tighten.
    Enforce,
}

impl Stage {
    /// Returns how the pack runs on the machine with this slot.
    #[must_use]
    pub fn mode(self, slot: u8) -> StagedMode {
        if slot < self.enforce {
            StagedMode::Enforce
        } else if slot < self.observe {
            StagedMode::Observe
        } else {
            StagedMode::Off
        }
    }

    /// Returns the stage if both shares are percentages.
    pub(crate) fn checked(self) -> Result<Self, String> {
        if self.enforce > 100 || self.observe > 100 {
            return Err("`enforce` and `observe` of a stage are percentages, at most 100".to_owned());
        }
        Ok(self)
    }
}

/// Returns the slot of a machine, 0 to 99: a stable hash of the machine's id, the team and the pack.
///
/// Each pack has its own order of machines, so that not always the same ones come first. A machine without an id is in
/// slot 0, where everything is enforced first.
#[must_use]
pub fn slot(machine: &str, team: &str, pack: &str) -> u8 {
    let machine = machine.trim();
    if machine.is_empty() {
        return 0;
    }
    let hash = portcullis_packs::digest(format!("portcullis-stage\n{machine}\n{team}\n{pack}").as_bytes());
    let number = hash.get(..8).and_then(|hex| u32::from_str_radix(hex, 16).ok()).unwrap_or(0);
    u8::try_from(number % 100).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_machines_comes_first() {
        let machines: Vec<String> = (0..2000).map(|number| format!("machine-{number}")).collect();
        let share = |stage: Stage, wanted| {
            machines.iter().filter(|machine| stage.mode(slot(machine, "acme", "a:b")) == wanted).count() / 20
        };
        let tenth = Stage { enforce: 0, observe: 10 };
        assert!(
            (8..=12).contains(&share(tenth, StagedMode::Observe)),
            "{}",
            share(tenth, StagedMode::Observe)
        );
        assert_eq!(share(tenth, StagedMode::Enforce), 0);
        let half = Stage { enforce: 50, observe: 100 };
        assert!((45..=55).contains(&share(half, StagedMode::Enforce)));
        assert_eq!(share(half, StagedMode::Off), 0);
        assert_eq!(share(Stage::default(), StagedMode::Enforce), 100);
    }

    #[test]
    fn a_larger_share_holds_the_smaller_one() {
        for machine in (0..500).map(|number| format!("m{number}")) {
            let slot = slot(&machine, "acme", "a:b");
            let mode = |enforce| Stage { enforce, observe: 100 }.mode(slot);
            assert!(slot < 100 && mode(10) <= mode(50) && mode(50) <= mode(100), "{machine}");
        }
        assert_eq!(slot(" \n", "acme", "a:b"), 0, "without an id, everything is enforced");
        let other = (0..100).filter(|number| {
            let machine = format!("m{number}");
            slot(&machine, "acme", "a:b") == slot(&machine, "acme", "a:c")
        });
        assert!(other.count() < 20, "each pack has its own order");
    }
}
