//! `portcullis audit export`: sends the log to collectors.

mod sending;

use anyhow::bail;
use portcullis_bootstrap::exports;
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_bootstrap::streams::complain;
use portcullis_command_line::args::audit::Export;
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::human::{age, duration};
use portcullis_command_line::output::{Cell, Page, Reader, Tint, cell, tinted};
use portcullis_export::{Cursor, Destination};
use portcullis_text::counted;
use serde_json::json;

use self::sending::{News, Purpose};
use super::logs::directory;

/// Widths of name and state; fixed, because later rows are unknown.
const WIDTHS: [usize; 2] = [16, 8];

pub(super) fn run(around: &ProcessEnv, options: &Export) -> exit::Outcome {
    let (mut destinations, errors) = exports::destinations(&around.agent_directory);
    for error in &errors {
        complain(error);
    }
    let without_mistake = if errors.is_empty() { Exit::Done } else { Exit::Bad };
    if let Some(wanted) = &options.destination {
        destinations.retain(|one| one.name == *wanted);
        if destinations.is_empty() {
            bail!(
                "no destination is named `{}`; see `portcullis audit export --status`",
                wanted.escape_debug()
            );
        }
    }
    if destinations.is_empty() {
        let [machine, user] = exports::files(&around.agent_directory);
        if errors.is_empty() && !options.json && !options.background {
            let mut page = Page::new(around);
            let (machine, user) = (machine.display(), user.display());
            page.line(&format!("no collector is named in `{user}` or `{machine}`; docs/export.md says how"));
            page.print()?;
        }
        return Ok(without_mistake);
    }
    let sent = match (options.status, options.background) {
        (true, _) => status(around, &destinations, options.json)?,
        (false, true) => sending::run(around, destinations, Purpose::Background, |_| Reader::There),
        (false, false) => send(around, destinations, options)?,
    };
    Ok(if matches!(sent, Exit::Done) { without_mistake } else { sent })
}

fn send(around: &ProcessEnv, destinations: Vec<Destination>, options: &Export) -> exit::Outcome {
    let purpose = if options.follow { Purpose::Follow } else { Purpose::Once };
    let mut page = Page::of_lines(around);
    let mut printed = Ok(Reader::There);
    let exit = sending::run(around, destinations, purpose, |news| {
        if options.json {
            page.json(&as_json(&news));
        } else {
            page.row("", &row(&news), &WIDTHS);
        }
        printed = page.print();
        printed.as_ref().map_or(Reader::Gone, |reader| *reader)
    });
    printed?;
    Ok(exit)
}

fn row(news: &News) -> Vec<Cell> {
    let name = cell(&news.destination);
    let (word, tint, text) = match (&news.failure, &news.refused) {
        (Some(reason), _) => ("waiting", Tint::Open, format!("{}{}", records(news), again(news, reason))),
        (None, Some((count, reason))) => {
            ("sent", Tint::Bad, format!("{}; {count} of them refused for good: {reason}", records(news)))
        }
        (None, None) => ("sent", Tint::Good, records(news)),
    };
    vec![name, tinted(word, tint), cell(&text)]
}

fn records(news: &News) -> String {
    counted(news.sent, "record")
}

fn again(news: &News, reason: &str) -> String {
    let again = news.again_in.map(|time| format!("; tried again in {}", duration(time))).unwrap_or_default();
    format!("; {reason}{again}")
}

fn as_json(news: &News) -> serde_json::Value {
    json!({
        "destination": news.destination,
        "sent": news.sent,
        "refused": news.refused.as_ref().map_or(0, |(count, _)| *count),
        "failure": news.failure.as_ref().or(news.refused.as_ref().map(|(_, reason)| reason)),
        "againInSeconds": news.again_in.map(|time| time.as_secs()),
    })
}

fn status(around: &ProcessEnv, destinations: &[Destination], is_json: bool) -> exit::Outcome {
    let (mut page, mut rows, mut exit) = (Page::new(around), Vec::new(), Exit::Done);
    for destination in destinations {
        let cursor = Cursor::read(&exports::state(around), &destination.name)?;
        let waiting = cursor.waiting(&directory(around))?;
        if cursor.failure.is_some() || cursor.refused > 0 {
            exit = Exit::Bad;
        }
        if is_json {
            page.json(&json!({
                "destination": destination.name,
                "format": destination.format.name(),
                "sent": cursor.sent,
                "repeated": cursor.repeated,
                "refused": cursor.refused,
                "waitingBytes": waiting,
                "failingSinceMs": cursor.failure.as_ref().map(|failure| failure.since_ms),
                "failure": cursor.failure.as_ref().map(|failure| &failure.reason),
            }));
        } else {
            rows.push(status_row(destination, &cursor, waiting));
        }
    }
    page.table("", &rows);
    page.print()?;
    Ok(exit)
}

fn status_row(destination: &Destination, cursor: &Cursor, waiting: u64) -> Vec<Cell> {
    let mut parts = vec![format!("{} records sent", cursor.sent)];
    if cursor.repeated > 0 {
        parts.push(format!("{} of them possibly twice", cursor.repeated));
    }
    if cursor.refused > 0 {
        parts.push(format!("{} refused for good", cursor.refused));
    }
    parts.push(match waiting {
        0 => "nothing waits".to_owned(),
        bytes => format!("{} KiB of the log wait", bytes.div_ceil(1024)),
    });
    if let Some(failure) = &cursor.failure {
        parts.push(format!("failing for {}: {}", age(failure.since_ms), failure.reason));
    }
    let tint = match (&cursor.failure, cursor.refused) {
        (Some(_), _) => Tint::Bad,
        (None, 0) => Tint::Good,
        (None, _) => Tint::Open,
    };
    vec![tinted(&destination.name, tint), cell(destination.format.name()), cell(&parts.join("; "))]
}
