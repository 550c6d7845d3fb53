//! Facts about the rules in force, computed from the rules alone: all statements to users and models are derived from
//! them.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use super::below::ANY_NAME;
use super::ruling::BASE;
use super::{Caller, HIDDEN_BY_DEFAULT, RuleSet};
use crate::pattern::{FilePattern, HostPattern, NetworkPattern, PortSet};
use crate::profile::{FileRight, NetworkRule};
use crate::request::{Endpoint, ProcessInfo};
use crate::verdict::Effect;

/// The result of using a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Availability {
    /// Allowed without a question.
    Free,
    /// The user is asked.
    Asked,
    /// Invisible to commands, without a question; an answer can open it.
    Hidden,
    /// Refused, and no answer opens it.
    Denied,
}

/// Where one right of one caller is available.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFacts {
    /// The caller.
    pub caller: Caller,
    /// The right.
    pub right: FileRight,
    /// The availability outside of all places.
    pub elsewhere: Availability,
    /// Places with another availability than their surroundings, shallow first; of nested places the inner one counts.
    pub places: Vec<PlaceFact>,
    /// Names with another availability than the place around them.
    pub names: Vec<NameFact>,
    /// The availability of the state of tools in the private home, if there is one. Places do not say it.
    pub own_home: Option<Availability>,
}

/// A place with another availability than its surroundings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceFact {
    /// The path.
    pub path: PathBuf,
    /// Whether it covers everything below as well.
    pub is_tree: bool,
    /// The availability.
    pub standing: Availability,
    /// The source: a policy, a layer of the settings, `base` or `grant`.
    pub by: String,
}

impl PlaceFact {
    /// Returns true if no rule makes the availability, but the base.
    #[must_use]
    pub fn is_of_the_base(&self) -> bool {
        self.by == BASE
    }
}

/// Names with another availability.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameFact {
    /// The names.
    pub pattern: FilePattern,
    /// The availability.
    pub standing: Availability,
    /// The source.
    pub by: String,
}

/// The hosts that commands can reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFacts {
    /// The effect for hosts that no rule names.
    pub elsewhere: Effect,
    /// The effects for others, in the order of the rules; each target once.
    pub targets: Vec<HostFact>,
}

/// The effect for some hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFact {
    /// The hosts.
    pub target: NetworkPattern,
    /// The program; `*` for every one.
    pub program: String,
    /// The effect.
    pub effect: Effect,
}

impl RuleSet {
    /// Returns where `caller` has `right`.
    #[must_use]
    pub fn file_facts(&self, caller: Caller, right: FileRight) -> FileFacts {
        let standing = |path: &Path| self.standing_of(path, right, caller);
        let elsewhere = standing(&Path::new("/").join(ANY_NAME)).0;
        let mut places: Vec<PlaceFact> = Vec::new();
        let mut trees: HashMap<&Path, Availability> = HashMap::new();
        let mut alone: HashMap<&Path, Availability> = HashMap::new();
        let around = |trees: &HashMap<&Path, Availability>, path: &Path| {
            path.ancestors().find_map(|above| trees.get(above)).copied().unwrap_or(elsewhere)
        };
        // Shallow paths come first, so the tree around a path is in `trees` already.
        for path in self.fact_paths() {
            let around = around(&trees, path);
            let (inside, by) = standing(&path.join(ANY_NAME));
            if inside != around {
                places.push(PlaceFact { path: path.to_owned(), is_tree: true, standing: inside, by });
                trees.insert(path, inside);
                continue;
            }
            let (itself, by) = standing(path);
            if itself != around {
                places.push(PlaceFact { path: path.to_owned(), is_tree: false, standing: itself, by });
                alone.insert(path, itself);
            }
        }
        let at = |path: &Path| alone.get(path).copied().unwrap_or_else(|| around(&trees, path));
        let names = self.name_facts(caller, right, at);
        let own_home = self.base.own.home.as_ref();
        let own_home =
            own_home.map(|home| standing(&home.path.join(format!(".{ANY_NAME}")).join(ANY_NAME)).0);
        FileFacts { caller, right, elsewhere, places, names, own_home }
    }

