//! Random rule sets and paths: what the rules deny, the profile denies; what they allow, it allows, or the difference is
//! in the list.
//!
//! With `PORTCULLIS_EVERY_TASK` (`cargo xtask test --full`), 100,000 paths are compared instead of 2,500.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use portcullis_decision::pattern::FilePattern;
use portcullis_decision::profile::{FileRight, FileRule};
use portcullis_decision::{Caller, Effect, RuleSet};
use portcullis_profile_model::Evaluator;
use portcullis_seatbelt::{CompileError, DIFFERENCES, Difference, Wanted, compile};

use crate::generator::{NAMES, Random, TOPS};
use crate::kit::shown;

/// Paths compared for each rule set.
const PATHS: usize = 25;
const SETS: usize = 100;
const ALL_SETS: usize = 4_400;

const OPERATIONS: [&str; 8] = [
    "file-write-create",
    "file-write-data",
    "file-write-flags",
    "file-write-mode",
    "file-write-owner",
    "file-write-times",
    "file-write-unlink",
    "file-write-xattr",
];

fn unescaped(part: &str) -> String {
    let mut text = String::new();
    let mut rest = part.chars();
    while let Some(character) = rest.next() {
        text.push(if character == '\\' { rest.next().unwrap_or('\\') } else { character });
    }
    text
}

fn restricting(rules: &RuleSet) -> impl Iterator<Item = &FileRule> {
    let all = rules.layers().iter().flat_map(|layer| &layer.profile.files);
    all.filter(|rule| rule.effect != Effect::Allow && (rule.rights.read || rule.rights.write))
}

/// Returns the reasons in the list for which the profile may deny an operation that the rules allow.
fn reasons(rules: &RuleSet, path: &Path, operation: &str) -> Vec<Difference> {
    let mut reasons = Vec::new();
    let is_write = operation.starts_with("file-write");
    let answer = |right| rules.answer(path, right, Caller::Command);
    let right = match operation {
        "file-read-data" => FileRight::Read,
        "process-exec" => FileRight::Execute,
        _ => FileRight::Write,
    };
    if [right, FileRight::Read].iter().any(|right| answer(*right).rule == "base.home") {
        reasons.push(Difference::PrivateHome);
    }
    if operation != "file-read-data" && answer(FileRight::Read).effect != Effect::Allow {
        reasons.push(Difference::WriteOnly);
    }
    if restricting(rules).any(|rule| (is_write || rule.rights.read) && restricts_elsewhere(rule, path)) {
        reasons.push(Difference::OtherDirectory);
    }
    if ["file-write-create", "file-write-unlink"].contains(&operation) && is_on_the_way(rules, path) {
        reasons.push(Difference::Pinned);
    }
    if operation == "file-write-create" && restricting(rules).any(|rule| restricts_other_case(rule, path)) {
        reasons.push(Difference::Spelling);
    }
    reasons
}

/// Returns true if a file that the rule restricts could come to `path` with a directory that moves.
fn restricts_elsewhere(rule: &FileRule, path: &Path) -> bool {
    let matcher = rule.pattern.matcher();
    let names: Vec<_> = path.iter().skip(1).collect();
    let directories = TOPS.iter().flat_map(|top| {
        let top = Path::new("/").join(top);
        let below = NAMES.iter().map({
            let top = top.clone();
            move |name| top.join(name)
        });
        std::iter::once(top.clone()).chain(below)
    });
    let mut directories: Vec<PathBuf> = directories.collect();
    match &rule.pattern {
        FilePattern::Name { below, .. } => directories.push(below.clone()),
        FilePattern::Glob(glob) => {
            let parts = glob.as_str().split('/').filter(|part| !part.is_empty());
            let top = parts.take_while(|part| !part.chars().all(|one| one == '*'));
            let top = top.fold(PathBuf::from("/"), |path, part| path.join(unescaped(part)));
            directories.extend(NAMES.map(|name| top.join(name)));
            directories.extend([top.join("k/k"), top.join("k/k/k")]);
            directories.push(top);
        }
        FilePattern::Exact(_) | FilePattern::Tree(_) => {}
    }
    !rule.pattern.is_literal()
        && directories.iter().any(|directory| {
            (0..names.len()).any(|skipped| {
                matcher
                    .matches(&names[skipped..].iter().fold(directory.clone(), |path, name| path.join(name)))
            })
        })
}

