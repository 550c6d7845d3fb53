//! Compares the file rules of two policies, for all paths.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use portcullis_decision::pattern::{FilePattern, PathExpression};
use portcullis_decision::profile::{FileRight, FileRule, Profile};
use portcullis_decision::rules::HIDDEN_BY_DEFAULT;
use portcullis_decision::{Base, Caller, Effect, RuleLayer, RuleSet, Ruling, path_text};
use regex_syntax::hir::{Hir, HirKind, Look, Repetition};

use super::classes::{TooIntricate, examples, parse, without_slash};
use super::witness::{Loosening, answer_of, lacks_rule};
use crate::contribution::Contribution;

/// Canonical paths: absolute, without `.`, `..`, empty names and NUL.
const PATHS: &str = r"(?s-u)^(?:/|(?:/(?:[^/\x00.][^/\x00]*|\.[^/\x00.][^/\x00]*|\.\.[^/\x00]+))+)$";

/// Returns where the new rules allow more, with a path for each kind of change.
pub(super) fn loosened(old: &Profile, new: &Profile, base: &Base) -> Result<Vec<Loosening>, TooIntricate> {
    let mut found: Vec<Loosening> = Vec::new();
    let sets = [old, new].map(|profile| Rules::compile(profile, base));
    let [before, after] = &sets;
    for right in [FileRight::Read, FileRight::Write, FileRight::Execute] {
        if of_right(old, right).eq(of_right(new, right)) && before.rules.base() == after.rules.base() {
            continue;
        }
        for path in paths(old, new, base, right)? {
            // No tool executes files.
            let callers: &[Caller] = match right {
                FileRight::Execute => &[Caller::Command],
                FileRight::Read | FileRight::Write => &[Caller::Tool, Caller::Command],
            };
            for caller in callers {
                let Some(loosening) = compared(&sets, &path, right, *caller) else { continue };
                let is_known = |known: &Loosening| {
                    (&known.old.rule, &known.new.rule, known.right)
                        == (&loosening.old.rule, &loosening.new.rule, Some(right))
                };
                if !found.iter().any(is_known) {
                    found.push(loosening);
                }
            }
        }
    }
    Ok(found)
}

/// The rules of one policy.
struct Rules {
    rules: RuleSet,
    /// The base alone. Rules on paths in the temporary directory change it.
    base: RuleSet,
}

fn compared(sets: &[Rules; 2], path: &Path, right: FileRight, caller: Caller) -> Option<Loosening> {
    let rulings = sets.each_ref().map(|set| set.rules.file(path, right, caller));
    let [old, new] = &rulings;
    let [before, after] = sets;
    let parts = [(old, before), (new, after)]
        .map(|(ruling, set)| Contribution::of_ruling(ruling, set.base(path, right, caller)));
    let [was, is] = parts;
    let beside = was.loosened_by(is);
    let is_shown = was.rule.is_some_and(|effect| effect != Effect::Allow)
        && was.rule == is.rule
        && old.conceal
        && !new.conceal;
    if beside.is_none() && !is_shown {
        return None;
    }
    let who = if caller == Caller::Tool { "tools" } else { "commands" };
    let verb = match right {
        FileRight::Read => "read",
        FileRight::Write => "write",
        FileRight::Execute => "run",
    };
    let (old, new) = (answer(old, was), answer(new, is));
    let shown = if is_shown { ", the name of" } else { "" };
    let name = format!("standing rules: {who} {verb}{shown} `{}`", path_text::encode(path));
    Some(Loosening { name, old, new, beside, right: Some(right) })
}

impl Rules {
    fn compile(profile: &Profile, base: &Base) -> Self {
        let layer = RuleLayer { name: "policy".to_owned(), profile: profile.clone(), tightens: false };
        let rules = RuleSet::compile(vec![layer], base.clone(), &[]);
        let base = RuleSet::compile(Vec::new(), rules.base().clone(), &[]);
        Self { rules, base }
    }

    /// Returns the base's answer. It also hides some directories of the machine unless a rule allows a path there.
    fn base(&self, path: &Path, right: FileRight, caller: Caller) -> Effect {
        let is_hidden =
            caller == Caller::Command && HIDDEN_BY_DEFAULT.iter().any(|top| path.starts_with(top));
        let base = self.base.file(path, right, caller).effect;
        if is_hidden { base.max(Effect::Ask) } else { base }
    }
}

fn answer(ruling: &Ruling, part: Contribution) -> crate::corpus::PolicyAnswer {
    if part.rule.is_none() { lacks_rule() } else { answer_of(ruling) }
}

fn of_right(profile: &Profile, right: FileRight) -> impl Iterator<Item = &FileRule> {
    profile.files.iter().filter(move |rule| rule.rights.contains(right))
}

