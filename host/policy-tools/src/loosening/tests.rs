//! Compares random pairs of policies, and checks the result with the enforcer's own chain over many requests.
//!
//! The oracle puts each request of a universe to both policies, alone and beside other policies. What it finds milder
//! must be found, and each witness must be milder for the oracle as well.

use std::path::PathBuf;
use std::sync::Arc;

use portcullis_decision::pattern::{FilePattern, NetworkPattern};
use portcullis_decision::profile::{FileRight, FileRights, FileRule, NetworkRule, Profile};
use portcullis_decision::request::{Action, ActionKinds};
use portcullis_decision::verdict::{
    Cause, Denial, Evaluation, OutputEvaluation, Question, ToolOutput, Verdict,
};
use portcullis_decision::{
    Base, Caller, Chain, Context, Effect, Member, Mode, Policy, PolicyError, Request, RuleLayer, RuleSet,
};
use portcullis_sdk::cases::{Connection, Given, Operation, Question as CaseQuestion};
use proptest::prelude::*;

use super::{base_of, of_rules};
use crate::changes::changes;
use crate::corpus::Item;
use crate::fuzz::RandomNumbers;
use crate::question;
use crate::simulator::Simulator;

const EFFECTS: [Effect; 3] = [Effect::Allow, Effect::Ask, Effect::Deny];
const FILES: [&str; 14] = [
    "=/p",
    "=/p/a/b",
    "/p",
    "/p/a",
    "/",
    "/tmp/x",
    "@/p *.k",
    "@/ .env",
    "@/p/a [!a]*",
    "*.k",
    "**/a/**",
    "{a,b}",
    "/p/**/b",
    ".env*",
];
const NAMES: [&str; 6] = ["a", "b", ".env", ".envx", "s.k", "c"];
const TARGETS: [&str; 12] = [
    "*",
    "a.test",
    "*.a.test",
    "b.a.test:443",
    "*:22",
    "10.0.0.0/8",
    "10.1.0.0/16",
    "10.1.2.3",
    "localhost",
    "*.b.a.test",
    "0.0.0.0/0",
    "c.test:80",
];
const HOSTS: [&str; 12] = [
    "a.test",
    "b.a.test",
    "c.b.a.test",
    "x.test",
    "10.0.0.1",
    "10.1.0.1",
    "10.1.2.3",
    "10.1.2.4",
    "127.0.0.1",
    "8.8.8.8",
    "c.test",
    "localhost",
];
const PROGRAMS: [&str; 4] = ["*", "git", "/usr/bin/git", "curl"];

/// A policy of data: its rules, and one verdict for each kind of request.
#[derive(Debug, Clone, Default)]
struct Random {
    name: &'static str,
    profile: Profile,
    file: Option<Effect>,
    network: Option<Effect>,
}

impl Policy for Random {
    fn name(&self) -> &str {
        self.name
    }
    fn digest(&self) -> &str {
        ""
    }
    fn handles(&self) -> ActionKinds {
        ActionKinds { file: true, network: true, ..ActionKinds::default() }
    }
    fn evaluate(&self, request: &Request, _: &Context) -> Result<Evaluation, PolicyError> {
        let effect = if matches!(request.action, Action::File(_)) { self.file } else { self.network };
        let verdict = match effect {
            None => Verdict::Abstain,
            Some(Effect::Allow) => Verdict::Allow(Vec::new()),
            Some(Effect::Ask) => Verdict::Ask(Question::default()),
            Some(Effect::Deny) => Verdict::Deny(Denial::default()),
        };
        Ok(Evaluation { verdict, cause: Cause::default(), trace: Vec::new() })
    }
    fn standing(&self, _: &Context) -> Result<Option<Profile>, PolicyError> {
        Ok(Some(self.profile.clone()))
    }
    fn for_command(&self, _: &Request, _: &Context) -> Result<Option<Profile>, PolicyError> {
        Ok(None)
    }
    fn inspect(&self, _: &ToolOutput, _: &Context) -> Result<Option<OutputEvaluation>, PolicyError> {
        Ok(None)
    }
    fn brief(&self, _: &Context) -> Result<String, PolicyError> {
        Ok(String::new())
    }
}

fn pick<T: Copy>(numbers: &mut RandomNumbers, from: &[T]) -> T {
    from[numbers.below(from.len())]
}

