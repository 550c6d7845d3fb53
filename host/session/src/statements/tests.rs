use std::path::Path;

use portcullis_decision::pattern::{FilePattern, NetworkPattern};
use portcullis_decision::profile::{FileRights, FileRule, NetworkRule};
use portcullis_decision::{Profile, RuleLayer};

use super::*;

fn rule(pattern: FilePattern, rights: FileRights, effect: Effect) -> FileRule {
    FileRule {
        id: "r".to_owned(),
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

/// Returns the statements for these policy rules, with `/etc` (which exists on every machine) as the home directory.
fn said(profile: Profile, tier: Tier) -> Vec<String> {
    let base = Base {
        workspace: vec!["/etc/p".into()],
        temp: "/tmp".into(),
        closed: vec!["/etc".into()],
        ..Base::default()
    };
    let layer = RuleLayer { name: "policy".to_owned(), profile, tightens: false };
    let rules = RuleSet::compile(vec![layer], base.clone(), &[]);
    let files = RIGHTS.map(|(caller, right)| rules.file_facts(caller, right)).to_vec();
    let statements = Statements {
        files,
        hosts: rules.host_facts(),
        granted: Vec::new(),
        base,
        homes: vec!["/etc".into()],
        tier,
        commands: if tier == Tier::Landlock { Commands::WithoutNetwork } else { Commands::Run },
        stricter: Vec::new(),
        has_lifted: false,
        asks_for_names: false,
    };
    statements.all(8).into_iter().map(|statement| statement.text).collect()
}

#[test]
fn the_base_in_sentences() {
    // Missing on some machines.
    let is_there = |path: &str| Path::new(path).exists();
    let sys = if is_there("/sys/kernel") { " and parts of /sys" } else { "" };
    assert_eq!(
        said(Profile::default(), Tier::Full),
        [
            "Commands do not see your home directory (~), except ~/p.".to_owned(),
            format!(
                "Commands can read ~/p and everything else; ~ after a question, if a command names them; not /run{sys}."
            ),
            "Tools can read ~/p and /tmp (this session's own); everything else after a question.".to_owned(),
            "Commands can write ~/p and /tmp (this session's own); everything else after a question; not ~."
                .to_owned(),
            "Tools can write ~/p and /tmp (this session's own); everything else after a question.".to_owned(),
            "Commands reach no host without a question; every other host on the internet after a question."
                .to_owned(),
        ]
    );
}

#[test]
fn what_a_policy_opens_is_said_of_the_home_directory() {
    let network = NetworkRule {
        id: "n".to_owned(),
        target: NetworkPattern::parse("a.test:443").unwrap(),
        program: "*".to_owned(),
        effect: Effect::Allow,
        reason: String::new(),
        setting: String::new(),
    };
    let files = vec![
        rule(tree("/"), FileRights::READ, Effect::Allow),
        rule(tree("/"), FileRights::WRITE, Effect::Ask),
        rule(tree("/etc/p"), FileRights::WRITE, Effect::Allow),
        rule(tree("/etc/.ssh"), FileRights::ALL, Effect::Deny),
        rule(FilePattern::name("/", "*.pem").unwrap(), FileRights::WRITE, Effect::Deny),
    ];
    let profile = Profile { files, network: vec![network], ..Profile::default() };
    let said = said(profile, Tier::Full);
    assert_eq!(said[0], "Commands can read your home directory (~), but not ~/.ssh.");
    assert!(
        said.contains(
            &"Tools can read everything; never devices and files of the kernel (/proc, /sys).".to_owned()
        ),
        "{said:#?}"
    );
    let written = said.iter().find(|text| text.starts_with("Commands and tools can write")).unwrap();
    assert!(written.ends_with("; everything else after a question."), "{written}");
    assert!(said.contains(&"Never read or written: ~/.ssh.".to_owned()), "{said:#?}");
    assert!(said.contains(&"Never written: `*.pem`.".to_owned()), "{said:#?}");
    let hosts =
        "Commands reach a.test:443 without a question; every other host on the internet after a question.";
    assert_eq!(said.last().unwrap(), hosts);
}

#[test]
fn a_pattern_in_a_place_that_is_not_open_is_said_of_tools_only() {
    let glob = |text: &str| FilePattern::glob(text).unwrap();
    let files = vec![
        rule(glob("/etc/p/**/*.md"), FileRights::WRITE, Effect::Allow),
        rule(glob("/srv/**/*.md"), FileRights::WRITE, Effect::Allow),
    ];
    let said = said(Profile { files, ..Profile::default() }, Tier::Full);
    let of = |start: &str| said.iter().find(|text| text.starts_with(start)).unwrap();
    assert!(!of("Commands can write").contains("/srv"), "{said:#?}");
    assert!(of("Tools can write").contains("`/srv/**/*.md`"), "{said:#?}");
}

#[test]
fn there_is_no_network_without_namespaces() {
    let said = said(Profile::default(), Tier::Landlock);
    assert_eq!(said.last().unwrap(), "Commands reach no host: their sandbox has no network.");
    assert!(said.iter().any(|text| text.contains("own directory is $TMPDIR")), "{said:#?}");
    assert!(said.iter().any(|text| text.starts_with("Tools can write ~/p; everything else")), "{said:#?}");
    assert!(said.iter().any(|text| text.starts_with("Commands can write ~/p and $TMPDIR (")), "{said:#?}");
}
