//! Sends to all collectors at once, one thread each: one that hangs does not hold up the others.

use std::io::Read as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use portcullis_audit::{Placed, Record};
use portcullis_bootstrap::exports;
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_command_line::exit::Exit;
use portcullis_command_line::output::Reader;
use portcullis_export::{Destination, ExportError, Exporter, Step};
use portcullis_server::record_text;

use super::super::logs::directory;

/// The pause before new records are looked for.
const LOOK: Duration = Duration::from_millis(500);
/// The pause after a failure; it doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// How long a process in the background sends after its session has ended.
const LAST: Duration = Duration::from_secs(5);

/// When sending ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// When everything is sent, or a collector does not accept it.
    Once,
    /// Never.
    Follow,
    /// When standard input ends, which a session holds.
    Background,
}

/// A report on the progress of one destination.
#[derive(Debug, Clone, Default)]
pub(super) struct News {
    pub(super) destination: String,
    /// Number of records that were accepted since the last news.
    pub(super) sent: usize,
    pub(super) refused: Option<(u64, String)>,
    pub(super) failure: Option<String>,
    /// The pause before the next try.
    pub(super) again_in: Option<Duration>,
}

/// Sends to all destinations. `tell` prints each report, and returns whether standard output is still open.
pub(super) fn run(
    around: &ProcessEnv,
    destinations: Vec<Destination>,
    purpose: Purpose,
    mut tell: impl FnMut(News) -> Reader,
) -> Exit {
    let is_over = AtomicBool::new(false);
    let mut exit = Exit::Done;
    let (sender, news) = channel();
    thread::scope(|scope| {
        if purpose == Purpose::Background {
            scope.spawn(|| {
                // It ends with the session, whatever is read.
                let _whatever = std::io::stdin().lock().read_to_end(&mut Vec::new());
                is_over.store(true, Ordering::Relaxed);
            });
        }
        for destination in destinations {
            let worker = Worker { around, destination, purpose, is_over: &is_over, sender: sender.clone() };
            scope.spawn(move || worker.run());
        }
        drop(sender);
        for one in news {
            if one.failure.is_some() || one.refused.is_some() {
                exit = Exit::Bad;
            }
            if tell(one) == Reader::Gone {
                is_over.store(true, Ordering::Relaxed);
            }
        }
    });
    exit
}

/// Describes a record in one line.
fn describe(placed: &Placed) -> String {
    match &placed.line.record {
        Record::Verdict(verdict) => format!("{}: {}", verdict.effect, record_text::asked(&verdict.request)),
        Record::Outcome(outcome) => {
            format!("outcome of {}:{}: {}", placed.log, outcome.verdict, outcome.result)
        }
    }
}

/// Sends to one destination.
struct Worker<'a> {
    around: &'a ProcessEnv,
    destination: Destination,
    purpose: Purpose,
    is_over: &'a AtomicBool,
    sender: Sender<News>,
}

impl Worker<'_> {
    fn run(self) {
        let mut exporter = None;
        let mut sum = News { destination: self.destination.name.clone(), ..News::default() };
        let mut pause = FIRST_PAUSE;
        let mut last_try = None;
        loop {
            // After the session's end: no more waiting, and not for ever.
            if self.is_over() {
                let until = *last_try.get_or_insert_with(|| Instant::now() + LAST);
                if Instant::now() > until {
                    break;
                }
            }
            match self.step(&mut exporter) {
                Ok(Step::Sent { records, refused }) => {
                    pause = FIRST_PAUSE;
                    sum.sent = sum.sent.saturating_add(records);
                    sum.refused = refused.or(sum.refused);
                    self.tell_if(self.purpose == Purpose::Follow, &mut sum);
                }
                Ok(Step::Idle) if self.goes_on() => thread::sleep(LOOK),
                Ok(Step::Idle) => break,
                // A process of a session sends the same.
                Err(ExportError::Busy) if self.goes_on() => thread::sleep(LOOK),
                Err(error) => {
                    let wait = error.wait().unwrap_or(pause).max(pause);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    sum.failure = Some(format!("{:#}", anyhow::Error::new(error)));
                    if !self.goes_on() {
                        break;
                    }
                    sum.again_in = Some(wait);
                    self.tell_if(true, &mut sum);
                    self.sleep(wait);
                }
            }
        }
        self.tell_if(self.purpose == Purpose::Once, &mut sum);
    }

    fn step(&self, exporter: &mut Option<Exporter>) -> Result<Step, ExportError> {
        let ready = match exporter {
            Some(ready) => ready,
            none => none.insert(Exporter::new(
                directory(self.around),
                &exports::state(self.around),
                &self.destination,
                describe,
            )?),
        };
        ready.step()
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Returns true if there is more to do when everything is sent.
    fn goes_on(&self) -> bool {
        self.purpose != Purpose::Once && !self.is_over()
    }

    fn sleep(&self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until && !self.is_over() {
            thread::sleep(LOOK.min(time));
        }
    }

    fn tell_if(&self, is_wanted: bool, sum: &mut News) {
        if is_wanted {
            let empty = News { destination: sum.destination.clone(), ..News::default() };
            // The receiver lives as long as the senders.
            drop(self.sender.send(std::mem::replace(sum, empty)));
        }
    }
}