/// Returns true if something below `path` is restricted, or a region begins at or below it.
fn is_on_the_way(rules: &RuleSet, path: &Path) -> bool {
    let base = rules.base();
    let machine = base.own.home.iter().flat_map(|home| &home.machine);
    let tops = base
        .closed
        .iter()
        .chain(&base.workspace)
        .chain(&base.own.directories)
        .chain([&base.temp])
        .chain(machine);
    let literal = restricting(rules).filter_map(|rule| match &rule.pattern {
        FilePattern::Exact(top) | FilePattern::Tree(top) | FilePattern::Name { below: top, .. } => Some(top),
        FilePattern::Glob(_) => None,
    });
    let mut tops = tops.chain(literal);
    // A pattern of several names: one of them is the last of the path.
    let is_named = |rule: &FileRule| match &rule.pattern {
        FilePattern::Glob(glob) if glob.as_str().contains('/') => {
            let parts = glob
                .as_str()
                .split('/')
                .filter(|part| !part.is_empty() && !part.chars().all(|one| one == '*'));
            let name = Path::new("/").join(path.file_name().unwrap_or_default());
            parts.into_iter().any(|part| FilePattern::glob(part).unwrap().matcher().matches(&name))
        }
        _ => false,
    };
    // A pattern that ends with any names.
    let is_above = |rule: &FileRule| {
        let matcher = rule.pattern.matcher();
        let restricts = |path: &Path| matcher.matches(path) || restricts_elsewhere(rule, path);
        let below = ["a", "b"].map(|name| path.join(name));
        below.iter().any(|path| restricts(path) || restricts(&path.join("k")))
    };
    tops.any(|top| top.starts_with(path))
        || restricting(rules).any(|rule| is_named(rule) || !rule.pattern.is_literal() && is_above(rule))
}

/// Returns true if the rule restricts the path in lower case.
fn restricts_other_case(rule: &FileRule, path: &Path) -> bool {
    let lower = |path: &Path| PathBuf::from(path.to_str().unwrap().to_ascii_lowercase());
    let glob = |text: &str| FilePattern::glob(&text.to_ascii_lowercase()).unwrap();
    let pattern = match &rule.pattern {
        FilePattern::Exact(path) => FilePattern::Exact(lower(path)),
        FilePattern::Tree(path) => FilePattern::Tree(lower(path)),
        FilePattern::Glob(text) => glob(text.as_str()),
        FilePattern::Name { below, glob: text } => {
            let FilePattern::Glob(text) = glob(text.as_str()) else { unreachable!() };
            FilePattern::Name { below: lower(below), glob: text }
        }
    };
    // `[!a]` matches `A` in one spelling and not in the other.
    pattern.matcher().matches(&lower(path)) || rule.pattern.to_string().contains('[')
}

/// Returns true if a profile cannot say a pattern of the rules.
fn has_classes(rules: &RuleSet) -> bool {
    let patterns = rules.layers().iter().flat_map(|layer| &layer.profile.files).map(|rule| &rule.pattern);
    patterns
        .chain(rules.granted().map(|(pattern, _)| pattern))
        .any(|pattern| pattern.to_string().contains("[!"))
}

/// Returns true if something that is opened is below a path.
fn leads_on(rules: &RuleSet, path: &Path) -> bool {
    let base = rules.base();
    let tops = base.workspace.iter().chain(&base.own.directories).chain([&base.temp]).map(PathBuf::as_path);
    let named = rules.layers().iter().flat_map(|layer| &layer.profile.files).map(|rule| &rule.pattern);
    let named = named.chain(rules.granted().map(|(pattern, _)| pattern)).filter_map(FilePattern::literal);
    tops.chain(named).any(|top| top.starts_with(path) && top != path)
}

