//! A log, and exporters of it.

use std::path::PathBuf;

use portcullis_audit::{Directory, Log, OutcomeLine, Placed, Record, VerdictLine};
use portcullis_export::{Destination, ExportError, Exporter, Step};
use serde_json::json;

/// A directory with logs and the state of exports.
pub(crate) struct World {
    pub(crate) root: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        Self { root: tempfile::tempdir().expect("a directory") }
    }

    pub(crate) fn audit(&self) -> PathBuf {
        self.root.path().join("audit")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.root.path().join("export")
    }

    pub(crate) fn log(&self, session: &str) -> Log {
        Log::open(&self.audit(), session).expect("a log")
    }

    pub(crate) fn exporter(&self, destination: &Destination) -> Result<Exporter, ExportError> {
        Exporter::new(Directory::new(&self.audit()), &self.state(), destination, describe)
    }

    /// Sends everything, and returns the number of records.
    pub(crate) fn drain(&self, destination: &Destination) -> usize {
        let mut exporter = self.exporter(destination).expect("an exporter");
        let mut count = 0;
        while let Step::Sent { records, .. } = exporter.step().expect("sent") {
            count += records;
        }
        count
    }
}

fn describe(placed: &Placed) -> String {
    match &placed.line.record {
        Record::Verdict(verdict) => {
            verdict.request["action"]["command"]["script"].as_str().unwrap_or_default().to_owned()
        }
        Record::Outcome(outcome) => outcome.result.clone(),
    }
}

/// Writes `count` decisions with their outcomes.
pub(crate) fn write(log: &Log, count: usize) {
    for number in 0..count {
        let request = json!({ "action": { "command": { "script": format!("echo {number}") } } });
        let verdict = VerdictLine {
            at_ms: 1_735_689_600_000,
            request,
            effect: "allow".to_owned(),
            policy: "guard".to_owned(),
            rule: "guard.echo".to_owned(),
            ..VerdictLine::default()
        };
        let verdict = log.verdict(verdict).expect("logged");
        log.outcome(OutcomeLine { verdict, result: "done".to_owned(), ..OutcomeLine::default() })
            .expect("logged");
    }
}

/// Returns a destination from its lines in the file.
pub(crate) fn destination(lines: &str) -> Destination {
    let text = format!("[[destination]]\nname = \"team\"\n{lines}\n");
    portcullis_export::parse(&text).expect("a destination").pop().expect("one")
}
