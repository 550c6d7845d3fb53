use super::*;
use crate::grant::{GrantScope, PathPattern};
use crate::pattern::{FilePattern, NetworkPattern};
use crate::profile::{FileRights, Profile};
use crate::request::{
    ActionKinds, Attribute, Direction, Endpoint, FileFacts, NetworkAccess, Origin, PathKind, PathRef,
    ProcessInfo, Text, ToolCall, Transport, Zone,
};
use crate::rules::{Base, RuleLayer};
use crate::verdict::Question;
use crate::verdict::{OutputEvaluation, ToolOutput};

#[derive(Debug, Clone)]
struct Fixed(&'static str, Result<Verdict, PolicyError>);

impl Policy for Fixed {
    fn name(&self) -> &str {
        self.0
    }
    fn digest(&self) -> &str {
        "d"
    }
    fn handles(&self) -> ActionKinds {
        ActionKinds { tool: true, file: true, network_client_hello: true, ..ActionKinds::default() }
    }
    fn evaluate(&self, _: &Request, _: &Context) -> Result<Evaluation, PolicyError> {
        let cause = Cause { rule: format!("{}.rule", self.0), reason: "because".into(), ..Cause::default() };
        self.1.clone().map(|verdict| Evaluation { verdict, cause, trace: vec![] })
    }
    fn standing(&self, _: &Context) -> Result<Option<Profile>, PolicyError> {
        Ok(None)
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

fn context() -> Context {
    Context { session_id: "s".into(), interactive: true, ..Context::default() }
}

fn rules(layers: Vec<RuleLayer>) -> RuleSet {
    RuleSet::compile(layers, Base { workspace: vec!["/p".into()], ..Base::default() }, &[])
}

fn request(action: Action) -> Request {
    Request { id: "1".into(), parent: None, origin: Origin::Agent, action, facts: vec![] }
}

fn tool() -> Request {
    request(Action::Tool(ToolCall { name: "t".into(), provider: "builtin".into(), input: "{}".into() }))
}

fn read(path: &str) -> Request {
    let path = PathRef::plain(path, Zone::System, PathKind::File);
    let facts = FileFacts::default();
    request(Action::File(FileAccess { path, operation: FileOperation::Read, facts }))
}

fn chain(policies: Vec<Fixed>) -> Chain {
    let members =
        policies.into_iter().map(|policy| Member { policy: Arc::new(policy), mode: Mode::Enforce }).collect();
    Chain { members, ..Chain::default() }
}

fn allow() -> Result<Verdict, PolicyError> {
    Ok(Verdict::Allow(vec![]))
}

fn check(policies: Vec<Fixed>, request: &Request, effect: Effect, rule: &str) -> Decision {
    let decision = chain(policies).decide(request, &context(), &rules(vec![]), &[]);
    assert_eq!((decision.effect(), decision.cause().rule.as_str()), (effect, rule));
    assert_eq!(decision.permit(request).is_some(), effect == Effect::Allow);
    decision
}

#[test]
fn all_abstain_means_ask() {
    check(vec![], &tool(), Effect::Ask, "base.no-opinion");
    check(vec![Fixed("a", Ok(Verdict::Abstain))], &tool(), Effect::Ask, "base.no-opinion");
}

#[test]
fn a_failure_denies_with_its_reason() {
    let failed = Fixed("b", Err(PolicyError::TimeLimit { limit_ms: 50 }));
    let decision = check(vec![Fixed("a", allow()), failed], &tool(), Effect::Deny, "host.policy-failed");
    assert_eq!(decision.cause().reason, "policy `b` took longer than its 50 ms");
    assert!(decision.votes()[1].failed);
}

#[test]
fn unknown_obligations_deny() {
    let odd = Obligation::Other(Attribute { name: "x:y".into(), value: "1".into() });
    for obligation in [odd, Obligation::RewriteInput("{}".into()), Obligation::RewriteScript("x".into())] {
        check(
            vec![Fixed("a", Ok(Verdict::Allow(vec![obligation])))],
            &tool(),
            Effect::Deny,
            "host.policy-failed",
        );
    }
}

#[test]
fn evaluate_cannot_widen_the_rules() {
    check(vec![Fixed("a", allow())], &read("/etc/passwd"), Effect::Ask, "base.outside");
    check(vec![Fixed("a", allow())], &read("/p/a"), Effect::Allow, "a.rule");
    let denies = Fixed("a", Ok(Verdict::Deny(Denial::default())));
    check(vec![denies], &read("/p/a"), Effect::Deny, "a.rule");
    check(vec![Fixed("a", Ok(Verdict::Abstain))], &read("/p/a"), Effect::Allow, "base.workspace");
}

#[test]
fn the_rule_set_never_replaces_the_stricter_answer_of_a_policy() {
    // The names of the policy and its rule do not matter.
    let denies = Fixed("base", Ok(Verdict::Deny(Denial::default())));
    let decision = chain(vec![denies]).decide(&read("/p/a"), &context(), &rules(vec![]), &[]);
    assert_eq!(decision.effect(), Effect::Deny);
}

#[test]
fn observers_are_heard_and_do_not_count() {
    let mut chain = chain(vec![Fixed("a", allow()), Fixed("b", Ok(Verdict::Deny(Denial::default())))]);
    chain.members[1].mode = Mode::Observe;
    let decision = chain.decide(&tool(), &context(), &rules(vec![]), &[]);
    assert_eq!(decision.effect(), Effect::Allow);
    assert_eq!(decision.votes()[1].effect, Some(Effect::Deny));
}

#[test]
fn only_ask_can_be_granted() {
    let deny = check(vec![Fixed("a", Ok(Verdict::Deny(Denial::default())))], &tool(), Effect::Deny, "a.rule");
    assert_eq!(deny.granted(AnsweredBy::User, "yes").effect(), Effect::Deny);
    let ask = check(vec![Fixed("a", Ok(Verdict::Ask(Question::default())))], &tool(), Effect::Ask, "a.rule");
    assert_eq!(ask.clone().granted(AnsweredBy::User, "yes").effect(), Effect::Allow);
    assert_eq!(ask.denied(AnsweredBy::User, "no").effect(), Effect::Deny);
}

#[test]
fn a_live_grant_answers() {
    let request = tool();
    let grant = |expires_at| Grant {
        scope: GrantScope::Session,
        pattern: GrantPattern::Exact(Box::new(request.action.clone())),
        granted_at: 0,
        expires_at,
    };
    let mut context = context();
    context.now = 10;
    let effect = |grant| chain(vec![]).decide(&request, &context, &rules(vec![]), &[grant]).effect();
    assert_eq!(effect(grant(0)), Effect::Allow);
    assert_eq!(effect(grant(11)), Effect::Allow);
    assert_eq!(effect(grant(10)), Effect::Ask);
}

/// Asks about texts that contain `secret`, and about every path below `/p/asked`.
struct AboutText;

impl Policy for AboutText {
    fn name(&self) -> &str {
        "text"
    }
    fn digest(&self) -> &str {
        "d"
    }
    fn handles(&self) -> ActionKinds {
        ActionKinds { file: true, ..ActionKinds::default() }
    }
    fn evaluate(&self, request: &Request, _: &Context) -> Result<Evaluation, PolicyError> {
        let Action::File(access) = &request.action else { panic!("a file") };
        let is_secret = |text: &Text| text.value.contains("secret");
        let is_about_text =
            matches!(&access.operation, FileOperation::Write(Content::Text(text)) if is_secret(text));
        let is_about_path = access.path.canonical.starts_with("/p/asked");
        let rule = is_about_text.then_some("secret").or(is_about_path.then_some("asked"));
        let verdict = if rule.is_some() { Verdict::Ask(Question::default()) } else { Verdict::Abstain };
        let cause = Cause { rule: rule.unwrap_or_default().to_owned(), ..Cause::default() };
        Ok(Evaluation { verdict, cause, trace: vec![] })
    }
    fn standing(&self, _: &Context) -> Result<Option<Profile>, PolicyError> {
        Ok(None)
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

#[test]
fn a_grant_on_a_path_answers_no_question_about_the_text() {
    let write = |path: &str, text: &str| {
        let Action::File(access) = read(path).action else { panic!("a file") };
        let operation = FileOperation::Write(Content::Text(Text::cut(text)));
        Request { action: Action::File(FileAccess { operation, ..access }), ..read(path) }
    };
    let chain = Chain {
        members: vec![Member { policy: Arc::new(AboutText), mode: Mode::Enforce }],
        ..Chain::default()
    };
    let pattern = GrantPattern::Path(PathPattern {
        pattern: FilePattern::Tree("/p".into()),
        rights: FileRights::READ_WRITE,
    });
    let grant = |pattern| Grant { scope: GrantScope::Session, pattern, granted_at: 0, expires_at: 0 };
    let effect = |request: &Request, pattern: &GrantPattern| {
        chain.decide(request, &context(), &rules(vec![]), &[grant(pattern.clone())]).effect()
    };
    assert_eq!(effect(&write("/p/asked/x", "plain"), &pattern), Effect::Allow);
    assert_eq!(effect(&write("/p/asked/x", "a secret"), &pattern), Effect::Ask);
    assert_eq!(effect(&write("/p/x", "a secret"), &pattern), Effect::Ask);
    let secret = write("/p/x", "a secret");
    assert_eq!(effect(&secret, &GrantPattern::Exact(Box::new(secret.action.clone()))), Effect::Allow);
}

#[test]
fn what_any_allowing_policy_wants_is_done() {
    let advise = |text: &str| Obligation::Advise(text.into());
    let allowing = |name, texts: &[&str]| {
        Fixed(name, Ok(Verdict::Allow(texts.iter().map(|text| advise(text)).collect())))
    };
    let decision =
        check(vec![allowing("a", &["x"]), allowing("b", &["y", "x"])], &tool(), Effect::Allow, "a.rule");
    assert_eq!(decision.obligations(), [advise("x"), advise("y")]);
    // Also when another policy asks and the user agrees.
    let asks = Fixed("a", Ok(Verdict::Ask(Question::default())));
    let decision = check(vec![asks, allowing("b", &["y"])], &tool(), Effect::Ask, "a.rule");
    assert_eq!(decision.granted(AnsweredBy::User, "yes").obligations(), [advise("y")]);
    // A policy that only observes has no obligations.
    let mut chain = chain(vec![allowing("a", &["x"]), allowing("b", &["y"])]);
    chain.members[1].mode = Mode::Observe;
    let decision = chain.decide(&tool(), &context(), &rules(vec![]), &[]);
    assert_eq!(decision.obligations(), [advise("x")]);
}

mod laws {
    use proptest::prelude::*;

    use super::*;
    use crate::grant::{GrantPattern, GrantScope, PathPattern};
    use crate::pattern::FilePattern;
    use crate::profile::{FileRights, FileRule};

    const NAMES: [&str; 3] = ["a", "b", "c"];
    const PATHS: [&str; 4] = ["/p/x", "/etc/x", "/p/secret/x", "/home/u/x"];

    fn verdict() -> impl Strategy<Value = Result<Verdict, PolicyError>> {
        prop_oneof![
            Just(Ok(Verdict::Abstain)),
            Just(Ok(Verdict::Allow(vec![]))),
            Just(Ok(Verdict::Ask(Question::default()))),
            Just(Ok(Verdict::Deny(Denial::default()))),
            Just(Err(PolicyError::TimeLimit { limit_ms: 1 })),
        ]
    }

    fn policies() -> impl Strategy<Value = Vec<Fixed>> {
        proptest::collection::vec(verdict(), 0..3).prop_map(|verdicts| {
            NAMES.into_iter().zip(verdicts).map(|(name, verdict)| Fixed(name, verdict)).collect()
        })
    }

    fn layer() -> impl Strategy<Value = RuleLayer> {
        let effect = proptest::sample::select(vec![Effect::Allow, Effect::Ask, Effect::Deny]);
        let top = proptest::sample::select(vec!["/", "/p", "/p/secret", "/etc", "/home"]);
        let rule = (effect, top).prop_map(|(effect, top)| FileRule {
            id: "r".into(),
            pattern: FilePattern::Tree(top.into()),
            rights: FileRights::ALL,
            effect,
            conceal: false,
            condition: String::new(),
            reason: String::new(),
            setting: String::new(),
        });
        proptest::collection::vec(rule, 0..3).prop_map(|files| RuleLayer {
            name: "layer".into(),
            profile: Profile { files, ..Profile::default() },
            tightens: false,
        })
    }

    fn decide(policies: &[Fixed], layers: &[RuleLayer], path: &str, grants: &[Grant]) -> Effect {
        chain(policies.to_vec()).decide(&read(path), &context(), &rules(layers.to_vec()), grants).effect()
    }

    fn everything() -> Grant {
        let pattern = PathPattern { pattern: FilePattern::Tree("/".into()), rights: FileRights::ALL };
        Grant {
            scope: GrantScope::Session,
            pattern: GrantPattern::Path(pattern),
            granted_at: 0,
            expires_at: 0,
        }
    }

    proptest! {
        /// A request that is allowed after a layer was added is neither denied nor asked by that layer alone.
        #[test]
        fn a_layer_never_loosens_another(
            policies in policies(), layers in proptest::collection::vec(layer(), 1..3), more in layer(),
            path in proptest::sample::select(&PATHS[..])
        ) {
            let before = rules(layers.clone()).file(path.as_ref(), FileRight::Read, Caller::Tool);
            let mut all = layers.clone();
            all.push(more);
            let after = rules(all.clone()).file(path.as_ref(), FileRight::Read, Caller::Tool);
            // The base gives way only if no layer had an opinion.
            if before.policy != "base" {
                prop_assert!(after.effect >= before.effect, "{before:?} {after:?}");
                prop_assert!(decide(&policies, &all, path, &[]) >= decide(&policies, &layers, path, &[]));
            }
        }

        /// The chain never answers milder than the rules, nor the rules milder than the chain.
        #[test]
        fn both_rules_and_policies_must_agree(
            policies in policies(), layer in layer(), path in proptest::sample::select(&PATHS[..])
        ) {
            let ruling = rules(vec![layer.clone()]).file(path.as_ref(), FileRight::Read, Caller::Tool).effect;
            let decision = decide(&policies, &[layer], path, &[]);
            prop_assert!(decision >= ruling);
            for Fixed(_, verdict) in &policies {
                let effect = verdict.as_ref().map_or(Some(Effect::Deny), Verdict::effect);
                prop_assert!(effect.is_none_or(|effect| decision >= effect));
            }
        }

        /// A grant turns `ask` into `allow` and affects nothing else.
        #[test]
        fn a_grant_never_touches_a_denial(
            policies in policies(), layer in layer(), path in proptest::sample::select(&PATHS[..])
        ) {
            let layers = [layer];
            let without = decide(&policies, &layers, path, &[]);
            let with = decide(&policies, &layers, path, &[everything()]);
            let expected = if without == Effect::Ask { Effect::Allow } else { without };
            prop_assert_eq!(with, expected);
        }

        /// A policy that observes changes nothing, whatever it answers and however it fails.
        #[test]
        fn an_observer_changes_nothing(
            policies in policies(), observer in verdict(), path in proptest::sample::select(&PATHS[..])
        ) {
            let without = chain(policies.clone()).decide(&read(path), &context(), &rules(vec![]), &[]);
            let mut all = policies;
            all.push(Fixed("observer", observer));
            let mut chain = chain(all);
            chain.members.last_mut().unwrap().mode = Mode::Observe;
            let with = chain.decide(&read(path), &context(), &rules(vec![]), &[]);
            prop_assert_eq!((with.effect(), with.cause(), with.policy()), (without.effect(), without.cause(), without.policy()));
        }

        /// A policy that can only tighten does so, however the others are combined; where it is not stricter, the
        /// result is the same as without it.
        #[test]
        fn a_tightening_policy_only_tightens(
            policies in policies(), tightening in verdict(), layer in layer(), granted in any::<bool>(),
            place in 0_usize..4, combine in proptest::sample::select(vec!["strictest", "first", "a | t", "a & t"]),
            path in proptest::sample::select(&PATHS[..])
        ) {
            let grants = if granted { vec![everything()] } else { Vec::new() };
            let mut without = chain([vec![Fixed("a", allow())], policies].concat());
            let combine = Combine::parse(combine, &["a", "t"]).unwrap();
            without.combine = combine.clone();
            let mut with = without.clone();
            let member = Member { policy: Arc::new(Fixed("t", tightening.clone())), mode: Mode::Tighten };
            with.members.insert(place.min(with.members.len()), member);
            let rules = rules(vec![layer]);
            let before = without.decide(&read(path), &context(), &rules, &grants);
            let after = with.decide(&read(path), &context(), &rules, &grants);
            prop_assert!(after.effect() >= before.effect(), "{before:?} {after:?}");
            if matches!(tightening, Ok(Verdict::Allow(_) | Verdict::Abstain)) {
                prop_assert_eq!(
                    (after.effect(), after.cause(), after.policy(), after.obligations()),
                    (before.effect(), before.cause(), before.policy(), before.obligations())
                );
            }
            let mut twice = with.clone();
            twice.members.extend(with.members.last().cloned().filter(|last| last.mode == Mode::Tighten));
            prop_assert_eq!(twice.decide(&read(path), &context(), &rules, &grants).effect(), after.effect());
        }

        /// The same policy twice equals the same policy once.
        #[test]
        fn repeating_a_policy_changes_nothing(policies in policies(), path in proptest::sample::select(&PATHS[..])) {
            let twice: Vec<Fixed> = policies.iter().chain(&policies).cloned().collect();
            prop_assert_eq!(decide(&twice, &[], path, &[]), decide(&policies, &[], path, &[]));
        }
    }
}

/// The target was allowed; later stages concern only the policies that handle them.
#[test]
fn the_later_stages_of_a_connection_are_for_those_who_want_to_hear_of_them() {
    let at = |stage| {
        request(Action::Network(NetworkAccess {
            transport: Transport::Tcp,
            direction: Direction::Outbound,
            target: Endpoint::Domain("a.test".to_owned()),
            port: 443,
            stage,
            process: ProcessInfo::default(),
        }))
    };
    let (hello, resolved) = (at(Stage::ClientHello("a.test".to_owned())), at(Stage::Resolved(vec![])));
    let deny = || Fixed("a", Ok(Verdict::Deny(Denial { hint: None, overridable: true })));
    let ask = || Fixed("a", Ok(Verdict::Ask(Question::default())));
    check(vec![deny()], &hello, Effect::Deny, "a.rule");
    check(vec![ask()], &hello, Effect::Ask, "a.rule");
    check(vec![Fixed("a", Ok(Verdict::Abstain))], &hello, Effect::Allow, "base.connected");
    check(vec![deny()], &resolved, Effect::Allow, "base.connected");
    assert!(chain(vec![deny()]).hears_of(|kinds| kinds.network_client_hello));
    assert!(!chain(vec![deny()]).hears_of(|kinds| kinds.network_http));
    // A grant for the target does not answer later questions.
    let grant = GrantPattern::Network(NetworkPattern::parse("a.test").unwrap());
    assert!(grant.covers(&at(Stage::Connect).action) && !grant.covers(&hello.action));
}

/// Its offers and its obligations are ignored.
#[test]
fn a_tightening_policy_offers_and_obliges_nothing() {
    let option = crate::verdict::GrantOption {
        label: "all of it".to_owned(),
        scope: GrantScope::Session,
        pattern: GrantPattern::Exact(Box::new(tool().action)),
        lifetime: 0,
    };
    let question = Question { options: vec![option], ..Question::default() };
    let notify = Verdict::Allow(vec![Obligation::Notify("hello".to_owned())]);
    for (mode, offers, obligations) in [(Mode::Enforce, 1, 1), (Mode::Tighten, 0, 0)] {
        let decide = |verdict: Verdict| {
            let mut chain = chain(vec![Fixed("a", Ok(verdict))]);
            chain.members[0].mode = mode;
            chain.decide(&tool(), &context(), &rules(vec![]), &[])
        };
        let asked = decide(Verdict::Ask(question.clone()));
        assert_eq!(asked.question().unwrap().options.len(), offers);
        assert_eq!(decide(notify.clone()).obligations().len(), obligations);
    }
}
