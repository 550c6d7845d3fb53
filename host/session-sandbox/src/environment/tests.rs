use portcullis_decision::profile::EnvironmentRule;
use portcullis_decision::{Base, Profile, RuleLayer};

use super::*;

fn rules(list: &[(&str, Effect)]) -> RuleSet {
    let environment = list
        .iter()
        .map(|(name, effect)| EnvironmentRule {
            id: "e".into(),
            name: (*name).into(),
            effect: *effect,
            reason: String::new(),
            setting: String::new(),
        })
        .collect();
    let variables = vec![("GIVEN".to_owned(), "1".to_owned()), ("NOT_GIVEN".to_owned(), "1".to_owned())];
    let profile = Profile { environment, variables, ..Profile::default() };
    RuleSet::compile(vec![RuleLayer { name: "p".into(), profile, tightens: false }], Base::default(), &[])
}

fn no_rules() -> RuleSet {
    RuleSet::compile(Vec::new(), Base::default(), &[])
}

/// Parses a table of variables; lines that start with `#` are headings.
fn table(text: &'static str) -> Vec<(String, String)> {
    let entries = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let split =
        |line: &str| line.split_once('=').map(|(name, value)| (name.to_owned(), value.replace("\\x20", " ")));
    entries.map(|line| split(line).unwrap_or_else(|| panic!("no variable: {line}"))).collect()
}

/// Returns the names of the `inherited` variables that a command gets.
fn given(inherited: Vec<(String, String)>, rules: &RuleSet) -> Vec<String> {
    let harmless: Vec<bool> = inherited.iter().map(|(name, value)| withheld(name, value).is_none()).collect();
    let result = environment(inherited, &harmless, &[], rules, ("/tmp", None));
    result.into_iter().map(|(name, _)| name).filter(|name| name != "TMPDIR").collect()
}

#[test]
fn credentials_are_withheld() {
    let all = table(include_str!("withheld.txt"));
    assert!(all.len() >= 80, "{}", all.len());
    assert_eq!(given(all.clone(), &no_rules()), Vec::<String>::new());
    let told: Vec<&str> = kept_back(&all, &no_rules()).into_iter().map(|(name, _)| name).collect();
    assert_eq!(
        told,
        all.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        "what is told is what is done"
    );
}

#[test]
fn ordinary_variables_are_given() {
    let all = table(include_str!("kept.txt"));
    assert!(all.len() >= 120, "{}", all.len());
    let names: Vec<String> = all.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(given(all.clone(), &no_rules()), names);
    assert_eq!(kept_back(&all, &no_rules()), []);
}

#[test]
fn a_rule_lets_a_credential_through_or_keeps_a_variable_back() {
    let rules = rules(&[("FOO_*", Effect::Allow), ("LANG", Effect::Deny)]);
    let all = table("FOO_PW=x\nBAR_PW=x\nLANG=C\nHOME=/h\nVALUE=ghp_abcdef\nLD_PRELOAD=x\nSSH_AUTH_SOCK=x");
    assert_eq!(given(all.clone(), &rules), ["FOO_PW", "HOME", "GIVEN", "NOT_GIVEN"]);
    let expected = [
        ("BAR_PW", KeptBack::ByHost(Withheld::CredentialName)),
        ("LANG", KeptBack::ByRule),
        ("VALUE", KeptBack::ByHost(Withheld::CredentialValue)),
        ("LD_PRELOAD", KeptBack::ByHost(Withheld::Injects)),
        ("SSH_AUTH_SOCK", KeptBack::ByHost(Withheld::LeadsOut)),
    ];
    assert_eq!(kept_back(&all, &rules), expected);
}

#[test]
fn the_agent_keeps_its_keys_and_no_sockets() {
    let given = ["HOME", "ANTHROPIC_API_KEY", "SSH_AUTH_SOCK", "DOCKER_HOST", "TMUX", "TMPDIR"];
    let result = environment_of_agent(given.map(|name| (name.to_owned(), "x".to_owned())), "/tmp");
    let result: Vec<_> = result.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(result, [("HOME", "x"), ("ANTHROPIC_API_KEY", "x"), ("TMUX", "x"), ("TMPDIR", "/tmp")]);
}

#[test]
fn rules_decide_before_the_lists() {
    let rules = rules(&[
        ("GITHUB_*", Effect::Allow),
        ("GITHUB_SECRET", Effect::Deny),
        ("NOT_GIVEN", Effect::Deny),
        ("LANG", Effect::Deny),
        ("HOME", Effect::Ask),
    ]);
    let inherited = ["LANG", "HOME", "GITHUB_TOKEN", "GITHUB_SECRET", "TMPDIR", "GIVEN"];
    let host = [("GIT_AUTHOR_NAME", "Me"), ("NOT_GIVEN", "x"), ("GIVEN", "0")];
    let host = host.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let harmless = inherited.map(|name| withheld(name, "x").is_none());
    let inherited = inherited.map(|name| (name.to_owned(), "x".to_owned())).to_vec();
    let result = environment(inherited, &harmless, &host, &rules, ("/tmp", None));
    let result: Vec<_> = result.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let expected = [("GITHUB_TOKEN", "x"), ("GIT_AUTHOR_NAME", "Me"), ("GIVEN", "1"), ("TMPDIR", "/tmp")];
    assert_eq!(result, expected);
}
