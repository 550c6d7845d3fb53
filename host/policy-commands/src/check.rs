//! `portcullis check`: prints the decision on an action, without doing it.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::bail;
use portcullis_audit::winner;
use portcullis_bootstrap::journal::verdict_line;
use portcullis_bootstrap::loaded_settings::{self, Purpose};
use portcullis_bootstrap::process_env::{ProcessEnv, now};
use portcullis_bootstrap::session;
use portcullis_command_line::args::Check;
use portcullis_command_line::args::action::{Action, Sources, Target};
use portcullis_command_line::exit;
use portcullis_command_line::human::path;
use portcullis_command_line::output::Page;
use portcullis_decision::context::AgentInfo;
use portcullis_decision::request::{
    Action as Wanted, Content, Direction, FileOperation, NetworkAccess, Origin, ProcessInfo, Request,
    SearchQuery, Stage, ToolCall, Transport,
};
use portcullis_decision::{Decision, Effect, Mode, Reader, Vote};
use portcullis_file_gate::spelling;
use portcullis_session::{Cancel, CommandCall, Entry, FileCall, NoUser, Program, Session, commands, files};
use portcullis_text::escape;
use serde_json::{Map, Value, json};

use crate::explain;

/// Decides on the action and prints the decision.
///
/// # Errors
/// If the settings or a policy cannot be loaded, or the sandbox is off; if the path of the action cannot be resolved; if
/// the output cannot be written.
pub fn run(check: Check) -> exit::Outcome {
    let around = ProcessEnv::read()?;
    let wanted = wanted(&around, check.sources);
    let loaded = loaded_settings::load(&around, &wanted)?;
    if !loaded.resolved.enabled {
        bail!("the sandbox is switched off in the settings (`enabled` is false), so nothing is decided");
    }
    let wired = session::open(&around, &wanted, loaded, Arc::new(NoUser))?;
    let request = request(&wired.session, &around, check.action)?;
    let decision = wired.session.decide(&request);
    let mut page = Page::new(&around);
    add(&mut page, &around, &decision, check.json);
    if check.explain && !check.json {
        let verdict = verdict_line(&Entry { at: now(), request: &request, decision: &decision })?;
        let winner = winner(&verdict);
        page.line(&format!("  decided: {}", winner.why.words()));
        explain::heard(&mut page, &around, &verdict, winner);
    }
    page.print()?;
    Ok(decision.effect().into())
}

fn wanted(around: &ProcessEnv, sources: Sources) -> loaded_settings::Wanted {
    loaded_settings::Wanted {
        project: sources.project.unwrap_or_else(|| around.cwd.clone()),
        settings: sources.settings,
        policies: sources.policies,
        agent: AgentInfo {
            name: "portcullis".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..AgentInfo::default()
        },
        trusted: false,
        interactive: true,
        purpose: Purpose::Judge,
        inmate: portcullis_session::SandboxSubject::Commands,
        reader: Reader::User,
        refusals: None,
    }
}

/// Returns the request that the agent would make for an action.
///
/// # Errors
/// If a path cannot be resolved or examined, or the working directory of commands is missing.
pub fn request(session: &Session, around: &ProcessEnv, action: Action) -> anyhow::Result<Request> {
    let search = SearchQuery { pattern: String::new(), glob: None };
    let file = |path: &str, operation| file(session, around, path, operation);
    let wanted = match action {
        Action::Read { path } => return file(&path, FileOperation::Read),
        Action::Write { path } => return file(&path, FileOperation::Write(Content::Unknown)),
        Action::Edit { path } => return file(&path, FileOperation::Edit(Vec::new())),
        Action::List { path } => return file(&path, FileOperation::List),
        Action::Search { path } => return file(&path, FileOperation::Search(search)),
        Action::Exec { script } => {
            let cwd = workspace(session);
            let call = CommandCall {
                program: Program::Script(script),
                cwd: &cwd,
                environment: Vec::new(),
                timeout: None,
                origin: Origin::Agent,
                call: None,
            };
            commands::action(session, &call)?
        }
        Action::Connect { target } => connection(target),
        Action::Tool { name, input } => tool(name, input),
    };
    Ok(session.request(Origin::Agent, wanted))
}

fn file(
    session: &Session,
    around: &ProcessEnv,
    given: &str,
    operation: FileOperation,
) -> anyhow::Result<Request> {
    let path = spelling::resolve(given, &workspace(session), &around.home)?;
    let call = FileCall { path: &path, given, call: None, cancel: &Cancel::default() };
    Ok(files::request(session, call, operation)?)
}

fn workspace(session: &Session) -> PathBuf {
    session.settings().workspace.clone()
}

/// Returns the action of a connection to `target`.
#[must_use]
pub fn connection(target: Target) -> Wanted {
    Wanted::Network(NetworkAccess {
        transport: Transport::Tcp,
        direction: Direction::Outbound,
        target: target.host,
        port: target.port,
        stage: Stage::Connect,
        process: ProcessInfo::default(),
    })
}

fn tool(name: String, input: Map<String, Value>) -> Wanted {
    let provider = provider(&name);
    Wanted::Tool(ToolCall { name, provider, input: Value::Object(input).to_string() })
}

/// Returns the provider of a tool, from its name.
pub(crate) fn provider(name: &str) -> String {
    let server = name.strip_prefix("mcp__").and_then(|rest| rest.split("__").next());
    server.map_or_else(|| "extension".to_owned(), |server| format!("mcp:{server}"))
}

/// Returns true if a policy's "allow" has no effect because the policy can only tighten.
fn is_in_vain(vote: &Vote, decision: &Decision) -> bool {
    vote.mode == Mode::Tighten && vote.effect == Some(Effect::Allow) && decision.effect() != Effect::Allow
}

fn add(page: &mut Page, around: &ProcessEnv, decision: &Decision, as_json: bool) {
    let cause = decision.cause();
    if as_json {
        let votes: Vec<_> = decision
            .votes()
            .iter()
            .map(|vote| {
                let effect = vote.effect.map_or_else(|| "abstain".to_owned(), |effect| effect.to_string());
                json!({
                    "policy": vote.policy, "digest": vote.digest, "effect": effect,
                    "rule": vote.cause.rule, "reason": vote.cause.reason, "setting": vote.cause.setting,
                    "failed": vote.failed, "mode": vote.mode,
                })
            })
            .collect();
        let answer = json!({
            "effect": decision.effect().to_string(), "policy": decision.policy(), "rule": cause.rule,
            "reason": cause.reason, "setting": cause.setting, "hint": decision.hint(), "votes": votes,
        });
        page.json(&answer);
    } else {
        page.sentence("", &format!("{}: {}", decision.effect(), escape(&cause.reason)));
        page.line(&format!("  rule `{}` of `{}`", escape(&cause.rule), escape(decision.policy())));
        if !cause.setting.is_empty() {
            page.sentence("  ", &format!("set by {}", escape(&path(around, &cause.setting))));
        }
        if let Some(hint) = decision.hint() {
            page.sentence("  ", &escape(hint));
        }
        for vote in decision.votes().iter().filter(|vote| is_in_vain(vote, decision)) {
            let name = escape(&vote.policy);
            page.sentence("  ", &format!("`{name}` allows it, and can only tighten; `config show` says why"));
        }
    }
}
