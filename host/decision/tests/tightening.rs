//! A layer of rules that can only tighten does nothing else, whatever it and the other layers contain.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up must fail")]

use std::collections::BTreeMap;
use std::path::Path;

use portcullis_decision::grant::{GrantPattern, GrantScope, PathPattern};
use portcullis_decision::pattern::{FilePattern, HostName, NetworkPattern};
use portcullis_decision::profile::{
    BudgetRule, EnvironmentRule, FileRight, FileRights, FileRule, Limits, NetworkRule, Profile,
};
use portcullis_decision::request::ProcessInfo;
use portcullis_decision::rules::Reach;
use portcullis_decision::{Base, Caller, Effect, Grant, RuleLayer, RuleSet};
use proptest::prelude::*;

const DEFAULTS: Limits = Limits {
    wall_ms: Some(500),
    cpu_ms: None,
    memory_mib: Some(500),
    processes: Some(500),
    open_files: Some(500),
    file_mib: Some(500),
    output_kib: Some(500),
};
const TARGETS: [&str; 6] = ["*", "a.test", "*.a.test", "127.0.0.1:80", "10.0.0.0/8", "a.test:443"];
const PATTERNS: [&str; 7] =
    ["/**", "/p/**", "/p/secret/**", "/**/*.pem", "/home/**", "/tmp/**", "/etc/passwd"];
const PATHS: [&str; 7] =
    ["/p/a", "/p/secret/b", "/p/x.pem", "/home/u/.ssh/id", "/tmp/x", "/etc/passwd", "/usr/bin/env"];
const VARIABLES: [&str; 3] = ["*", "TOKEN", "LD_*"];

fn effect() -> impl Strategy<Value = Effect> {
    prop::sample::select(vec![Effect::Allow, Effect::Ask, Effect::Deny])
}

fn file_rule() -> impl Strategy<Value = FileRule> {
    let rights = prop::sample::select(vec![FileRights::READ, FileRights::WRITE, FileRights::ALL]);
    (prop::sample::select(&PATTERNS[..]), rights, effect(), any::<bool>()).prop_map(
        |(pattern, rights, effect, conceal)| FileRule {
            id: format!("{effect} {pattern}"),
            pattern: FilePattern::glob(pattern).unwrap(),
            rights,
            effect,
            conceal,
            condition: String::new(),
            reason: String::new(),
            setting: String::new(),
        },
    )
}

fn network_rule() -> impl Strategy<Value = NetworkRule> {
    let program = prop::sample::select(vec!["*", "git"]);
    (prop::sample::select(&TARGETS[..]), program, effect()).prop_map(|(target, program, effect)| {
        NetworkRule {
            id: format!("{effect} {target}"),
            target: NetworkPattern::parse(target).unwrap(),
            program: program.to_owned(),
            effect,
            reason: String::new(),
            setting: String::new(),
        }
    })
}

fn budget() -> impl Strategy<Value = BudgetRule> {
    (prop::sample::select(&TARGETS[..]), 1_u32..1 << 20, effect()).prop_map(|(target, kib, effect)| {
        BudgetRule {
            id: format!("{kib} {target}"),
            target: NetworkPattern::parse(target).unwrap(),
            kib,
            effect,
            reason: String::new(),
            setting: String::new(),
        }
    })
}

fn variable() -> impl Strategy<Value = EnvironmentRule> {
    (prop::sample::select(&VARIABLES[..]), effect()).prop_map(|(name, effect)| EnvironmentRule {
        id: format!("{effect} {name}"),
        name: name.to_owned(),
        effect,
        reason: String::new(),
        setting: String::new(),
    })
}

fn limits() -> impl Strategy<Value = Limits> {
    prop::array::uniform7(prop::option::of(1_u32..1000)).prop_map(
        |[wall_ms, cpu_ms, memory_mib, processes, open_files, file_mib, output_kib]| Limits {
            wall_ms,
            cpu_ms,
            memory_mib,
            processes,
            open_files,
            file_mib,
            output_kib,
        },
    )
}

fn layer(tightens: bool) -> impl Strategy<Value = RuleLayer> {
    (
        prop::collection::vec(file_rule(), 0..4),
        prop::collection::vec(network_rule(), 0..3),
        prop::collection::vec(budget(), 0..2),
        prop::collection::vec(variable(), 0..2),
        limits(),
    )
        .prop_map(move |(files, network, budgets, environment, limits)| {
            let variables = vec![("GIVEN".to_owned(), "1".to_owned())];
            let name = if tightens { "tightens" } else { "counts" }.to_owned();
            let profile =
                Profile { files, network, budgets, environment, variables, limits, ..Profile::default() };
            RuleLayer { name, profile, tightens }
        })
}

fn compile(layers: &[RuleLayer], granted: bool) -> RuleSet {
    let base = Base {
        workspace: vec!["/p".into()],
        temp: "/tmp".into(),
        closed: vec!["/home".into()],
        ..Base::default()
    };
    let pattern = PathPattern { pattern: FilePattern::glob("/**").unwrap(), rights: FileRights::ALL };
    let grant = Grant {
        scope: GrantScope::Session,
        pattern: GrantPattern::Path(pattern),
        granted_at: 0,
        expires_at: 0,
    };
    let grants = if granted { vec![grant] } else { Vec::new() };
    RuleSet::compile(layers.to_vec(), base, &grants)
}

