use super::*;
use crate::context::{AgentInfo, Machine, Workspace};
use crate::profile::Profile;
use crate::request::{
    ActionKinds, Attribute, FileAccess, FileFacts, Origin, PathKind, PathRef, ToolCall, Zone,
};
use crate::rules::{Base, RuleLayer};
use crate::verdict::Question;
use crate::verdict::{OutputEvaluation, ToolOutput};

struct Fixed(&'static str, Result<Verdict, PolicyError>);

impl Policy for Fixed {
    fn name(&self) -> &str {
        self.0
    }
    fn digest(&self) -> &str {
        "d"
    }
    fn handles(&self) -> ActionKinds {
        ActionKinds { tool: true, file: true, ..ActionKinds::default() }
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
    Context {
        session_id: "s".into(),
        agent: AgentInfo::default(),
        workspace: Workspace::default(),
        machine: Machine::default(),
        interactive: true,
        now: 0,
        grants: vec![],
        explain: false,
        attributes: vec![],
    }
}

fn rules(layers: Vec<RuleLayer>) -> RuleSet {
    RuleSet::compile(layers, Base { workspace: vec!["/p".into()], ..Base::default() }, &[])
}

fn request(action: Action) -> Request {
    Request { id: "1".into(), parent: None, origin: Origin::Agent, action, attributes: vec![] }
}

fn tool() -> Request {
    request(Action::Tool(ToolCall { name: "t".into(), provider: "builtin".into(), input: "{}".into() }))
}

fn read(path: &str) -> Request {
    let path = PathRef {
        given: path.into(),
        absolute: path.into(),
        canonical: path.into(),
        zone: Zone::System,
        relative: path.into(),
        kind: PathKind::File,
    };
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
    // Whatever a policy and its rule are called.
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
    assert_eq!(ask.refused("no").effect(), Effect::Deny);
}

#[test]
fn a_live_grant_answers() {
    let request = tool();
    let grant = |expires_at| Grant {
        scope: crate::grant::GrantScope::Session,
        pattern: crate::grant::GrantPattern::Exact(Box::new(request.action.clone())),
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
