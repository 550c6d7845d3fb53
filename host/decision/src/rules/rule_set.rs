//! The rules of all layers, compiled: the answer to one path, and the limits and variables of commands.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::base::Base;
use super::ruling::{BASE, BaseRuling, Caller, RuleAnswer, RuleLayer, RuleRef, Ruling};
use super::trie::Trie;
use crate::grant::{Grant, GrantPattern, PathPattern};
use crate::pattern::steps::Steps;
use crate::pattern::{FilePattern, PathMatcher, name_matches};
use crate::profile::{FileRight, FileRights, FileRule, Limits};
use crate::verdict::Effect;

/// The name of the host's own layers; no policy can have it.
const HOST: &str = "host";

/// The compiled rules of a session.
#[derive(Debug)]
pub struct RuleSet {
    pub(super) layers: Vec<RuleLayer>,
    pub(super) base: Base,
    pub(super) trie: Trie,
    pub(super) globs: Vec<(RuleRef, PathMatcher)>,
    pub(super) grants: Vec<PathGrant>,
    /// The paths at which a workspace, a rule or a grant gives access.
    pub(super) opened: HashSet<PathBuf>,
}

#[derive(Debug)]
pub(super) struct PathGrant {
    pub(super) pattern: FilePattern,
    pub(super) matcher: PathMatcher,
    pub(super) rights: FileRights,
}

impl From<PathPattern> for PathGrant {
    fn from(path: PathPattern) -> Self {
        Self { matcher: path.pattern.matcher(), pattern: path.pattern, rights: path.rights }
    }
}

impl RuleSet {
    /// Compiles the rules of `layers` over `base`, with the path grants among `grants`.
    ///
    /// Paths that they open below the session's temporary directory belong to the machine. They are added to the closed
    /// regions of the base, so that rules on the session's directory do not open them.
    #[must_use]
    pub fn compile(layers: Vec<RuleLayer>, base: Base, grants: &[Grant]) -> Self {
        let mut trie = Trie::default();
        let mut globs = Vec::new();
        for (layer, rules) in layers.iter().enumerate() {
            for (index, rule) in rules.profile.files.iter().enumerate() {
                let reference = RuleRef { layer, rule: index };
                match Steps::split(&rule.pattern) {
                    Some(steps) => trie.insert(steps, reference),
                    None => globs.push((reference, rule.pattern.matcher())),
                }
            }
        }
        let grants: Vec<PathGrant> = grants.iter().filter_map(PathGrant::from_grant).collect();
        let opened = opening_rules(&layers).map(|rule| (&rule.pattern, rule.rights.write));
        let opened = opened.chain(grants.iter().map(|grant| (&grant.pattern, grant.rights.write)));
        let opened: Vec<(&Path, bool)> =
            opened.filter_map(|(pattern, is_written)| Some((pattern.literal()?, is_written))).collect();
        let named = layers.iter().flat_map(|layer| &layer.profile.files);
        let named = named.filter_map(|rule| rule.pattern.literal());
        let named = named.chain(opened.iter().map(|(path, _)| *path));
        let base = base.with_named(&opened, named);
        let base = base.with_shown_in_temp(opened.iter().map(|(path, _)| *path));
        let opened = opened_paths(&layers, &base, &grants);
        Self { layers, base, trie, globs, grants, opened }
    }

    /// Returns the ruling on one path and right.
    #[must_use]
    pub fn file(&self, path: &Path, right: FileRight, caller: Caller) -> Ruling {
        let ruling = match self.standing(path, right, caller) {
            Standing::Rule(layer, rule) => Ruling::of_rule(layer, rule),
            Standing::Base(ruling) => ruling.into(),
        };
        if ruling.effect == Effect::Ask && self.is_granted(path, right) {
            return Ruling {
                effect: Effect::Allow,
                policy: "grant".to_owned(),
                rule: ruling.rule,
                reason: "you allowed it".to_owned(),
                setting: ruling.setting,
                conceal: false,
            };
        }
        ruling
    }

