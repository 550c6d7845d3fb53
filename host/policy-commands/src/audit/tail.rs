//! `portcullis audit tail`: the newest records, and optionally those that follow.

use std::time::Duration;

use portcullis_audit::{Follower, Placed, Record, Trouble};
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_command_line::args::audit::Tail;
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::human::ago;
use portcullis_command_line::output::{Cell, Page, Reader, Tint, cell, tinted};
use portcullis_server::record_text;
use portcullis_text::utc;
use serde_json::json;

use super::logs::{causes, directory};

/// Polling interval, short enough for a person.
const PAUSE: Duration = Duration::from_millis(200);
/// Widths of time, id and effect; fixed, because later rows are unknown.
const WIDTHS: [usize; 3] = [10, 12, 7];
/// The position of the time of day in a date with time.
const TIME_OF_DAY: usize = 11;

pub(super) fn run(around: &ProcessEnv, options: &Tail) -> exit::Outcome {
    let mut page = Page::of_lines(around);
    let filter = |lines: Vec<Result<Placed, Trouble>>| -> Vec<Result<Placed, Trouble>> {
        lines.into_iter().filter(|line| !options.denied || is_refusal(line)).collect()
    };
    // How many records lie between refusals is not known.
    let count = if options.denied { usize::MAX } else { options.lines };
    let (mut follower, newest) = Follower::begin(&directory(around), count)?;
    let mut newest = filter(newest);
    newest.drain(..newest.len().saturating_sub(options.lines));
    if newest.is_empty() && !options.follow && !options.json {
        let what = if options.denied { "no refusals yet" } else { "no records yet" };
        page.line(what);
    }
    add(&mut page, around, newest, options)?;
    while page.print()? == Reader::There && options.follow {
        std::thread::sleep(PAUSE);
        add(&mut page, around, filter(follower.poll()?), options)?;
    }
    Ok(Exit::Done)
}

/// Returns true for a denial, and for a line that cannot be read.
fn is_refusal(line: &Result<Placed, Trouble>) -> bool {
    line.as_ref().map_or(
        true,
        |placed| matches!(&placed.line.record, Record::Verdict(verdict) if verdict.effect == "deny"),
    )
}

fn add(
    page: &mut Page,
    around: &ProcessEnv,
    lines: Vec<Result<Placed, Trouble>>,
    options: &Tail,
) -> anyhow::Result<()> {
    for line in lines {
        match line {
            Ok(placed) if options.json => page.json(&record_text::record(&placed)?),
            Ok(placed) => page.row("", &row(around, &placed, options.follow), &WIDTHS),
            Err(trouble) => {
                let file = trouble.file.to_string_lossy().into_owned();
                let what = causes(trouble.error);
                if options.json {
                    page.json(&json!({ "kind": "unreadable", "file": file, "error": what }));
                } else {
                    let row =
                        [cell(""), cell(""), tinted("BROKEN", Tint::Bad), cell(&format!("{file}: {what}"))];
                    page.row("", &row, &WIDTHS);
                }
            }
        }
    }
    Ok(())
}

fn row(around: &ProcessEnv, placed: &Placed, follows: bool) -> Vec<Cell> {
    // An age would be wrong as soon as the next row is printed.
    let time = match follows {
        true => utc(placed.at_ms()).get(TIME_OF_DAY..).unwrap_or_default().to_owned(),
        false => ago(placed.at_ms()),
    };
    let time = tinted(&time, Tint::Faint);
    let id = cell(&record_text::id(&placed.log, placed.line.sequence));
    match &placed.line.record {
        Record::Verdict(verdict) => vec![
            time,
            id,
            tinted(&verdict.effect, Tint::for_word(&verdict.effect)),
            cell(&record_text::shown(&verdict.request, &around.home)),
            tinted(&format!("[{} of {}]", verdict.rule, verdict.policy), Tint::Faint),
        ],
        Record::Outcome(outcome) => vec![
            time,
            id,
            tinted(&outcome.result, Tint::for_word(&outcome.result)),
            tinted(&format!("outcome of {}", record_text::id(&placed.log, outcome.verdict)), Tint::Faint),
        ],
    }
}
