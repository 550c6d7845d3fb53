//! Tiers: how much of the sandbox a machine supports.

use std::fmt;
use std::str::FromStr;

use crate::{Finding, Force, Layer, Primitive, Report};

/// The strength of the sandbox on this machine, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// No sandbox can be set up: no command is run.
    None,
    /// A profile of `sandbox-exec`, which has passed its self-test; the only one outside of Linux.
    Profile,
    /// Landlock, rules over names and a stricter seccomp filter, without namespaces and mounts.
    Landlock,
    /// Namespaces, mounts and the seccomp filter, without Landlock and rules over names.
    Namespaces,
    /// All layers.
    Full,
}

impl Tier {
    /// Every tier, weakest first.
    pub const ALL: [Self; 5] = [Self::None, Self::Profile, Self::Landlock, Self::Namespaces, Self::Full];

    /// Returns the tier of a machine with these probe results.
    #[must_use]
    pub fn from_findings(findings: &[Finding]) -> Self {
        let works =
            |wanted| findings.iter().any(|finding| finding.primitive == wanted && finding.outcome.is_ok());
        if Primitive::ALL.into_iter().any(|primitive| primitive.is_needed() && !works(primitive)) {
            let holds = [Primitive::Filter, Primitive::Listener, Primitive::Scopes].into_iter().all(works);
            return if holds { Self::Landlock } else { Self::None };
        }
        if works(Primitive::Landlock) && works(Primitive::Listener) { Self::Full } else { Self::Namespaces }
    }

    /// Returns the name of the tier in settings and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Profile => "profile",
            Self::Landlock => "landlock",
            Self::Namespaces => "namespaces",
            Self::Full => "full",
        }
    }

    /// Returns what the full tier stops and this one does not, one phrase for each.
    #[must_use]
    pub fn lacks(self) -> &'static [&'static str] {
        match self {
            Self::None => &["everything: commands are refused; file tools are still checked"],
            Self::Profile => &[
                "what a command has started in a process group of its own when it ends: it stays under the profile, but \
                 is not ended",
                "starting many processes at once, and using much memory with all of them together",
                "seeing that other processes exist",
                "seeing that a directory on the way to a visible one is there",
            ],
            Self::Landlock => &[
                "seeing by its path that a hidden file is there, how large it is, where a link leads, that it is \
                 being changed, and that other processes exist: contents and listings are refused",
                "in the session's temporary directory, names that rules forbid",
                "starting many processes at once as root, where no control group bounds them: they are counted ten times \
                 a second only",
                "what a command has started when its keeper and its init are both killed from outside: it stays \
                 under all rules, but is not ended",
            ],
            Self::Namespaces => &[
                "writing what your other programs execute in the project, there already or not: settings of git, \
                 start-up files, settings of agents and editors",
                "writing through a descriptor that leads around the mounts",
                "signals and abstract sockets between commands of one session",
            ],
            Self::Full => &[],
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Tier {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|tier| tier.name() == text).ok_or(())
    }
}

impl Report {
    /// Returns the tier that the reported layers amount to.
    #[must_use]
    pub fn tier(&self) -> Tier {
        let is_there = |wanted| {
            let there = |force: &Force| matches!(force, Force::Full | Force::Partial(_));
            self.layers.iter().any(|(layer, force)| *layer == wanted && there(force))
        };
        if is_there(Layer::Profile) {
            return Tier::Profile;
        }
        if self.layers.iter().any(|(layer, force)| *layer == Layer::Mounts && matches!(force, Force::None(_)))
        {
            return Tier::Landlock;
        }
        if is_there(Layer::Landlock) && is_there(Layer::Names) { Tier::Full } else { Tier::Namespaces }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiers_are_ordered_and_named() {
        assert!(Tier::ALL.is_sorted() && Tier::Profile < Tier::Landlock && Tier::Landlock < Tier::Namespaces);
        for tier in Tier::ALL {
            assert_eq!(tier.name().parse(), Ok(tier));
        }
        assert_eq!("best".parse::<Tier>(), Err(()));
    }

    #[test]
    fn what_is_found_makes_a_tier() {
        let found = |missing: &[Primitive]| -> Vec<Finding> {
            let outcome = |primitive| {
                let refused = crate::Refused { doing: "x".into(), errno: 1 };
                if missing.contains(&primitive) { Err(refused) } else { Ok(String::new()) }
            };
            Primitive::ALL.map(|primitive| Finding { primitive, outcome: outcome(primitive) }).to_vec()
        };
        assert_eq!(Tier::from_findings(&found(&[])), Tier::Full);
        assert_eq!(Tier::from_findings(&found(&[Primitive::ProcessLimit])), Tier::Full);
        assert_eq!(Tier::from_findings(&found(&[Primitive::Listener])), Tier::Namespaces);
        assert_eq!(
            Tier::from_findings(&found(&[Primitive::Mounts, Primitive::UserNamespace])),
            Tier::Landlock
        );
        assert_eq!(Tier::from_findings(&found(&[Primitive::Mounts, Primitive::Scopes])), Tier::None);
        assert_eq!(Tier::from_findings(&found(&[Primitive::Mounts, Primitive::Listener])), Tier::None);
        assert_eq!(Tier::from_findings(&[]), Tier::None);
    }

    #[test]
    fn landlock_and_names_make_the_difference() {
        let report = |landlock, names| Report {
            layers: vec![(Layer::Mounts, Force::Full), (Layer::Landlock, landlock), (Layer::Names, names)],
            controllers: Vec::new(),
        };
        let none = || Force::None("x".into());
        assert_eq!(report(Force::Full, Force::Full).tier(), Tier::Full);
        assert_eq!(report(Force::Partial("x".into()), Force::Full).tier(), Tier::Full);
        assert_eq!(report(none(), Force::Full).tier(), Tier::Namespaces);
        assert_eq!(report(Force::Full, none()).tier(), Tier::Namespaces);
        let layers = vec![(Layer::Mounts, none()), (Layer::Landlock, Force::Full)];
        let without = Report { layers, controllers: Vec::new() };
        assert_eq!(without.tier(), Tier::Landlock);
        let layers = vec![(Layer::Profile, Force::Full), (Layer::Limits, Force::Partial("x".into()))];
        assert_eq!(Report { layers, controllers: Vec::new() }.tier(), Tier::Profile);
    }
}