fn pattern(text: &str) -> FilePattern {
    if let Some(path) = text.strip_prefix('=') {
        return FilePattern::exact(path).unwrap();
    }
    if let Some((below, glob)) = text.strip_prefix('@').and_then(|rest| rest.split_once(' ')) {
        return FilePattern::name(below, glob).unwrap();
    }
    match text.starts_with('/') && !text.contains('*') {
        true => FilePattern::tree(text).unwrap(),
        false => FilePattern::glob(text).unwrap(),
    }
}

fn file_rule(numbers: &mut RandomNumbers) -> FileRule {
    let pattern = pattern(pick(numbers, &FILES));
    let rights = FileRights { read: numbers.below(3) > 0, write: numbers.below(2) > 0, execute: false };
    let effect = pick(numbers, &EFFECTS);
    let id = format!("{effect} {pattern}");
    FileRule {
        id,
        pattern,
        rights,
        effect,
        conceal: false,
        condition: String::new(),
        reason: String::new(),
        setting: String::new(),
    }
}

fn network_rule(numbers: &mut RandomNumbers) -> NetworkRule {
    let target = NetworkPattern::parse(pick(numbers, &TARGETS)).unwrap();
    let effect = pick(numbers, &EFFECTS);
    let program = pick(numbers, &PROGRAMS).to_owned();
    NetworkRule {
        id: format!("{effect} {target} {program}"),
        target,
        program,
        effect,
        reason: String::new(),
        setting: String::new(),
    }
}

fn verdict(numbers: &mut RandomNumbers) -> Option<Effect> {
    pick(numbers, &[None, None, Some(Effect::Allow), Some(Effect::Ask), Some(Effect::Deny)])
}

/// Returns a random policy, and one that differs from it in one or two places.
fn pair(seed: u64) -> [Random; 2] {
    let numbers = &mut RandomNumbers::new(seed);
    let files = (0..numbers.below(5)).map(|_| file_rule(numbers)).collect();
    let network = (0..numbers.below(5)).map(|_| network_rule(numbers)).collect();
    let profile = Profile { files, network, ..Profile::default() };
    let old = Random { name: "policy", profile, file: verdict(numbers), network: verdict(numbers) };
    let mut new = old.clone();
    for _ in 0..=numbers.below(2) {
        change(numbers, &mut new);
    }
    [old, new]
}

fn change(numbers: &mut RandomNumbers, policy: &mut Random) {
    let Random { profile: Profile { files, network, .. }, .. } = policy;
    match numbers.below(8) {
        0 | 1 if !files.is_empty() => drop(files.remove(numbers.below(files.len()))),
        2 | 3 if !network.is_empty() => drop(network.remove(numbers.below(network.len()))),
        0 | 4 => files.insert(numbers.below(files.len() + 1), file_rule(numbers)),
        1 | 5 => network.insert(numbers.below(network.len() + 1), network_rule(numbers)),
        6 => policy.file = verdict(numbers),
        _ => policy.network = verdict(numbers),
    }
}

/// Returns all paths of up to three names.
fn universe() -> Vec<PathBuf> {
    let mut paths = vec![PathBuf::from("/")];
    for top in ["/p", "/tmp"] {
        let tops = [PathBuf::from(top)];
        let one: Vec<PathBuf> =
            NAMES.iter().map(|name| tops[0].join(name)).chain([tops[0].join("x")]).collect();
        let two = one.iter().flat_map(|path| NAMES.map(|name| path.join(name)));
        paths.extend(tops.iter().cloned().chain(one.clone()).chain(two));
    }
    paths
}

fn items(context: &Context) -> Vec<Item> {
    let mut items = Vec::new();
    let mut add = |question: CaseQuestion| {
        let request = question::request_of(question, context).unwrap();
        items.push(Item { name: format!("{:?}", request.action), request, context: context.clone() });
    };
    for path in universe() {
        let path = path.to_str().unwrap().to_owned();
        for operation in [Operation::Read, Operation::Write] {
            let (canonical, content) = (path.clone(), String::new());
            add(CaseQuestion::File { operation, path: path.clone(), canonical, directory: false, content });
        }
    }
    for host in HOSTS {
        for port in [22, 443] {
            for program in ["/usr/bin/git", "/opt/git", "/bin/x"] {
                add(CaseQuestion::Connect(Connection { host: host.into(), port, program: program.into() }));
            }
        }
    }
    items
}