    /// Returns which hosts commands can reach.
    #[must_use]
    pub fn host_facts(&self) -> HostFacts {
        let unnamed = Endpoint::Domain(UNNAMED_HOST.to_owned());
        let elsewhere = self.connection(&unnamed, HTTPS, &ProcessInfo::default()).effect;
        let mut targets: Vec<HostFact> = Vec::new();
        for rule in self.layers.iter().flat_map(|layer| &layer.profile.network) {
            let Some(effect) = self.effect_on(rule) else { continue };
            let is_known = |fact: &HostFact| fact.target == rule.target && fact.program == rule.program;
            if effect != elsewhere && !targets.iter().any(is_known) {
                targets.push(HostFact { target: rule.target.clone(), program: rule.program.clone(), effect });
            }
        }
        HostFacts { elsewhere, targets }
    }

    /// Returns the literal paths at which the availability can change, shallow first.
    fn fact_paths(&self) -> Vec<&Path> {
        let mut paths: BTreeSet<&Path> = self.base.tops().map(|(_, top)| top.as_path()).collect();
        let rules = self.layers.iter().flat_map(|layer| &layer.profile.files);
        paths.extend(rules.filter_map(|rule| rule.pattern.literal()));
        paths.extend(self.grants.iter().filter_map(|grant| grant.pattern.literal()));
        paths.extend(HIDDEN_BY_DEFAULT.map(Path::new));
        let mut paths: Vec<&Path> =
            paths.into_iter().filter(|path| path.is_absolute() && *path != Path::new("/")).collect();
        paths.sort_by_key(|path| path.components().count());
        paths
    }

    /// Returns the availability of a path, with its source.
    fn standing_of(&self, path: &Path, right: FileRight, caller: Caller) -> (Availability, String) {
        let answer = self.answer(path, right, caller);
        let standing = match (caller, right, answer.effect) {
            (_, _, Effect::Deny) => Availability::Denied,
            (Caller::Tool, _, Effect::Allow) => Availability::Free,
            (Caller::Tool, _, Effect::Ask) => Availability::Asked,
            (Caller::Command, FileRight::Read | FileRight::Execute, _)
            | (Caller::Command, FileRight::Write, Effect::Allow) => {
                if self.shows(path) {
                    Availability::Free
                } else {
                    Availability::Hidden
                }
            }
            // Invisible paths are not asked about, unless a rule asks.
            (Caller::Command, FileRight::Write, Effect::Ask) => {
                let is_asked = !answer.is_of_the_base()
                    || self.answer(path, FileRight::Read, Caller::Command).effect == Effect::Allow;
                if is_asked { Availability::Asked } else { Availability::Hidden }
            }
        };
        (standing, answer.policy.to_owned())
    }

    /// Returns true if commands see a path.
    #[must_use]
    pub fn shows(&self, path: &Path) -> bool {
        let read = self.answer(path, FileRight::Read, Caller::Command).effect;
        read == Effect::Allow && !self.is_hidden_by_default(path)
    }

    /// Returns true if a path is in a directory that is hidden by default, and no opening rule names a path in it.
    fn is_hidden_by_default(&self, path: &Path) -> bool {
        if self.base.is_own(path) {
            return false;
        }
        let hidden = HIDDEN_BY_DEFAULT.map(Path::new).into_iter().find(|top| path.starts_with(top));
        hidden.is_some_and(|top| {
            let mut within = path.ancestors().take_while(|above| above.starts_with(top));
            !within.any(|above| self.opens(above))
        })
    }

