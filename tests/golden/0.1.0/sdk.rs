// The SDK's own functions and types as policies use them that were written for 0.1.0. It is compiled as it was, and
// never changed: what does not compile any more is what policies of that day do not compile with, either. The types of
// the contract are wit-check's business; here each is used in the way that a later field or case would break.

use portcullis_sdk::reservation::{Claim, Until, claims, release, reserve};
use portcullis_sdk::{
    Action, ActionKinds, Attribute, Cause, Choice, ConfigError, ContentBlock, Context, Descriptor, Effect,
    Endpoint, Evaluation, FileOperation, FilePattern, FileRights, FileRule, Glob, GlobError, GrantOption,
    GrantPattern, GrantScope, Limits, NetworkPattern, NetworkPatternError, NetworkRule, Never, Obligation,
    OutputEvaluation, OutputVerdict, Policy, PortSet, Profile, Request, Right, RuleInfo, ScriptFeatures,
    Severity, ToolOutput, TraceStep, Verdict, read_config, testing,
};

/// A policy with every method and a configuration.
#[derive(Debug)]
pub(crate) struct Everything {
    config: Config,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    names: Vec<String>,
}

impl Policy for Everything {
    type Config = Config;

    fn describe() -> Descriptor {
        Descriptor::new("golden:everything", "0.1.0", String::from("Everything"))
            .rule("one", "a rule")
            .handles(ActionKinds::FILE | ActionKinds::COMMAND | ActionKinds::TOOL)
            .config_schema("{}")
    }

    fn configure(config: Config) -> Result<Self, Vec<ConfigError>> {
        let odd = config.names.iter().any(String::is_empty);
        if odd { Err(vec![ConfigError::new("/names", "empty")]) } else { Ok(Self { config }) }
    }

    fn evaluate(&self, request: &Request, context: &Context) -> Evaluation {
        match &request.action {
            Action::File(access) => match &access.operation {
                FileOperation::Read | FileOperation::List | FileOperation::Search(_) => Evaluation::abstain(),
                FileOperation::Write(_)
                | FileOperation::Edit(_)
                | FileOperation::CreateDirectory
                | FileOperation::Delete
                | FileOperation::Move(_)
                | FileOperation::Link(_)
                | FileOperation::Symlink(_)
                | FileOperation::ChangeMetadata
                | FileOperation::Other(_) => {
                    Evaluation::deny("one", "no").hint("why").overridable().severity(Severity::High)
                }
            },
            Action::Command(command) | Action::Escalation(command) => {
                let Ok(script) = &command.parsed else { return Evaluation::abstain() };
                let known = script.runs(&["make"]) && !script.hides();
                let words = script.commands.iter().flat_map(|one| one.arguments()).flatten().count();
                let git =
                    script.commands.iter().any(|one| one.name() == Some("git") && one.begins_with(&["git"]));
                let dynamic = script.features.contains(ScriptFeatures::DYNAMIC);
                if known && words == 0 && !git && !dynamic && !command.mentions("sudo") {
                    Evaluation::allow("one", "yes").oblige(Obligation::Notify("told".into()))
                } else {
                    Evaluation::ask("one", "perhaps", "Run it?")
                        .details("more")
                        .offer(GrantOption::exact("Once", GrantScope::Once).lifetime(60))
                        .step(TraceStep { rule: "one".into(), matched: true, detail: String::new() })
                }
            }
            Action::Tool(call) => match claims(request).as_deref() {
                Some([Claim { path, agent, own }, ..]) => {
                    Evaluation::deny("one", format!("{path} {agent} {own}"))
                }
                Some([]) => Evaluation::allow("one", call.name.as_str())
                    .oblige(reserve(&["/a"], Until::Call))
                    .oblige(reserve(&["/b"], Until::Session))
                    .oblige(release(&["/c"]))
                    .setting("/names/0"),
                None => Evaluation::new(Verdict::Abstain, "", ""),
            },
            Action::Network(_) | Action::Socket(_) | Action::Other(_) => {
                let home = context.absolute("~/.ssh").unwrap_or_default();
                Evaluation::ask("one", home, context.cwd())
            }
        }
    }

