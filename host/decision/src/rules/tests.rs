use std::path::Path;

use super::*;
use crate::grant::{Grant, GrantPattern, GrantScope, PathPattern};
use crate::location::Location;
use crate::pattern::{FilePattern, NetworkPattern};
use crate::profile::{FileRight, FileRights, FileRule, NetworkRule, Profile};
use crate::request::{Endpoint, ProcessInfo};
use crate::verdict::Effect;

fn rule(id: &str, pattern: FilePattern, rights: FileRights, effect: Effect) -> FileRule {
    let (condition, setting, reason) = (String::new(), String::new(), format!("{id} says so"));
    FileRule { id: id.into(), pattern, rights, effect, conceal: true, condition, reason, setting }
}

fn tree(path: &str) -> FilePattern {
    FilePattern::tree(path).unwrap()
}

fn layer(name: &str, files: Vec<FileRule>) -> RuleLayer {
    RuleLayer { name: name.into(), profile: Profile { files, ..Profile::default() }, tightens: false }
}

fn base() -> Base {
    Base {
        workspace: vec!["/home/u/p".into()],
        temp: "/tmp".into(),
        closed: vec!["/home".into()],
        ..Base::default()
    }
}

/// The default chain in small: a policy that allows, the settings' ceiling that denies.
fn rules(grants: &[Grant]) -> RuleSet {
    let policy = layer(
        "workspace",
        vec![
            rule("read", tree("/home/u/p"), FileRights::READ, Effect::Allow),
            rule("write", tree("/home/u/p"), FileRights::WRITE, Effect::Allow),
            rule("programs", tree("/usr"), FileRights::READ, Effect::Allow),
            rule("agent", tree("/home/u/.pi"), FileRights::READ, Effect::Allow),
        ],
    );
    let ceiling = layer(
        "settings",
        vec![
            rule(
                "auth",
                FilePattern::exact("/home/u/.pi/agent/auth.json").unwrap(),
                FileRights::ALL,
                Effect::Deny,
            ),
            rule("pem", FilePattern::glob("*.pem").unwrap(), FileRights::WRITE, Effect::Deny),
        ],
    );
    RuleSet::compile(vec![policy, ceiling], base(), grants)
}

fn check(rules: &RuleSet, path: &str, right: FileRight, caller: Caller, effect: Effect, rule: &str) {
    let ruling = rules.file(Path::new(path), right, caller);
    assert_eq!((ruling.effect, ruling.rule.as_str()), (effect, rule), "{path} {right:?} {caller:?}");
}

#[test]
fn the_table_of_the_default() {
    use Caller::{Command, Tool};
    use Effect::{Allow, Ask, Deny};
    use FileRight::{Read, Write};
    let rules = rules(&[]);
    for (path, right, caller, effect, rule) in [
        ("/home/u/p/a", Read, Tool, Allow, "read"),
        ("/home/u/p/a", Write, Command, Allow, "write"),
        ("/home/u/p/a.pem", Write, Tool, Deny, "pem"),
        ("/home/u/p/a.pem", Read, Tool, Allow, "read"),
        ("/tmp/x", Write, Tool, Allow, "base.temp"),
        ("/usr/bin/x", Read, Tool, Allow, "programs"),
        ("/usr/bin/x", Write, Tool, Ask, "base.outside"),
        ("/etc/x", Read, Tool, Ask, "base.outside"),
        ("/etc/x", Read, Command, Allow, "base.system"),
        ("/etc/x", Write, Command, Ask, "base.outside"),
        ("/home/v/x", Read, Tool, Ask, "base.closed"),
        ("/home/v/x", Read, Command, Ask, "base.closed"),
        ("/home/u/.pi/agent/x", Read, Tool, Allow, "agent"),
        ("/home/u/.pi/agent/auth.json", Read, Tool, Deny, "auth"),
        ("/home/u/pp", Read, Tool, Ask, "base.closed"),
    ] {
        check(&rules, path, right, caller, effect, rule);
    }
}

#[test]
fn grants_turn_ask_into_allow_and_never_touch_a_deny() {
    let grant = |path: &str, rights| Grant {
        scope: GrantScope::Session,
        pattern: GrantPattern::Path(PathPattern { pattern: tree(path), rights }),
        granted_at: 0,
        expires_at: 0,
    };
    let rules = rules(&[grant("/home/v", FileRights::READ_WRITE), grant("/home/u/.pi", FileRights::ALL)]);
    check(&rules, "/home/v/x", FileRight::Read, Caller::Command, Effect::Allow, "base.closed");
    check(&rules, "/home/v/x.pem", FileRight::Write, Caller::Tool, Effect::Deny, "pem");
    check(&rules, "/home/u/.pi/agent/auth.json", FileRight::Read, Caller::Tool, Effect::Deny, "auth");
}