    fn name_facts(
        &self,
        caller: Caller,
        right: FileRight,
        around: impl Fn(&Path) -> Availability,
    ) -> Vec<NameFact> {
        let rules = self.layers.iter().flat_map(|layer| &layer.profile.files);
        let rules = rules.filter(|rule| rule.rights.contains(right) && !rule.pattern.is_literal());
        let mut names: Vec<NameFact> = Vec::new();
        for rule in rules {
            // A pattern without an example is reported as its rule says.
            let fact = match self.example(&rule.pattern) {
                None if rule.effect == Effect::Allow => None,
                None => Some((stated(rule.effect, caller, right), rule.id.clone())),
                Some(example) => {
                    let (standing, by) = self.standing_of(&example, right, caller);
                    (standing != around(&example)).then_some((standing, by))
                }
            };
            let is_known = names.iter().any(|known| known.pattern == rule.pattern);
            if let Some((standing, by)) = fact.filter(|_| !is_known) {
                names.push(NameFact { pattern: rule.pattern.clone(), standing, by });
            }
        }
        names
    }

    /// Returns a path that a pattern matches and no other rule mentions; `None` for patterns with alternatives or
    /// classes.
    fn example(&self, pattern: &FilePattern) -> Option<PathBuf> {
        let name = |glob: &str| {
            let has_choices = glob.contains(['[', '{', '\\']);
            (!has_choices).then(|| glob.replace("**", "*").replace(['*', '?'], ANY_NAME))
        };
        match pattern {
            FilePattern::Exact(path) | FilePattern::Tree(path) => Some(path.clone()),
            FilePattern::Name { below, glob } => Some(below.join(name(glob.as_str())?)),
            FilePattern::Glob(glob) => {
                let path = name(glob.as_str())?;
                let below = self.base.workspace.first().map_or(Path::new("/"), PathBuf::as_path);
                Some(if glob.as_str().contains('/') { Path::new("/").join(path) } else { below.join(path) })
            }
        }
    }

    /// Returns the effect of all rules on the hosts of one rule; `None` if no single host represents them.
    fn effect_on(&self, rule: &NetworkRule) -> Option<Effect> {
        let host = match &rule.target.host {
            // This rule is reported as the effect elsewhere.
            HostPattern::Any if rule.target.ports == PortSet::Every && rule.program == "*" => return None,
            HostPattern::Any => Endpoint::Domain(UNNAMED_HOST.to_owned()),
            HostPattern::Name(name) => Endpoint::Domain(name.clone()),
            HostPattern::Below(top) => Endpoint::Domain(format!("{UNNAMED_LABEL}.{top}")),
            HostPattern::Block(block) => Endpoint::Address(block.addr()),
        };
        let port = match &rule.target.ports {
            PortSet::Every => HTTPS,
            PortSet::These(ports) => *ports.first()?,
        };
        let program = if rule.program == "*" { String::new() } else { rule.program.clone() };
        let process = ProcessInfo { program, ..ProcessInfo::default() };
        Some(self.connection(&host, port, &process).effect)
    }
}

impl FileFacts {
    /// Returns the availability of a path, ignoring name facts.
    #[must_use]
    pub fn at(&self, path: &Path) -> Availability {
        let mut covering = self.places.iter().filter(|place| match place.is_tree {
            true => path.starts_with(&place.path),
            false => path == place.path,
        });
        // Shallow ones come first.
        covering.next_back().map_or(self.elsewhere, |place| place.standing)
    }
}

/// A host that no rule names.
const UNNAMED_HOST: &str = "unnamed.invalid";
const UNNAMED_LABEL: &str = "unnamed";
/// The port that represents all ports.
const HTTPS: u16 = 443;

/// Returns the availability that a rule alone amounts to.
fn stated(effect: Effect, caller: Caller, right: FileRight) -> Availability {
    match (effect, caller, right) {
        (Effect::Allow, _, _) => Availability::Free,
        (Effect::Deny, _, _) => Availability::Denied,
        (Effect::Ask, Caller::Command, FileRight::Read | FileRight::Execute) => Availability::Hidden,
        (Effect::Ask, _, _) => Availability::Asked,
    }
}

#[cfg(test)]
mod tests;
