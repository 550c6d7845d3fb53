//! `portcullis status`: the running sessions.

use anyhow::Context as _;
use portcullis_audit::Decided;
use portcullis_bootstrap::control::{Order, Outcome, ask};
use portcullis_bootstrap::loaded_settings::{self, Wanted};
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_bootstrap::running_sessions::{RunningSession, running_sessions};
use portcullis_command_line::args::status::Status;
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::human::{age, ago, path};
use portcullis_command_line::output::{Page, Tint, cell, tinted};
use portcullis_policy_commands::audit::logs;
use portcullis_server::record_text;
use serde_json::{Value, json};

/// Number of the newest decisions of a session among which its running commands are looked for.
const RECENT: usize = 200;
/// Number of digits of a session's id to show.
const SHORT: usize = 8;

/// A running session, with its running commands and open questions.
struct Row {
    session: RunningSession,
    /// The newest commands that were allowed and have not ended.
    commands: Vec<Decided>,
    /// The number of open questions; `None` if the session does not answer, or has no user to ask.
    questions: Option<usize>,
}

/// Shows the running sessions of this user.
pub(crate) fn run(status: &Status) -> exit::Outcome {
    let around = ProcessEnv::read()?;
    let running = running_sessions(&around.state).context("listing the running sessions")?;
    let rows =
        running.into_iter().map(|session| row(&around, session)).collect::<anyhow::Result<Vec<_>>>()?;
    let here = Here::read(&around);
    let mut page = Page::new(&around);
    if status.json {
        page.json(&json!({ "sessions": rows.iter().map(as_json).collect::<Vec<_>>(), "here": here }));
    } else if rows.is_empty() {
        page.line("no session is running");
    } else {
        rows.iter().for_each(|row| human(&mut page, &around, row));
    }
    if let Some(warning) = here.warning().filter(|_| !status.json) {
        page.row("", &[tinted(warning, Tint::Bad)], &[]);
    }
    page.print()?;
    Ok(Exit::Done)
}

fn row(around: &ProcessEnv, session: RunningSession) -> anyhow::Result<Row> {
    let mut commands = logs::directory(around).recent(&session.id, RECENT)?;
    commands.retain(is_running_command);
    commands.reverse();
    let directory = around.state.join("sessions").join(&session.id);
    let questions = match ask(&directory, &Order::Questions {}) {
        Ok(Some(Outcome::Questions { questions })) => Some(questions.len()),
        // A session without a user does not listen; one that is ending does not answer.
        Ok(_) | Err(_) => None,
    };
    Ok(Row { session, commands, questions })
}

fn is_running_command(decision: &Decided) -> bool {
    let action = decision.verdict.request.get("action");
    let is_command =
        ["command", "escalation"].iter().any(|kind| action.is_some_and(|action| action.get(kind).is_some()));
    is_command && decision.verdict.effect == "allow" && decision.outcome.is_none()
}

/// Returns the protection that a tier of the sandbox gives, in words.
fn protection(tier: &str) -> (String, Tint) {
    match tier {
        "full" => ("protection on".to_owned(), Tint::Good),
        "none" => ("commands are refused".to_owned(), Tint::Bad),
        tier => (format!("protection reduced (tier `{tier}`)"), Tint::Bad),
    }
}

/// Whether a session in the current directory would be protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
enum Here {
    On,
    Off,
    /// The settings cannot be used, so every tool is blocked.
    Closed,
}

impl Here {
    fn read(around: &ProcessEnv) -> Self {
        match loaded_settings::load(around, &Wanted::judging(around.cwd.clone(), None)) {
            Ok(loaded) if loaded.resolved.enabled => Self::On,
            Ok(_) => Self::Off,
            Err(_) => Self::Closed,
        }
    }

    fn warning(self) -> Option<&'static str> {
        match self {
            Self::On => None,
            Self::Off => {
                Some("Protection is OFF here: `portcullis config show --changed` names the setting.")
            }
            Self::Closed => {
                Some("The settings cannot be used here, so tools are blocked: `portcullis config validate`.")
            }
        }
    }
}

fn human(page: &mut Page, around: &ProcessEnv, row: &Row) {
    let RunningSession { id, pid, agent, agent_version, project, started_at_ms, tier, .. } = &row.session;
    let short: String = id.chars().take(SHORT).collect();
    let agent = if agent == "portcullis" { "run".to_owned() } else { format!("{agent} {agent_version}") };
    let about = format!("{agent}, started {}, process {pid}", ago(*started_at_ms));
    let (protection, tint) = protection(tier);
    let title =
        [cell(&short), cell(&path(around, project)), tinted(&protection, tint), tinted(&about, Tint::Faint)];
    page.row("", &title, &[]);
    for command in &row.commands {
        let asked = record_text::shown(&command.verdict.request, &around.home);
        let since = format!("since {}", age(command.verdict.at_ms));
        page.row("          ", &[cell(&asked), tinted(&since, Tint::Faint)], &[]);
    }
    match row.questions {
        None | Some(0) => {}
        Some(1) => {
            page.row("          ", &[tinted("1 question waits: portcullis asks list", Tint::Open)], &[])
        }
        Some(more) => {
            let line = format!("{more} questions wait: portcullis asks list");
            page.row("          ", &[tinted(&line, Tint::Open)], &[]);
        }
    }
}

fn as_json(row: &Row) -> Value {
    let command = |command: &Decided| {
        json!({
            "id": record_text::id(&command.name, command.sequence),
            "asked": record_text::asked(&command.verdict.request),
            "startedAtMs": command.verdict.at_ms,
        })
    };
    json!({
        "session": row.session,
        "commands": row.commands.iter().map(command).collect::<Vec<_>>(),
        "questions": row.questions,
    })
}
