//! `policy observe`: shows a policy's verdicts on the requests of this machine, beside the actual decisions.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use portcullis_audit::{Directory, Follower, Placed, Recall, Record, Trouble, read_all};
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_bootstrap::streams::say;
use portcullis_command_line::args::policy::Observe;
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::output::{Page, Reader, Tint, cell, tinted};
use portcullis_decision::Context;
use portcullis_policy_tools::{Component, Lacks, Logged, PolicyAnswer, Simulator, logged};
use portcullis_server::record_text;
use portcullis_text::{escape, utc};
use serde_json::{Value, json};

use crate::audit::logs::{causes, directory};

/// Polling interval, short enough for a person.
const PAUSE: Duration = Duration::from_millis(200);
/// Widths of time, decision and verdict; fixed, because later rows are unknown.
const WIDTHS: [usize; 5] = [19, 7, 1, 7, 24];

pub(super) fn run(args: &Observe) -> exit::Outcome {
    let around = ProcessEnv::read()?;
    let component = Component::open(&args.policy)?;
    let policy = component.load(&portcullis_policy_tools::runtime()?, &args.config)?;
    let now = portcullis_policy_tools::context_here(&around)?;
    let directory = directory(&around);
    let (mut follower, newest) = Follower::begin(&directory, args.lines)?;
    let mut page = Page::new(&around);
    let mut observer =
        Observer { policy: Simulator::new(Arc::new(policy)), now, directory, recalls: HashMap::new() };
    observer.add(&mut page, newest, args.json);
    while page.print()? == Reader::There && args.follow {
        std::thread::sleep(PAUSE);
        observer.add(&mut page, follower.poll()?, args.json);
    }
    Ok(Exit::Done)
}

struct Observer {
    policy: Simulator,
    /// For decisions without a context in the log.
    now: Context,
    directory: Directory,
    /// The contexts from each log.
    recalls: HashMap<String, Recall>,
}

impl Observer {
    fn add(&mut self, page: &mut Page, lines: Vec<Result<Placed, Trouble>>, as_json: bool) {
        for line in lines {
            match line {
                Ok(placed) => {
                    let Some((logged, asked)) = self.logged(placed) else { continue };
                    let said = self.said(&logged);
                    if as_json {
                        page.json(&as_object(&logged, &said, &asked));
                    } else {
                        row(page, &logged, &said, &asked);
                    }
                }
                Err(trouble) => {
                    let file = trouble.file.to_string_lossy().into_owned();
                    say(&escape(&format!("{file}: {}", causes(trouble.error))));
                }
            }
        }
    }

    /// Returns a decision and the description of its request.
    ///
    /// `None` if the record is no decision or cannot be repeated.
    fn logged(&mut self, placed: Placed) -> Option<(Logged, String)> {
        let Placed { log, line } = placed;
        let Record::Verdict(verdict) = line.record else { return None };
        let asked = record_text::asked(&verdict.request);
        let id = record_text::id(&log, line.sequence);
        let recall = self.recalls.entry(log).or_default();
        let mut facts = recall.facts(line.sequence, &verdict).cloned();
        if facts.is_none() && verdict.facts_at > 0 {
            // The context was logged before the observer started.
            let found = self.directory.decision(&id).ok()?;
            for earlier in
                read_all(&found.log).ok()?.flatten().take_while(|one| one.sequence <= line.sequence)
            {
                if let Record::Verdict(earlier_verdict) = &earlier.record {
                    facts = recall.facts(earlier.sequence, earlier_verdict).cloned();
                }
            }
        }
        Some((logged(id, verdict, facts.unwrap_or_default())?, asked))
    }

    fn said(&self, logged: &Logged) -> PolicyAnswer {
        let context = logged.context_or(&self.now);
        self.policy.evaluate(&logged.request, &context).answer()
    }
}

fn row(page: &mut Page, logged: &Logged, said: &PolicyAnswer, asked: &str) {
    let lacks = logged.lacks().map_or("", Lacks::text);
    let row = [
        tinted(&utc(logged.at_ms), Tint::Faint),
        tinted(&logged.said.verdict, Tint::for_word(&logged.said.verdict)),
        cell("→"),
        tinted(&said.verdict, Tint::for_word(&said.verdict)),
        cell(&said.rule),
        cell(asked),
        tinted(lacks, Tint::Faint),
    ];
    page.row("", &row, &WIDTHS);
}

fn as_object(logged: &Logged, said: &PolicyAnswer, asked: &str) -> Value {
    json!({
        "id": logged.name, "atMs": logged.at_ms, "asked": asked, "decided": logged.said, "said": said,
        "lacks": logged.lacks(),
    })
}