/// Other policies that can be in the chain.
fn others() -> Vec<Vec<Random>> {
    let other = |effect| {
        let files = vec![FileRule {
            effect,
            ..FileRule {
                id: "other".into(),
                pattern: FilePattern::tree("/").unwrap(),
                rights: FileRights { read: true, write: true, execute: true },
                effect,
                conceal: false,
                condition: String::new(),
                reason: String::new(),
                setting: String::new(),
            }
        }];
        let network = ["*", "0.0.0.0/0"].map(|target| NetworkRule {
            id: "other".into(),
            target: NetworkPattern::parse(target).unwrap(),
            program: "*".into(),
            effect,
            reason: String::new(),
            setting: String::new(),
        });
        let profile = Profile { files, network: network.into(), ..Profile::default() };
        Random { name: "other", profile, file: Some(effect), network: Some(effect) }
    };
    let mut others = vec![Vec::new()];
    let allowing = other(Effect::Allow);
    others.push(vec![Random { file: None, network: None, ..allowing.clone() }]);
    others.push(vec![Random { profile: Profile::default(), ..allowing.clone() }]);
    others.push(vec![allowing]);
    others.push(vec![other(Effect::Ask)]);
    others
}

/// The enforcer: a chain with its compiled rules.
struct Enforcer {
    chain: Chain,
    rules: RuleSet,
}

impl Enforcer {
    fn new(policy: &Random, others: &[Random], base: &Base) -> Self {
        let policies: Vec<Random> = std::iter::once(policy).chain(others).cloned().collect();
        let layer = |policy: &Random| RuleLayer {
            name: policy.name.to_owned(),
            profile: policy.profile.clone(),
            tightens: false,
        };
        let rules = RuleSet::compile(policies.iter().map(layer).collect(), base.clone(), &[]);
        let member = |policy: Random| Member { policy: Arc::new(policy), mode: Mode::Enforce };
        let members = policies.into_iter().map(member).collect();
        Self { chain: Chain { members, ..Chain::default() }, rules }
    }

    fn effect(&self, item: &Item) -> Effect {
        self.chain.decide(&item.request, &item.context, &self.rules, &[]).effect()
    }
}

/// Returns true if the enforcer answers a request, or a command's access, more mildly with the new policy.
fn is_milder([old, new]: &[Random; 2], items: &[Item], base: &Base) -> bool {
    others().iter().any(|others| {
        let [was, is] = [old, new].map(|policy| Enforcer::new(policy, others, base));
        let commands = || {
            universe().into_iter().any(|path| {
                [FileRight::Read, FileRight::Write].into_iter().any(|right| {
                    let effect =
                        |enforcer: &Enforcer| enforcer.rules.answer(&path, right, Caller::Command).effect;
                    effect(&is) < effect(&was)
                })
            })
        };
        items.iter().any(|item| is.effect(item) < was.effect(item)) || commands()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.min(10_000), ..ProptestConfig::default() })]

    #[test]
    fn a_pair_is_looser_exactly_if_the_enforcer_is_milder(seed in any::<u64>()) {
        let context = question::context(&Given { cwd: "/p".into(), ..Given::plain() });
        let (base, items) = (base_of(&context), items(&context));
        let pair = pair(seed);
        let [old, new] = pair.clone().map(|policy| Simulator::new(Arc::new(policy)));
        let of_rules = of_rules(&pair[0].profile, &pair[1].profile, &base);
        let of_requests: Vec<_> = changes(&old, &new, &items).filter(|change| change.loosens).collect();
        let found = !of_rules.is_empty() || !of_requests.is_empty();
        let is_milder = is_milder(&pair, &items, &base);
        prop_assert!(found || !is_milder, "a loosening is missed: {pair:#?}");
        // A witness of the rules may lie outside the oracle's universe, or concern commands alone.
        if of_rules.is_empty() {
            prop_assert_eq!(!of_requests.is_empty(), is_milder, "{:#?}", pair);
        }
    }

    #[test]
    fn each_witness_on_files_is_real(seed in any::<u64>()) {
        let context = question::context(&Given { cwd: "/p".into(), ..Given::plain() });
        let base = base_of(&context);
        let pair = pair(seed);
        for change in of_rules(&pair[0].profile, &pair[1].profile, &base) {
            let Some((words, path)) = change.name.trim_end_matches('`').split_once('`') else { continue };
            if !path.starts_with('/') || words.contains(" by ") {
                continue;
            }
            let caller = if words.contains("tools") { Caller::Tool } else { Caller::Command };
            let right = match words.split(' ').nth(3).unwrap_or_default() {
                "read" => FileRight::Read,
                "write" => FileRight::Write,
                _ => FileRight::Execute,
            };
            let milder = others().iter().any(|others| {
                let effect = |policy| {
                    let rules = Enforcer::new(policy, others, &base).rules;
                    rules.answer(std::path::Path::new(path), right, caller).effect
                };
                effect(&pair[1]) < effect(&pair[0])
            });
            let is_hidden = portcullis_decision::rules::HIDDEN_BY_DEFAULT.iter().any(|top| path.starts_with(top));
            prop_assert!(milder || is_hidden, "{change:#?} of {pair:#?}");
        }
    }
}

