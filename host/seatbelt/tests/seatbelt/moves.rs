//! Directories that move: a command that may rename them does not get at a restricted file by another path, and does not
//! bring a file of its own to a restricted one.

use std::path::{Path, PathBuf};

use portcullis_decision::profile::FileRight;
use portcullis_decision::{Caller, Effect, RuleSet};
use portcullis_profile_model::Evaluator;
use portcullis_seatbelt::{Wanted, compile};

use crate::generator::Random;
use crate::kit::shown;

/// Rule sets, with and without `PORTCULLIS_EVERY_TASK`.
const SETS: u64 = 60;
const ALL_SETS: u64 = 1_500;
/// Attacks on each of them.
const ATTACKS: usize = 60;

/// A directory `from` becomes `to`; `rest` is below it.
struct Move {
    from: PathBuf,
    to: PathBuf,
    rest: PathBuf,
}

impl Move {
    fn random(random: &mut Random, from: &Path, rest: &Path) -> Self {
        Self { from: from.to_owned(), to: random.path(), rest: rest.to_owned() }
    }

    fn is_possible(&self, profile: &Evaluator) -> bool {
        // Both paths are of the same directory, so neither can be in the other.
        !self.to.starts_with(&self.from)
            && !self.from.starts_with(&self.to)
            && profile.allows("file-write-unlink", text(&self.from))
            && profile.allows("file-write-create", text(&self.to))
    }
}

/// Returns true if a rule opens this path, but not the names below it: it is meant for a file. No rule restricts what a
/// directory has below it that is moved there; this is in the list of what is not prevented.
fn is_for_a_file(rules: &RuleSet, path: &Path, right: FileRight) -> bool {
    is_allowed(rules, path, right) && !is_allowed(rules, &path.join("any"), right)
}

/// Returns true if a pattern restricts both paths, and a later rule or a grant opens the second: an exception for a
/// directory is one for whatever is moved there; this is in the list of what is not prevented.
fn is_an_exception(rules: &RuleSet, path: &Path, target: &Path) -> bool {
    let mut all = rules.layers().iter().flat_map(|layer| &layer.profile.files);
    all.any(|rule| {
        let matcher = rule.pattern.matcher();
        rule.effect != Effect::Allow
            && !rule.pattern.is_literal()
            && matcher.matches(path)
            && matcher.matches(target)
    })
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn is_allowed(rules: &RuleSet, path: &Path, right: FileRight) -> bool {
    rules.answer(path, right, Caller::Command).effect == Effect::Allow
}

/// Returns a profile without the statements that keep names in their places: the control.
fn without_pins(profile: &str) -> String {
    let pins =
        ["directories on the way", "restricted names, in other", "what they cannot read, they cannot move"];
    let blocks = profile.split("\n\n").filter(|block| !pins.iter().any(|pin| block.contains(pin)));
    blocks.collect::<Vec<_>>().join("\n\n")
}

#[test]
fn moved_directories_open_nothing() {
    let sets = if std::env::var_os("PORTCULLIS_EVERY_TASK").is_some() { ALL_SETS } else { SETS };
    let (mut moved_out, mut moved_in, mut leaked) = (0, 0, 0);
    for seed in 0..sets {
        let mut random = Random(seed ^ 0x5eed);
        let rules = random.rules();
        let Ok(profile) = compile(&Wanted { roots: &[], ..Wanted::of_rules(&rules) }) else { continue };
        let control = Evaluator::read(&without_pins(&profile));
        let profile = Evaluator::read(&profile);
        let named: Vec<PathBuf> = rules
            .layers()
            .iter()
            .flat_map(|layer| &layer.profile.files)
            .filter_map(|rule| rule.pattern.literal().map(Path::to_owned))
            .collect();
        for number in 0..ATTACKS {
            let path = match named.get(number / 3) {
                Some(path) if number % 3 == 0 => path.clone(),
                _ => random.path(),
            };
            for above in path.ancestors().filter(|above| *above != Path::new("/")) {
                let rest = path.strip_prefix(above).unwrap();
                let out = Move::random(&mut random, above, rest);
                let target =
                    if rest.as_os_str().is_empty() { out.to.clone() } else { out.to.join(&out.rest) };
                let is_out = !is_for_a_file(&rules, &out.from, FileRight::Read) && out.is_possible(&profile);
                if is_an_exception(&rules, &path, &target) {
                    continue;
                }
                let is_secret = !is_allowed(&rules, &path, FileRight::Read);
                let leaks = is_secret && out.is_possible(&control);
                leaked += usize::from(leaks && control.allows("file-read-data", text(&target)));
                if is_secret && is_out {
                    moved_out += 1;
                    assert!(
                        !profile.allows("file-read-data", text(&target)),
                        "rule set {seed}: {path:?} is read as {target:?}, {:?} moved\n{}",
                        out.from,
                        shown(&rules)
                    );
                }
                let back = Move { from: out.to, to: out.from, rest: out.rest };
                if is_for_a_file(&rules, &back.to, FileRight::Write) {
                    continue;
                }
                let is_made = profile.allows("file-write-create", text(&target));
                if !is_allowed(&rules, &path, FileRight::Write) && is_made && back.is_possible(&profile) {
                    panic!(
                        "rule set {seed}: {path:?} is written as {target:?}, which becomes {:?}\n{}",
                        back.to,
                        shown(&rules)
                    );
                }
                moved_in += usize::from(back.is_possible(&profile));
            }
        }
    }
    println!("{moved_out} moves out, {moved_in} moves in; {leaked} leaks without pins");
    assert!(moved_in > 20 && leaked > 0, "{moved_in} {leaked}");
}