    fn standing(&self, context: &Context) -> Profile {
        let below = |name: &str| format!("{}/{name}", context.cwd());
        Profile::new()
            .file(FileRule::allow("one", FilePattern::tree(context.cwd()), FileRights::READ_WRITE))
            .file(
                FileRule::ask("one", FilePattern::glob("/**/*.key"), FileRights::READ)
                    .condition("x")
                    .conceal(),
            )
            .file(
                FileRule::deny("one", FilePattern::exact(below("LICENSE")), FileRights::WRITE)
                    .reason("kept")
                    .setting("/names"),
            )
            .file(FileRule::new(
                "one",
                FilePattern::name("/", "*.pem"),
                FileRights::READ | FileRights::EXECUTE,
                Effect::Deny,
            ))
            .network(
                NetworkRule::allow("one", NetworkPattern::everything())
                    .program("git")
                    .reason("r")
                    .setting("/x"),
            )
            .network(NetworkRule::ask("one", NetworkPattern { host: "a.test".into(), ports: PortSet::Every }))
            .network(NetworkRule::deny(
                "one",
                NetworkPattern { host: "b.test".into(), ports: PortSet::These(vec![1]) },
            ))
            .network(NetworkRule::new("one", NetworkPattern::everything(), Effect::Ask))
            .with_reservations()
    }

    fn for_command(&self, _request: &Request, _context: &Context) -> Option<Profile> {
        let limits = Limits { wall_ms: Some(1), ..Limits::host_defaults() };
        Some(Profile { limits, tracing: Choice::NoOpinion, ..Profile::default() })
    }

    fn inspect(&self, output: &ToolOutput, _context: &Context) -> OutputEvaluation {
        match output.content.first() {
            Some(ContentBlock::Text(text)) if text.is_empty() => OutputEvaluation::pass("one", "fine"),
            Some(ContentBlock::Text(_)) => {
                OutputEvaluation::replace("one", "masked", vec![ContentBlock::Text("*".into())])
            }
            Some(ContentBlock::Image(_) | ContentBlock::Other(_)) => OutputEvaluation::withhold("one", "no"),
            None => OutputEvaluation::abstain(),
        }
    }

    fn brief(&self, _context: &Context) -> String {
        self.config.names.join(", ")
    }
}

portcullis_sdk::export_policy!(Everything);

/// A policy that writes the least.
struct Least;

impl Policy for Least {
    type Config = Never;

    fn describe() -> Descriptor {
        Descriptor {
            id: "golden:least".into(),
            version: "0.1.0".into(),
            title: "Least".into(),
            handles: ActionKinds::empty(),
            rules: vec![RuleInfo { id: "one".into(), title: "a rule".into(), help: String::new() }],
            config_schema: String::new(),
        }
    }

    fn configure(_: Never) -> Result<Self, Vec<ConfigError>> {
        Ok(Self)
    }
}

