//! `policy run`: evaluates one request with one policy.

use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_command_line::args::action::Action;
use portcullis_command_line::args::policy::RunOnce;
use portcullis_command_line::exit;
use portcullis_command_line::output::{Page, Tint, cell, tinted};
use portcullis_decision::verdict::{Evaluation, Verdict};
use portcullis_decision::{Context, Decision, Effect, Member, Mode};
use portcullis_file_gate::spelling;
use portcullis_policy_runtime::{ComponentPolicy, LogLine};
use portcullis_policy_tools::cases::{Connection, Operation, Origin, Question};
use portcullis_policy_tools::{Component, Simulated, Simulator, request_of, session_here};
use portcullis_text::escape;
use serde_json::{Value, json};

use crate::check;

pub(super) fn run(args: RunOnce) -> exit::Outcome {
    let around = ProcessEnv::read()?;
    let policy = load(&Component::open(&args.policy)?, &args.config)?;
    // If no policy decides, the user is asked.
    Ok(ask(&around, policy, args.action, args.json)?.unwrap_or(Effect::Ask).into())
}

/// Loads a policy with the capabilities that its manifest asks for.
pub(super) fn load(component: &Component, config: &str) -> anyhow::Result<Arc<ComponentPolicy>> {
    Ok(Arc::new(component.load(&portcullis_policy_tools::runtime()?, config)?))
}

/// Asks a policy, and prints its answer and the decision with the settings. Returns the policy's own answer.
pub(super) fn ask(
    around: &ProcessEnv,
    policy: Arc<ComponentPolicy>,
    action: Action,
    as_json: bool,
) -> anyhow::Result<Option<Effect>> {
    let context = portcullis_policy_tools::context_here(around)?;
    let question = question(around, action)?;
    let explained = Context { explain: true, ..context };
    let request = request_of(question, &explained).map_err(|error| anyhow!(error)).context("asking")?;
    let simulated = Simulator::new(Arc::clone(&policy) as _).evaluate(&request, &explained);
    let printed = policy.take_log();
    let member = Member { policy, mode: Mode::Enforce };
    let decision = session_here(around, member)?.session.decide_in(&request, explained);
    print(around, (&simulated, &printed), &decision, as_json)?;
    Ok(simulated.effect())
}

fn question(around: &ProcessEnv, action: Action) -> anyhow::Result<Question> {
    let file = |operation, given: &str| -> anyhow::Result<Question> {
        let path = spelling::resolve(given, &around.cwd, &around.home)?;
        let path = portcullis_decision::path_text::encode(&path);
        let directory = matches!(operation, Operation::List | Operation::Search);
        let content = String::new();
        Ok(Question::File { operation, canonical: path.clone(), path, directory, content })
    };
    Ok(match action {
        Action::Read { path } => file(Operation::Read, &path)?,
        Action::Write { path } => file(Operation::Write, &path)?,
        Action::Edit { path } => file(Operation::Edit, &path)?,
        Action::List { path } => file(Operation::List, &path)?,
        Action::Search { path } => file(Operation::Search, &path)?,
        Action::Exec { script } => Question::Command { script, origin: Origin::Agent },
        Action::Connect { target } => Question::Connect(Connection {
            host: target.host.to_string(),
            port: target.port,
            program: String::new(),
        }),
        Action::Tool { name, input } => {
            let provider = check::provider(&name);
            Question::Tool { name, provider, input: Value::Object(input).to_string() }
        }
    })
}

fn print(
    around: &ProcessEnv,
    (simulated, printed): (&Simulated, &[LogLine]),
    decision: &Decision,
    as_json: bool,
) -> anyhow::Result<()> {
    let mut page = Page::new(around);
    let Evaluation { verdict, cause, trace } = &simulated.evaluation;
    let answer = simulated.answer();
    let rule = simulated.deciding_rule();
    let setting = rule.map_or(cause.setting.as_str(), |rule| rule.setting.as_str());
    if as_json {
        page.json(&json!({
            "verdict": answer.verdict, "rule": answer.rule, "reason": answer.reason, "setting": setting,
            "standing": rule.is_some(), "details": verdict, "trace": trace,
            "printed": printed,
            "decision": { "effect": decision.effect(), "policy": decision.policy(), "rule": decision.cause().rule },
        }));
        page.print()?;
        return Ok(());
    }
    page.row("", &[tinted(&answer.verdict, Tint::for_word(&answer.verdict)), cell(&answer.reason)], &[]);
    let id = if rule.is_some() { "standing rule" } else { "rule" };
    let told = [(id, answer.rule.as_str()), ("setting", setting)];
    let details = if rule.is_some() { Vec::new() } else { details(verdict) };
    for (what, text) in told.into_iter().chain(details).filter(|(_, text)| !text.is_empty()) {
        page.line(&format!("  {what}: {}", escape(text)));
    }
    for step in trace {
        let mark = if step.matched { "✓" } else { "·" };
        page.line(&format!("  {mark} {} {}", escape(&step.rule), escape(&step.detail)));
    }
    for line in printed {
        page.line(&format!("  | {}", escape(&line.message)));
    }
    let by = format!("{}, {}", decision.policy(), decision.cause().rule);
    page.line(&format!("  with your settings: {} ({})", decision.effect(), escape(&by)));
    page.print()?;
    Ok(())
}

/// Returns the details of a verdict besides its cause, line by line.
fn details(verdict: &Verdict) -> Vec<(&'static str, &str)> {
    match verdict {
        Verdict::Abstain | Verdict::Allow(_) => Vec::new(),
        Verdict::Ask(question) => {
            let offers = question.options.iter().map(|option| ("offers", option.label.as_str()));
            std::iter::once(("asks", question.title.as_str())).chain(offers).collect()
        }
        Verdict::Deny(denial) => denial.hint.iter().map(|hint| ("hint", hint.as_str())).collect(),
    }
}