/// All answers of a rule set about files.
fn files(rules: &RuleSet) -> BTreeMap<String, Effect> {
    let mut all = BTreeMap::new();
    for path in PATHS {
        for right in [FileRight::Read, FileRight::Write, FileRight::Execute] {
            for caller in [Caller::Tool, Caller::Command] {
                let effect = rules.file(Path::new(path), right, caller).effect;
                assert_eq!(effect, rules.answer(Path::new(path), right, caller).effect);
                all.insert(format!("{path} {right:?} {caller:?}"), effect);
            }
        }
    }
    all
}

fn connections(rules: &RuleSet) -> BTreeMap<String, Effect> {
    let mut all = BTreeMap::new();
    for program in ["", "/usr/bin/git", "/usr/bin/curl"] {
        let process = ProcessInfo { pid: 1, program: program.to_owned(), argv: Vec::new() };
        for (host, port) in [("a.test", 443), ("b.a.test", 22), ("127.0.0.1", 80), ("10.1.2.3", 80)] {
            let target = HostName::parse(host).unwrap();
            all.insert(format!("{host} {program}"), rules.connection(&target, port, &process).effect);
            if let Ok(address) = host.parse() {
                let ruling = rules.address(address, port, &process);
                // No rule names it: equal to an unanswered question.
                all.insert(format!("[{host}] {program}"), ruling.map_or(Effect::Ask, |ruling| ruling.effect));
            }
        }
    }
    all
}

/// The limits in force, the host's where there are none.
fn numbers(limits: Limits) -> Vec<u32> {
    let or = |one: Option<u32>, default: Option<u32>| one.or(default).unwrap_or(u32::MAX);
    vec![
        or(limits.wall_ms, DEFAULTS.wall_ms),
        or(limits.cpu_ms, DEFAULTS.cpu_ms),
        or(limits.memory_mib, DEFAULTS.memory_mib),
        or(limits.processes, DEFAULTS.processes),
        or(limits.open_files, DEFAULTS.open_files),
        or(limits.file_mib, DEFAULTS.file_mib),
        or(limits.output_kib, DEFAULTS.output_kib),
    ]
}

fn is_kept(rules: &RuleSet, name: &str, harmless: bool) -> bool {
    rules.environment(name).map_or(harmless, |effect| effect == Effect::Allow)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_tightening_layer_only_tightens(
        counting in prop::collection::vec(layer(false), 0..3),
        tightening in layer(true),
        granted in any::<bool>(),
        first in any::<bool>(),
    ) {
        let mut all = counting.clone();
        all.insert(if first { 0 } else { all.len() }, tightening.clone());
        let (before, after) = (compile(&counting, granted), compile(&all, granted));
        for (what, effect) in files(&after) {
            prop_assert!(effect >= files(&before)[&what], "{what}");
        }
        for (what, effect) in connections(&after) {
            prop_assert!(effect >= connections(&before)[&what], "{what}");
        }
        for target in ["a.test", "b.test", "10.1.1.1"] {
            let target = HostName::parse(target).unwrap();
            let (less, more) = (after.budget(&target, 443), before.budget(&target, 443));
            let is_no_milder = less.beyond.effect >= more.beyond.effect;
            prop_assert!(less.bytes <= more.bytes && is_no_milder, "{less:?} {more:?}");
        }
        for (less, more) in numbers(after.limits(DEFAULTS)).into_iter().zip(numbers(before.limits(DEFAULTS))) {
            prop_assert!(less <= more);
        }
        for name in ["TOKEN", "LD_PRELOAD", "LANG"] {
            for harmless in [true, false] {
                prop_assert!(!is_kept(&after, name, harmless) || is_kept(&before, name, harmless), "{name}");
            }
        }
        prop_assert!(after.variables().eq(before.variables()));
        prop_assert_eq!(after.loopback_ports(), before.loopback_ports());

        // The access of commands never grows, even at places that only the layer names.
        for place in after.places() {
            let Some(path) = place.location.on_machine() else { continue };
            let was = before.place(path);
            prop_assert_eq!(&place.location, &was.location);
            prop_assert!(place.reach == was.reach || place.reach == Reach::Restricts, "{place:?} {was:?}");
            prop_assert!(!place.read || was.read, "{place:?} {was:?}");
            prop_assert!(!place.write || was.write, "{place:?} {was:?}");
        }

        // Applied twice it equals once, and data sent to another process gives the same answers.
        all.push(tightening);
        let twice = compile(&all, granted);
        prop_assert_eq!(files(&twice), files(&after));
        prop_assert_eq!(connections(&twice), connections(&after));
        let sent = after.data().compile().unwrap();
        prop_assert_eq!(files(&sent), files(&after));
    }
}

/// The same layer, counting in full, opens what it allows: the property above is not trivially true.
#[test]
fn a_counting_layer_opens_what_it_allows() {
    let opens = FileRule {
        id: "open".to_owned(),
        pattern: FilePattern::tree("/home").unwrap(),
        rights: FileRights::ALL,
        effect: Effect::Allow,
        conceal: false,
        condition: String::new(),
        reason: String::new(),
        setting: String::new(),
    };
    for (tightens, expected) in [(false, Effect::Allow), (true, Effect::Ask)] {
        let profile = Profile { files: vec![opens.clone()], ..Profile::default() };
        let rules = compile(&[RuleLayer { name: "l".to_owned(), profile, tightens }], false);
        assert_eq!(
            rules.file(Path::new("/home/u/x"), FileRight::Read, Caller::Tool).effect,
            expected,
            "{tightens}"
        );
    }
}