#[test]
fn the_last_rule_of_a_layer_answers_and_the_strictest_layer_counts() {
    let one = layer(
        "one",
        vec![
            rule("deny", tree("/a"), FileRights::READ, Effect::Deny),
            rule("allow", tree("/a/b"), FileRights::READ, Effect::Allow),
        ],
    );
    let two = layer("two", vec![rule("ask", tree("/a/b/c"), FileRights::READ, Effect::Ask)]);
    let rules = RuleSet::compile(vec![one, two], base(), &[]);
    check(&rules, "/a/x", FileRight::Read, Caller::Tool, Effect::Deny, "deny");
    check(&rules, "/a/b/x", FileRight::Read, Caller::Tool, Effect::Allow, "allow");
    check(&rules, "/a/b/c", FileRight::Read, Caller::Tool, Effect::Ask, "ask");
}

#[test]
fn unknown_conditions_count_for_restrictions_only() {
    let conditional = |effect| {
        let mut rule = rule("x", tree("/etc"), FileRights::WRITE, effect);
        rule.condition = "moon-is-full".into();
        RuleSet::compile(vec![layer("one", vec![rule])], base(), &[])
    };
    check(&conditional(Effect::Deny), "/etc/a", FileRight::Write, Caller::Tool, Effect::Deny, "x");
    check(&conditional(Effect::Allow), "/etc/a", FileRight::Write, Caller::Tool, Effect::Ask, "base.outside");
}

#[test]
fn only_the_hosts_own_exceptions_open_what_was_closed() {
    let closing = |name: &str| RuleLayer {
        tightens: true,
        ..layer(
            name,
            vec![
                rule("keys", tree("/usr/keys"), FileRights::ALL, Effect::Deny),
                rule("keys", FilePattern::Exact("/usr/keys/known".into()), FileRights::ALL, Effect::Allow),
            ],
        )
    };
    let reach = |name| {
        let rules = RuleSet::compile(vec![closing(name)], base(), &[]);
        assert!(!rules.place(Path::new("/usr/keys")).read);
        let place = rules.place(Path::new("/usr/keys/known"));
        (place.read, place.reach)
    };
    assert_eq!(reach("host"), (true, Reach::Opens));
    assert_eq!(reach("project"), (true, Reach::Restricts));
}

#[test]
fn places_are_what_commands_meet() {
    use Reach::{Opens, Restricts};
    let place = |path: &str, read, write, reach| RulePlace {
        location: Location::Machine(path.into()),
        read,
        write,
        reach,
    };
    assert_eq!(
        rules(&[]).places(),
        [
            place("/", true, false, Opens),
            place("/home", false, false, Restricts),
            place("/usr", true, false, Opens),
            place("/home/u/.pi", true, false, Opens),
            place("/home/u/p", true, true, Opens),
            place("/home/u/.pi/agent/auth.json", false, false, Restricts),
        ]
    );
    let rules = rules(&[]);
    let patterns: Vec<_> =
        rules.restricting_patterns(FileRight::Write).map(|(_, rule)| rule.id.as_str()).collect();
    assert_eq!(patterns, ["pem"]);
}

#[test]
fn connections() {
    let network = |id: &str, target: &str, program: &str, effect| NetworkRule {
        id: id.into(),
        target: NetworkPattern::parse(target).unwrap(),
        program: program.into(),
        effect,
        reason: id.into(),
        setting: String::new(),
    };
    let profile = |network| Profile { network, ..Profile::default() };
    let rules = RuleSet::compile(
        vec![
            RuleLayer {
                name: "one".into(),
                profile: profile(vec![
                    network("any", "*", "*", Effect::Ask),
                    network("git", "*.forge.test:22", "git", Effect::Allow),
                ]),
                tightens: false,
            },
            RuleLayer {
                name: "settings".into(),
                profile: profile(vec![network("bad", "bad.forge.test", "*", Effect::Deny)]),
                tightens: false,
            },
        ],
        base(),
        &[],
    );
    let answer = |host: &str, port, program: &str| {
        let process = ProcessInfo { pid: 1, program: program.into(), argv: vec![] };
        rules.connection(&Endpoint::Domain(host.into()), port, &process).rule
    };
    assert_eq!(answer("a.forge.test", 22, "/usr/bin/git"), "git");
    assert_eq!(answer("a.forge.test", 22, "/usr/bin/curl"), "any");
    assert_eq!(answer("a.forge.test", 22, ""), "any");
    assert_eq!(answer("bad.forge.test", 22, "/usr/bin/git"), "bad");
}

proptest::proptest! {
    #[test]
    fn adding_a_layer_never_loosens_what_another_has_said(
        effects in proptest::collection::vec((0_usize..4, proptest::sample::select(vec![Effect::Allow, Effect::Ask, Effect::Deny])), 1..8)
    ) {
        let paths = ["/a", "/a/b", "/a/b/c", "/"];
        let made: Vec<RuleLayer> = effects
            .iter()
            .map(|(path, effect)| layer("x", vec![rule("r", tree(paths[*path]), FileRights::READ, *effect)]))
            .collect();
        for length in 1..made.len() {
            let fewer = RuleSet::compile(made[..length].to_vec(), base(), &[]);
            let more = RuleSet::compile(made[..=length].to_vec(), base(), &[]);
            for path in ["/a/b/c/d", "/a/b", "/z"] {
                let before = fewer.answer(Path::new(path), FileRight::Read, Caller::Tool);
                let after = more.answer(Path::new(path), FileRight::Read, Caller::Tool);
                proptest::prop_assert!(before.is_of_the_base() || after.effect >= before.effect);
            }
        }
    }
}