/// Returns a path for each way in which the rules of both profiles, and the base's regions, can match.
///
/// Neighbouring rules with the same effect count as one, which keeps the ways few.
fn paths(old: &Profile, new: &Profile, base: &Base, right: FileRight) -> Result<Vec<PathBuf>, TooIntricate> {
    let sides = [old, new].map(|profile| of_right(profile, right).collect::<Vec<&FileRule>>());
    let [one, two] = &sides;
    // A rule on the whole temporary directory does not apply to paths of the machine that are shown in it.
    let is_special = |rule: &FileRule| matches!(&rule.pattern, FilePattern::Tree(top) if *top == base.temp);
    // Where one of the last rules that both have matches, both answer the same.
    let is_common = |(one, two): &(&&FileRule, &&FileRule)| one == two && !is_special(one);
    let common = one.iter().rev().zip(two.iter().rev()).take_while(is_common).count();
    let (own, shared) = one.split_at(one.len() - common);
    let mut patterns = vec![union(shared)?];
    for rules in [own, two.get(..two.len() - common).unwrap_or_default()] {
        let is_one = |one: &&FileRule, other: &&FileRule| {
            (one.effect, one.conceal, &one.condition) == (other.effect, other.conceal, &other.condition)
                && !is_special(one)
                && !is_special(other)
        };
        for group in rules.chunk_by(is_one) {
            let group = union(group)?;
            if !patterns.contains(&group) {
                patterns.push(group);
            }
        }
    }
    // Rules on paths below the temporary directory, which belong to the machine, also change the base.
    let named = old.files.iter().chain(&new.files).filter_map(|rule| rule.pattern.literal());
    for path in named.filter(|path| path.starts_with(&base.temp)) {
        patterns.push(tree(path)?);
    }
    let tops = base.workspace.iter().chain(&base.closed).chain([&base.temp]).map(PathBuf::as_path);
    for top in tops.chain(HIDDEN_BY_DEFAULT.map(Path::new)).filter(|top| top.is_absolute()) {
        patterns.push(tree(top)?);
    }
    let texts = examples(parse(PATHS)?, patterns)?;
    Ok(texts.into_iter().map(|text| PathBuf::from(std::ffi::OsString::from_vec(text))).collect())
}

fn tree(top: &Path) -> Result<Hir, TooIntricate> {
    let PathExpression::Tree { top, below, .. } = FilePattern::Tree(top.to_owned()).expression() else {
        return Err(TooIntricate);
    };
    parse(&format!("^{top}(?:{below})?$"))
}

/// Returns an expression for the paths that some of these rules match.
///
/// All trees share the expression for the paths below them, so that the automaton does not remember which one it is in.
fn union(rules: &[&FileRule]) -> Result<Hir, TooIntricate> {
    let mut parts = Vec::new();
    let mut trees: BTreeMap<(String, bool), Vec<Hir>> = BTreeMap::new();
    for rule in rules {
        match rule.pattern.expression() {
            PathExpression::Paths(paths) => {
                for path in paths {
                    parts.push(unanchored(&parse(&path)?));
                }
            }
            PathExpression::Tree { top, covers_top, below } => {
                trees.entry((below, covers_top)).or_default().push(unanchored(&parse(&top)?));
            }
            PathExpression::Name { below, name } => parts.push(named(&below, &name)?),
        }
    }
    for ((below, covers_top), tops) in trees {
        let below = Box::new(parse(&below)?);
        let below = if covers_top {
            Hir::repetition(Repetition { min: 0, max: Some(1), greedy: true, sub: below })
        } else {
            *below
        };
        parts.push(Hir::concat(vec![Hir::alternation(tops), below]));
    }
    Ok(Hir::concat(vec![Hir::alternation(parts), Hir::look(Look::End)]))
}

fn named(below: &Path, name: &str) -> Result<Hir, TooIntricate> {
    let above = match FilePattern::Exact(below.to_owned()).expression() {
        PathExpression::Paths(paths) if below != Path::new("/") => {
            unanchored(&parse(paths.first().ok_or(TooIntricate)?)?)
        }
        PathExpression::Paths(_) | PathExpression::Tree { .. } | PathExpression::Name { .. } => Hir::empty(),
    };
    let directories = parse("(?s-u)/(?:[^/]+/)*")?;
    Ok(Hir::concat(vec![above, directories, unanchored(&without_slash(&parse(name)?))]))
}

/// Removes the assertions that an expression begins and ends where the text does.
fn unanchored(hir: &Hir) -> Hir {
    match hir.kind() {
        HirKind::Look(Look::Start | Look::End) => Hir::empty(),
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(unanchored).collect()),
        HirKind::Empty
        | HirKind::Literal(_)
        | HirKind::Class(_)
        | HirKind::Look(_)
        | HirKind::Repetition(_)
        | HirKind::Capture(_)
        | HirKind::Alternation(_) => hir.clone(),
    }
}
