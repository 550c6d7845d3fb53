use super::*;
use crate::profile::{FileRights, FileRule, Profile};
use crate::rules::{Base, RuleLayer};

fn base() -> Base {
    Base {
        workspace: vec!["/home/u/p".into()],
        temp: "/tmp".into(),
        closed: vec!["/home".into()],
        ..Base::default()
    }
}

fn rule(pattern: FilePattern, rights: FileRights, effect: Effect) -> FileRule {
    FileRule {
        id: format!("{pattern}"),
        pattern,
        rights,
        effect,
        conceal: false,
        condition: String::new(),
        reason: String::new(),
        setting: String::new(),
    }
}

fn tree(path: &str) -> FilePattern {
    FilePattern::tree(path).unwrap()
}

fn rules(profile: Profile) -> RuleSet {
    let layer = RuleLayer { name: "policy".to_owned(), profile, tightens: false };
    RuleSet::compile(vec![layer], base(), &[])
}

fn with_files(files: Vec<FileRule>) -> RuleSet {
    rules(Profile { files, ..Profile::default() })
}

fn availabilities(facts: &FileFacts) -> Vec<(&str, Availability)> {
    facts.places.iter().map(|place| (place.path.to_str().unwrap(), place.standing)).collect()
}

#[test]
fn the_base_closes_homes_to_commands_and_has_tools_ask() {
    use Availability::{Asked, Free, Hidden};
    let rules = with_files(Vec::new());
    let facts = rules.file_facts(Caller::Command, FileRight::Read);
    assert_eq!(facts.elsewhere, Free);
    let of = |path: &str| facts.at(Path::new(path));
    assert_eq!(
        (of("/home/u/x"), of("/home/u/p/x"), of("/run/x"), of("/etc/x")),
        (Hidden, Free, Hidden, Free)
    );
    let facts = rules.file_facts(Caller::Command, FileRight::Write);
    assert_eq!(facts.elsewhere, Asked);
    assert_eq!(availabilities(&facts), [("/home", Hidden), ("/tmp", Free), ("/home/u/p", Free)]);
    for right in [FileRight::Read, FileRight::Write] {
        let facts = rules.file_facts(Caller::Tool, right);
        assert_eq!(facts.elsewhere, Asked);
        assert_eq!(availabilities(&facts), [("/tmp", Free), ("/home/u/p", Free)]);
    }
}

#[test]
fn a_rule_that_reads_everything_opens_homes() {
    let rules = with_files(vec![
        rule(tree("/"), FileRights::READ, Effect::Allow),
        rule(tree("/home/u/.ssh"), FileRights::ALL, Effect::Deny),
    ]);
    let facts = rules.file_facts(Caller::Command, FileRight::Read);
    assert_eq!(facts.at(Path::new("/home/u/x")), Availability::Free);
    assert_eq!(facts.at(Path::new("/home/u/.ssh/id")), Availability::Denied);
    assert_eq!(facts.at(Path::new("/run/x")), Availability::Hidden, "a rule around it does not open it");
    let tools = rules.file_facts(Caller::Tool, FileRight::Read);
    assert_eq!(availabilities(&tools), [("/home/u/.ssh", Availability::Denied)]);
}

#[test]
fn every_place_of_the_facts_has_the_answer_of_the_rules() {
    let files = vec![
        rule(tree("/"), FileRights::READ, Effect::Allow),
        rule(tree("/home/u/p"), FileRights::READ_WRITE, Effect::Ask),
        rule(FilePattern::exact("/home/u/p/one").unwrap(), FileRights::ALL, Effect::Allow),
        rule(tree("/home/u/p/two"), FileRights::WRITE, Effect::Deny),
        rule(tree("/run/user/1"), FileRights::READ, Effect::Allow),
    ];
    let rules = with_files(files);
    let facts = rules.file_facts(Caller::Tool, FileRight::Write);
    for path in ["/home/u/p/one", "/home/u/p/one/x", "/home/u/p/two/x", "/home/u/p/y", "/etc/x", "/tmp/x"] {
        let expected = match rules.file(Path::new(path), FileRight::Write, Caller::Tool).effect {
            Effect::Allow => Availability::Free,
            Effect::Ask => Availability::Asked,
            Effect::Deny => Availability::Denied,
        };
        assert_eq!(facts.at(Path::new(path)), expected, "{path}");
    }
    let facts = rules.file_facts(Caller::Command, FileRight::Read);
    assert_eq!(facts.at(Path::new("/run/user/1/x")), Availability::Free);
    assert_eq!(facts.at(Path::new("/run/user/2")), Availability::Hidden);
}

#[test]
fn names_are_told_where_they_change_something() {
    let files = vec![
        rule(tree("/home/u/p"), FileRights::READ_WRITE, Effect::Allow),
        rule(FilePattern::name("/", "*.pem").unwrap(), FileRights::WRITE, Effect::Deny),
        rule(FilePattern::name("/home/u/p", "a*").unwrap(), FileRights::READ, Effect::Allow),
        rule(FilePattern::glob("**/{x,y}").unwrap(), FileRights::WRITE, Effect::Ask),
    ];
    let facts = with_files(files).file_facts(Caller::Tool, FileRight::Write);
    let names: Vec<_> = facts.names.iter().map(|name| (name.pattern.to_string(), name.standing)).collect();
    assert_eq!(
        names,
        [("/**/*.pem".to_owned(), Availability::Denied), ("**/{x,y}".to_owned(), Availability::Asked)]
    );
}

#[test]
fn hosts_are_told_by_what_all_rules_say() {
    let network = |target: &str, effect| NetworkRule {
        id: target.to_owned(),
        target: NetworkPattern::parse(target).unwrap(),
        program: "*".to_owned(),
        effect,
        reason: String::new(),
        setting: String::new(),
    };
    let rules = rules(Profile {
        network: vec![
            network("a.test", Effect::Allow),
            network("*.b.test", Effect::Allow),
            network("a.test", Effect::Deny),
            network("*:22", Effect::Deny),
        ],
        ..Profile::default()
    });
    let facts = rules.host_facts();
    assert_eq!(facts.elsewhere, Effect::Ask);
    let told: Vec<_> = facts.targets.iter().map(|fact| (fact.target.to_string(), fact.effect)).collect();
    let expected = [("a.test", Effect::Deny), ("*.b.test", Effect::Allow), ("*:22", Effect::Deny)];
    assert_eq!(told, expected.map(|(target, effect)| (target.to_owned(), effect)));
}