#[test]
fn another_process_answers_the_same() {
    let ours = rules(&[]);
    let data = RuleData::decode(&ours.data().encode().unwrap()).unwrap();
    let theirs = data.compile().unwrap();
    for path in
        ["/home/u/p/a", "/home/u/p/a.pem", "/usr/x", "/home/v", "/tmp/x", "/home/u/.pi/agent/auth.json"]
    {
        for right in [FileRight::Read, FileRight::Write] {
            for caller in [Caller::Tool, Caller::Command] {
                let ruling = ours.file(Path::new(path), right, caller);
                assert_eq!(theirs.file(Path::new(path), right, caller), ruling, "{path}");
                let short = theirs.answer(Path::new(path), right, caller);
                assert_eq!((short.effect, short.rule), (ruling.effect, ruling.rule.as_str()), "{path}");
            }
        }
    }
}

#[test]
fn where_patterns_can_match_is_known_beforehand() {
    let rules = rules(&[]);
    let restricts = |path: &str, right| rules.restricts_below(Path::new(path), right);
    assert!(restricts("/tmp", FileRight::Write), "*.pem can appear anywhere");
    assert!(!restricts("/tmp", FileRight::Read));
    assert!(restricts("/home/u/.pi", FileRight::Read));
}

#[test]
fn neighbours_are_alike_unless_a_rule_begins_in_one() {
    let rules = rules(&[]);
    let alike = |one: &str, other: &str| rules.is_alike_below(Path::new(one), Path::new(other));
    assert!(alike("/home/u/p/a", "/home/u/p/b/c"));
    assert!(!alike("/home/u/p/a", "/home/v/a"));
    assert!(!alike("/home/u/.pi/agent", "/home/u/.pi/other"));
    assert!(!alike("/home/u/p/a", "/home/u/p/a.pem"));
}

#[test]
fn restrictions_below_a_name_hold_elsewhere_or_not() {
    let deny = |pattern: FilePattern| rule("deny", pattern, FileRights::WRITE, Effect::Deny);
    let glob = |text: &str| FilePattern::glob(text).unwrap();
    let layers = vec![layer(
        "settings",
        vec![
            deny(tree("/p/conf/prod.yml")),
            deny(glob("/**/ci/deploy.sh")),
            deny(glob("/p/src/*/secret")),
            deny(glob("/p/**/*.pem")),
            deny(tree("/p/vendor")),
        ],
    )];
    let rules = RuleSet::compile(layers, base(), &[]);
    let alike = |path: &str, other: &str| rules.restricts_alike_below(Path::new(path), Path::new(other));
    assert!(!alike("/p/conf", "/p/c") && !alike("/p/conf", "/q"));
    assert!(!alike("/p/a/ci", "/p/b") && alike("/p/a/ci", "/p/b/ci"));
    assert!(!alike("/p/src/a", "/p/c") && alike("/p/src/a", "/p/src/b"));
    assert!(!alike("/p/src", "/p/s") && alike("/p/src/a", "/p/src/\u{1}"));
    assert!(alike("/p/lib", "/p/other/place") && alike("/p/lib/x", "/p/lib"));
    assert!(!alike("/p/lib", "/q/lib") && alike("/q/lib", "/p/lib"));
    // The covered directory itself has been answered for.
    assert!(alike("/p/vendor", "/p/x") && alike("/p/vendor/a", "/p/x"));
}

#[test]
fn what_is_open_with_everything_below_it() {
    let check = |path: &str, open: bool| {
        let grants = [Grant {
            scope: GrantScope::Session,
            pattern: GrantPattern::Path(PathPattern { pattern: tree("/srv/a"), rights: FileRights::READ }),
            granted_at: 0,
            expires_at: 0,
        }];
        let more = layer(
            "more",
            vec![
                rule("srv", tree("/srv"), FileRights::READ, Effect::Deny),
                rule("srv-open", tree("/srv/open"), FileRights::READ, Effect::Allow),
                rule("one", FilePattern::exact("/srv/one").unwrap(), FileRights::READ, Effect::Allow),
                rule("key", FilePattern::glob("/usr/**/*.key").unwrap(), FileRights::READ, Effect::Deny),
            ],
        );
        let mut layers = rules(&[]).layers.clone();
        layers.push(more);
        let rules = RuleSet::compile(layers, base(), &grants);
        assert_eq!(rules.is_open_below(Path::new(path), FileRight::Read, Caller::Tool), open, "{path}");
    };
    check("/home/u/p", true);
    check("/home/u/p/deep", true);
    check("/home/u/.pi", false);
    check("/home/u/.pi/agent/x", true);
    check("/srv/open", true);
    check("/srv/one", false);
    check("/srv", false);
    check("/usr", false);
    check("/opt", true);
    // Another rule asks about the homes, and the workspace is in one of them.
    check("/", false);
    check("/home", false);
    check("/home/v", true);
}
