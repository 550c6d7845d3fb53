//! `portcullis status`: the running sessions.

use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use portcullis_audit::Decided;
use portcullis_bootstrap::control::{Order, Outcome, ask};
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_bootstrap::running_sessions::{RunningSession, running_sessions};
use portcullis_server::record_text;
use serde_json::{Value, json};

use super::audit::logs;
use crate::args::status::Status;
use crate::exit::Exit;
use crate::output::{Page, Tint, cell, tinted};

/// Number of the newest decisions of a session among which its running commands are looked for.
const RECENT: usize = 200;
/// Number of digits of a session's id to show.
const SHORT: usize = 8;

/// A session with what it is doing.
struct Row {
    session: RunningSession,
    /// The newest commands that were allowed and have not ended.
    commands: Vec<Decided>,
    /// The number of open questions; `None` if the session does not answer, or has no user to ask.
    questions: Option<usize>,
}

/// Shows the running sessions of this user.
pub(crate) fn run(status: &Status) -> crate::exit::Outcome {
    let around = ProcessEnv::read()?;
    let running = running_sessions(&around.state).context("listing the running sessions")?;
    let rows =
        running.into_iter().map(|session| row(&around, session)).collect::<anyhow::Result<Vec<_>>>()?;
    let mut page = Page::new(&around);
    if status.json {
        page.json(&json!({ "sessions": rows.iter().map(as_json).collect::<Vec<_>>() }));
    } else if rows.is_empty() {
        page.line("no session is running");
    } else {
        rows.iter().for_each(|row| human(&mut page, &around, row));
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

fn human(page: &mut Page, around: &ProcessEnv, row: &Row) {
    let RunningSession { id, pid, agent, agent_version, project, started_at_ms, .. } = &row.session;
    let short: String = id.chars().take(SHORT).collect();
    let agent = if agent == "portcullis" { "run".to_owned() } else { format!("{agent} {agent_version}") };
    let about = format!("{agent}, started {} ago, process {pid}", age(*started_at_ms));
    page.row("", &[cell(&short), cell(&below_home(around, project)), tinted(&about, Tint::Faint)], &[]);
    for command in &row.commands {
        let asked = record_text::asked(&command.verdict.request);
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

/// Returns a path as people write it: with `~` for the home directory.
fn below_home(around: &ProcessEnv, path: &str) -> String {
    match Path::new(path).strip_prefix(&around.home) {
        Ok(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Ok(rest) => format!("~/{}", rest.display()),
        Err(_) => path.to_owned(),
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

/// Returns the time since a moment, in words. `at_ms` is in milliseconds since 1970-01-01 UTC.
fn age(at_ms: u64) -> String {
    let at = SystemTime::UNIX_EPOCH + Duration::from_millis(at_ms);
    in_words(SystemTime::now().duration_since(at).unwrap_or_default())
}

fn in_words(time: Duration) -> String {
    let seconds = time.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min"),
        (0, _, _) => format!("{hours} h {} min", minutes % 60),
        (1, _, _) => "1 day".to_owned(),
        _ => format!("{days} days"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_words() {
        let seconds = [0, 59, 60, 3599, 3600, 86_399, 86_400, 200_000];
        let words = ["0 s", "59 s", "1 min", "59 min", "1 h 0 min", "23 h 59 min", "1 day", "2 days"];
        assert_eq!(seconds.map(|seconds| in_words(Duration::from_secs(seconds))), words);
    }
}