    /// Returns the ruling on one path and right in short form: the same as [`RuleSet::file`], for frequent calls.
    #[must_use]
    pub fn answer(&self, path: &Path, right: FileRight, caller: Caller) -> RuleAnswer<'_> {
        let mut answer = match self.standing(path, right, caller) {
            Standing::Rule(layer, rule) => {
                RuleAnswer { effect: rule.effect, policy: &layer.name, rule: &rule.id }
            }
            Standing::Base(BaseRuling { effect, rule, .. }) => RuleAnswer { effect, policy: BASE, rule },
        };
        if answer.effect == Effect::Ask && self.is_granted(path, right) {
            answer.effect = Effect::Allow;
        }
        answer
    }

    /// Returns the answer before grants: the strictest of the layers, or the base's if no layer has an opinion; and
    /// over it the stricter answers of layers that can only tighten.
    fn standing(&self, path: &Path, right: FileRight, caller: Caller) -> Standing<'_> {
        let last = self.last_matching(path, right);
        let of_layers = || {
            self.layers.iter().zip(&last).filter_map(|(layer, index)| {
                Some((layer, index.and_then(|index| layer.profile.files.get(index))?))
            })
        };
        let standing = match of_layers().filter(|(layer, _)| !layer.tightens).fold(None, stricter) {
            Some((layer, rule)) => Standing::Rule(layer, rule),
            None => Standing::Base(self.base.file(path, right, caller)),
        };
        match of_layers().filter(|(layer, _)| layer.tightens).fold(None, stricter) {
            Some((layer, rule)) if rule.effect > standing.effect() => Standing::Rule(layer, rule),
            _ => standing,
        }
    }

    /// Returns, for each layer, which of its rules matches last.
    fn last_matching(&self, path: &Path, right: FileRight) -> Vec<Option<usize>> {
        let mut last: Vec<Option<usize>> = vec![None; self.layers.len()];
        let is_shown_in_temp = self.base.is_shown_in_temp(path);
        let mut consider = |reference: RuleRef| {
            if self.speaks(reference, right)
                && !(is_shown_in_temp && self.opens_temp(reference))
                && let Some(known) = last.get_mut(reference.layer)
                && known.is_none_or(|index| index < reference.rule)
            {
                *known = Some(reference.rule);
            }
        };
        self.trie.visit(path, &mut consider);
        for (reference, matcher) in &self.globs {
            if matcher.matches(path) {
                consider(*reference);
            }
        }
        last
    }

    /// Returns true if a rule applies to `right`. A condition that cannot be checked here counts as met for a
    /// restricting rule and as unmet for an allowing one.
    fn speaks(&self, reference: RuleRef, right: FileRight) -> bool {
        let rule = self.layers.get(reference.layer).and_then(|layer| layer.profile.files.get(reference.rule));
        rule.is_some_and(|rule| {
            rule.rights.contains(right) && (rule.condition.is_empty() || rule.effect != Effect::Allow)
        })
    }

    /// Returns true if a rule opens the temporary directory as a whole. It means the session's own directory, not
    /// machine paths that are shown under such a name.
    fn opens_temp(&self, reference: RuleRef) -> bool {
        let rule = self.layers.get(reference.layer).and_then(|layer| layer.profile.files.get(reference.rule));
        rule.is_some_and(|rule| {
            rule.effect == Effect::Allow
                && matches!(&rule.pattern, FilePattern::Tree(top) if *top == self.base.temp)
        })
    }

    fn is_granted(&self, path: &Path, right: FileRight) -> bool {
        self.grants.iter().any(|grant| {
            let given = grant.rights.contains(right) || right == FileRight::Read && grant.rights.write;
            given && grant.matcher.matches(path)
        })
    }

    /// Returns the limits of one command: the strictest of all layers, field by field. `defaults` are the host's limits
    /// where this gives none; a layer that can only tighten does not raise them.
    #[must_use]
    pub fn limits(&self, defaults: Limits) -> Limits {
        let strictest = |tightens| {
            let layers = self.layers.iter().filter(|layer| layer.tightens == tightens);
            layers.fold(Limits::default(), |limits, layer| limits.strictest(layer.profile.limits))
        };
        strictest(false).tightened(strictest(true), defaults)
    }

    /// Returns the answer of the rules to an environment variable; `None` leaves it to the host's default.
    #[must_use]
    pub fn environment(&self, name: &str) -> Option<Effect> {
        let last = |layer: &RuleLayer| {
            let rules = layer.profile.environment.iter().rev();
            let found = rules.into_iter().find(|rule| name_matches(&rule.name, name))?;
            (!layer.tightens || found.effect != Effect::Allow).then_some(found.effect)
        };
        self.layers.iter().filter_map(last).max()
    }

    /// Returns the variables that policies set for commands, in the order of the layers; a layer that can only tighten
    /// sets none.
    pub fn variables(&self) -> impl Iterator<Item = &(String, String)> {
        self.layers.iter().filter(|layer| !layer.tightens).flat_map(|layer| &layer.profile.variables)
    }

    /// Returns the patterns and rights of the path grants.
    pub fn granted(&self) -> impl Iterator<Item = (&FilePattern, FileRights)> {
        self.grants.iter().map(|grant| (&grant.pattern, grant.rights))
    }

    /// Returns the layers, for summaries.
    #[must_use]
    pub fn layers(&self) -> &[RuleLayer] {
        &self.layers
    }

    /// Returns the base, for summaries.
    #[must_use]
    pub fn base(&self) -> &Base {
        &self.base
    }
}