#[test]
fn policies_of_that_day_answer_as_they_did() {
    let context = testing::context("/srv/app");
    let everything = Everything::configure(read_config(r#"{"names": ["a"]}"#).unwrap()).unwrap();
    let write = testing::write(&context, "/srv/app/x");
    assert!(matches!(everything.evaluate(&write, &context).verdict, Verdict::Deny(_)));
    let read = testing::read(&context, "/srv/app/x");
    assert!(matches!(everything.evaluate(&read, &context).verdict, Verdict::Abstain));
    let list = testing::file(&context, "/srv/app", FileOperation::List);
    assert!(matches!(everything.evaluate(&list, &context).verdict, Verdict::Abstain));
    for (script, allowed) in [("make", true), ("make all", false), ("sudo make", false)] {
        for request in [testing::command(&context, script), testing::escalation(&context, script)] {
            let verdict = everything.evaluate(&request, &context).verdict;
            assert_eq!(matches!(verdict, Verdict::Allow(_)), allowed, "{script}");
        }
    }
    let connect = testing::connect("a.test", 443);
    assert!(matches!(everything.evaluate(&connect, &context).verdict, Verdict::Ask(_)));
    let mut tool = testing::tool("x", "mcp:y");
    assert!(matches!(everything.evaluate(&tool, &context).verdict, Verdict::Abstain));
    tool.attributes.push(Attribute { name: "host:reservations".into(), value: "[]".into() });
    assert!(matches!(everything.evaluate(&tool, &context).verdict, Verdict::Allow(_)));

    let profile = everything.standing(&context);
    let rule = profile.file_rule("/srv/app/LICENSE", Right::Write).unwrap().unwrap();
    assert_eq!((rule.reason.as_str(), rule.effect), ("kept", Effect::Deny));
    assert!(profile.file_rule("/x/y.pem", Right::Execute).unwrap().is_some());
    assert!(profile.file_rule("/etc/passwd", Right::Read).unwrap().is_none());
    let target = testing::endpoint("b.test");
    assert_eq!(profile.network_rule(&target, 1, "curl").unwrap().effect, Effect::Ask);
    assert_eq!(everything.for_command(&write, &context).unwrap().limits.wall_ms, Some(1));
    assert_eq!(everything.brief(&context), "a");
    let output = |content| ToolOutput {
        request: testing::request(write.action.clone()),
        is_error: false,
        truncated: false,
        content,
    };
    let text =
        |text: &str| everything.inspect(&output(vec![ContentBlock::Text(text.into())]), &context).verdict;
    assert!(matches!((text(""), text("x")), (OutputVerdict::Pass, OutputVerdict::Replace(_))));
    assert!(matches!(everything.inspect(&output(vec![]), &context).verdict, OutputVerdict::Abstain));

    let least = Least::configure(Never {}).unwrap();
    assert!(matches!(least.evaluate(&write, &context).verdict, Verdict::Abstain));
    assert!(least.standing(&context).files.is_empty() && least.for_command(&write, &context).is_none());
    assert_eq!((least.brief(&context), Least::describe().rules.len()), (String::new(), 1));
}

#[test]
fn helpers_of_that_day_say_what_they_did() {
    let refused: Vec<ConfigError> = read_config::<Never>(r#"{"a": 1}"#).unwrap_err();
    assert_eq!(refused.len(), 1);
    let parsed: Result<NetworkPattern, NetworkPatternError> = NetworkPattern::parse("*.a.test:443");
    let pattern = parsed.unwrap();
    let name: Endpoint = Endpoint::Domain("x.a.test".into());
    assert!(pattern.matches(&name, 443) && !pattern.matches(&name, 80));
    assert_eq!(pattern.to_string(), "*.a.test:443");
    let glob: Result<Glob, GlobError> = Glob::path("/a/**/*.rs");
    assert!(glob.unwrap().matches_path("/a/b/c.rs"));
    assert!(Glob::name("*.rs").unwrap().matches_name("c.rs"));
    let within: Result<bool, GlobError> = FilePattern::tree("/a").matches("/a/b");
    assert!(within.unwrap());
    assert_eq!(FileRights::from(Right::Read), FileRights::READ);
    let cause = Cause::new("one", "because");
    assert_eq!((cause.rule.as_str(), cause.setting.as_str()), ("one", ""));
    for option in [
        GrantOption::path("p", GrantScope::Session, FilePattern::exact("/a"), FileRights::READ),
        GrantOption::network("n", GrantScope::Project, NetworkPattern::everything()),
        GrantOption::tool("t", GrantScope::User, "x", "mcp:y"),
        GrantOption::new("e", GrantScope::Once, GrantPattern::Exact),
    ] {
        assert_eq!((option.label.len(), option.lifetime), (1, 0));
    }
    let claim = Claim { path: "/a".into(), agent: "ann".into(), own: false };
    assert!(claim.covers("/a/b") && claim.overlaps("/"));
    let context = testing::context("/srv/app");
    assert_eq!(testing::path_ref(&context, "/srv/app/x").relative, "x");
    assert_eq!(testing::text("abc").length, 3);
}