fn policy(profile: Profile) -> Random {
    Random { name: "policy", profile, ..Random::default() }
}

fn rule(text: &str, effect: Effect) -> FileRule {
    let rights = FileRights { read: true, write: true, execute: false };
    let numbers = &mut RandomNumbers::new(1);
    FileRule { id: text.to_owned(), pattern: pattern(text), effect, rights, ..file_rule(numbers) }
}

fn names(old: Profile, new: Profile) -> Vec<String> {
    let base = base_of(&question::context(&Given::plain()));
    of_rules(&policy(old).profile, &policy(new).profile, &base)
        .into_iter()
        .map(|change| change.name)
        .collect()
}

#[test]
fn deleted_rules_of_each_kind_have_a_witness() {
    for effect in [Effect::Ask, Effect::Deny] {
        for text in FILES {
            let old = Profile { files: vec![rule(text, effect)], ..Profile::default() };
            let found = names(old.clone(), Profile::default());
            assert!(!found.is_empty(), "{effect} {text} can be deleted");
            assert_eq!(names(Profile::default(), old), Vec::<String>::new(), "{effect} {text} can be added");
        }
        for target in TARGETS {
            let network = NetworkRule {
                target: NetworkPattern::parse(target).unwrap(),
                effect,
                ..network_rule(&mut RandomNumbers::new(1))
            };
            let old = Profile { network: vec![network], ..Profile::default() };
            assert!(!names(old.clone(), Profile::default()).is_empty(), "{effect} {target} can be deleted");
            assert!(names(Profile::default(), old).is_empty(), "{effect} {target} can be added");
        }
    }
}

#[test]
fn a_narrower_pattern_loosens_and_its_witness_is_readable() {
    let with = |text| Profile { files: vec![rule(text, Effect::Deny)], ..Profile::default() };
    let found = names(with("*.k"), with("/p/*.k"));
    assert!(found.iter().any(|name| name == "standing rules: tools read `/.k`"), "{found:?}");
    assert_eq!(names(with("/p/*.k"), with("*.k")), Vec::<String>::new());
    assert_eq!(names(with("{a,b}"), with("[ab]")), Vec::<String>::new(), "the same paths");
}

#[test]
fn hundreds_of_rules_are_compared() {
    let files: Vec<FileRule> = (0..300)
        .map(|number| {
            rule(&format!("*.secret{number}"), if number % 150 == 0 { Effect::Ask } else { Effect::Deny })
        })
        .collect();
    let old = Profile { files, ..Profile::default() };
    let mut new = old.clone();
    new.files.remove(123);
    let found = names(old, new);
    assert!(found.iter().any(|name| name.contains(".secret123")), "{found:?}");
}

#[test]
fn what_commands_get_is_compared() {
    let limit = |most| portcullis_decision::profile::Limits { processes: most, ..Default::default() };
    let with = |most| Profile { limits: limit(most), ..Profile::default() };
    assert_eq!(names(with(Some(4)), with(Some(5))).len(), 1);
    assert_eq!(names(with(Some(4)), with(None)).len(), 1);
    assert_eq!(names(with(Some(4)), with(Some(4))).len() + names(with(None), with(Some(4))).len(), 0);
    let variable = |name: &str, effect| portcullis_decision::profile::EnvironmentRule {
        id: name.to_owned(),
        name: name.to_owned(),
        effect,
        reason: String::new(),
        setting: String::new(),
    };
    let with = |rules: &[(&str, Effect)]| Profile {
        environment: rules.iter().map(|(name, effect)| variable(name, *effect)).collect(),
        ..Profile::default()
    };
    let (deny, narrow) = (with(&[("AWS_*", Effect::Deny)]), with(&[("AWS_S*", Effect::Deny)]));
    assert_eq!(names(deny.clone(), narrow.clone()).len(), 1);
    assert!(names(narrow, deny).is_empty());
}