/// Returns the rules that can show paths to commands: those that allow reading or writing, in layers that count in
/// full.
pub(super) fn opening_rules(layers: &[RuleLayer]) -> impl Iterator<Item = &FileRule> {
    let rules = layers.iter().filter(|layer| !layer.tightens).flat_map(|layer| &layer.profile.files);
    rules.filter(|rule| {
        rule.effect == Effect::Allow && (rule.rights.read || rule.rights.write) && rule.condition.is_empty()
    })
}

/// Returns the paths at which a workspace, an allowing rule or a grant gives access.
///
/// The host's own protections also except paths from a directory that they close, such as `known_hosts` in `~/.ssh`:
/// the rules around that directory then apply to them. Exceptions of other layers that only tighten stay closed to
/// commands, because whether their surroundings are shown is unknown here.
fn opened_paths(layers: &[RuleLayer], base: &Base, grants: &[PathGrant]) -> HashSet<PathBuf> {
    let of_host = layers.iter().filter(|layer| layer.tightens && layer.name == HOST);
    let excepted = of_host.flat_map(|layer| &layer.profile.files).filter(|rule| rule.effect == Effect::Allow);
    let rules = opening_rules(layers).chain(excepted).filter_map(|rule| rule.pattern.literal());
    let grants = grants.iter().filter_map(|grant| grant.pattern.literal());
    let workspaces = base.workspace.iter().map(PathBuf::as_path);
    rules.chain(grants).chain(workspaces).map(Path::to_owned).collect()
}

/// Returns the stricter of two rules with their layers; the earlier one if they are equal.
fn stricter<'a>(
    known: Option<(&'a RuleLayer, &'a FileRule)>,
    next: (&'a RuleLayer, &'a FileRule),
) -> Option<(&'a RuleLayer, &'a FileRule)> {
    Some(known.filter(|(_, rule)| rule.effect >= next.1.effect).unwrap_or(next))
}

/// The answer before grants are applied.
enum Standing<'a> {
    Rule(&'a RuleLayer, &'a FileRule),
    Base(BaseRuling),
}

impl Standing<'_> {
    fn effect(&self) -> Effect {
        match self {
            Self::Rule(_, rule) => rule.effect,
            Self::Base(ruling) => ruling.effect,
        }
    }
}

impl PathGrant {
    fn from_grant(grant: &Grant) -> Option<Self> {
        match &grant.pattern {
            GrantPattern::Path(path) => Some(path.clone().into()),
            GrantPattern::Exact(_)
            | GrantPattern::Command(_)
            | GrantPattern::Network(_)
            | GrantPattern::Tool(_) => None,
        }
    }
}