#[derive(Default)]
struct Counts {
    allowed: usize,
    denied: usize,
    refused: usize,
    differences: HashMap<Difference, usize>,
}

fn compare(rules: &RuleSet, path: &Path, profile: &Evaluator, seed: usize, counts: &mut Counts) {
    let text = path.to_str().unwrap();
    let reads = [("file-read-data", FileRight::Read), ("process-exec", FileRight::Execute)];
    let writes = OPERATIONS.map(|operation| (operation, FileRight::Write));
    for (operation, right) in reads.into_iter().chain(writes) {
        let ruled = rules.answer(path, right, Caller::Command).effect == Effect::Allow;
        match (ruled, profile.allows(operation, text)) {
            (false, true) => {
                panic!("rule set {seed}: {operation} {text:?} is denied by the rules\n{}", shown(rules))
            }
            (true, true) => counts.allowed += 1,
            (false, false) => counts.denied += 1,
            (true, false) => {
                let mut reasons = reasons(rules, path, operation);
                if reasons.is_empty() && has_classes(rules) {
                    reasons.push(Difference::Unsayable);
                }
                assert!(
                    !reasons.is_empty(),
                    "rule set {seed}: {operation} {text:?} is allowed\n{}",
                    shown(rules)
                );
                for reason in reasons {
                    *counts.differences.entry(reason).or_default() += 1;
                }
            }
        }
    }
    if profile.allows("file-read-metadata", text) && !profile.allows("file-read-data", text) {
        assert!(leads_on(rules, path), "rule set {seed}: {text:?} is looked at\n{}", shown(rules));
    }
    for operation in ["file-read-xattr", "file-map-executable"] {
        assert_eq!(
            profile.allows(operation, text),
            profile.allows("file-read-data", text),
            "{operation} {text}"
        );
    }
    // What is in no list of ours is never allowed.
    for operation in ["file-link", "file-write-setugid", "file-mount", "file-ioctl"] {
        assert!(!profile.allows(operation, text));
    }
}

#[test]
fn profiles_deny_what_rules_deny() {
    let sets = if std::env::var_os("PORTCULLIS_EVERY_TASK").is_some() { ALL_SETS } else { SETS };
    let mut counts = Counts::default();
    for seed in 0..sets {
        let mut random = Random(u64::try_from(seed).unwrap());
        let rules = random.rules();
        let wanted = Wanted { roots: &[], ..Wanted::of_rules(&rules) };
        let profile = match compile(&wanted) {
            Ok(profile) => Evaluator::read(&profile),
            Err(CompileError::Pattern { pattern, .. }) => {
                assert!(pattern.contains(['[', '\\']), "it can be written: {pattern}");
                counts.refused += 1;
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        let named: Vec<PathBuf> = rules
            .layers()
            .iter()
            .flat_map(|layer| &layer.profile.files)
            .filter_map(|rule| rule.pattern.literal().map(Path::to_owned))
            .collect();
        for number in 0..PATHS {
            let mut path = match named.get(number / 2) {
                Some(path) if number % 2 == 0 => path.clone(),
                _ => random.path(),
            };
            if random.in_ten(3) {
                path.push(random.one(&NAMES));
            }
            compare(&rules, &path, &profile, seed, &mut counts);
        }
    }
    println!(
        "allowed {}, denied {}, refused {}: {:?}",
        counts.allowed, counts.denied, counts.refused, counts.differences
    );
    assert!(counts.allowed > sets * 20 && counts.denied > sets * 50 && counts.refused < sets / 2);
    for (difference, _) in DIFFERENCES {
        // The first is the rule of the game: whatever asks is denied. Protected names have tests of their own.
        let is_elsewhere = matches!(difference, Difference::Asks | Difference::Protected);
        assert!(is_elsewhere || counts.differences.contains_key(difference), "{difference:?} was never met");
    }
}
