//! The session's journal, which writes the audit log.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use portcullis_audit::{Log, OUTPUT, OutcomeLine, PolicyLine, VerdictLine};
use portcullis_decision::request::{Action, Stage};
use portcullis_decision::{AnsweredBy, Context, Effect, Mode, Vote};
use portcullis_session::{Entry, Journal, JournalError, OutputChange};
use portcullis_settings_format::UnattendedRefusals;
use serde_json::{Value, json};

use crate::context_json;
use crate::loaded_settings::RefusalReporter;

/// The log's value for a question in a session without a user.
pub const NOBODY: &str = "nobody";

/// Number of finished requests whose log lines are known; outputs are inspected right after the outcome.
const FINISHED_KEPT: usize = 256;

/// Writes decisions to the audit log.
#[derive(Debug)]
pub struct AuditJournal {
    log: Log,
    /// The log line of each request without an outcome yet.
    lines: Mutex<HashMap<String, u64>>,
    /// The log lines of the latest requests with an outcome: their output is inspected after it.
    finished: Mutex<VecDeque<(String, u64)>>,
    /// The last context and its facts in the log's form.
    ///
    /// Contexts seldom change, and comparing them is faster than converting them.
    facts: Mutex<Option<(Context, Arc<Value>)>>,
    /// Where refusals are reported; `None` if nowhere.
    refusals: Option<(RefusalReporter, UnattendedRefusals)>,
}

impl AuditJournal {
    /// Returns a journal that writes to `log`.
    #[must_use]
    pub fn new(log: Log) -> Self {
        Self {
            log,
            lines: Mutex::default(),
            finished: Mutex::default(),
            facts: Mutex::default(),
            refusals: None,
        }
    }

    /// Reports refusals, as the settings want it.
    #[must_use]
    pub fn reporting(mut self, reporter: Option<&RefusalReporter>, wanted: UnattendedRefusals) -> Self {
        self.refusals = reporter
            .filter(|_| wanted != UnattendedRefusals::Quiet)
            .map(|reporter| (reporter.clone(), wanted));
        self
    }

    fn report(&self, line: &VerdictLine) {
        let Some((RefusalReporter(report), wanted)) = &self.refusals else { return };
        if line.effect == "deny" {
            report(line, *wanted == UnattendedRefusals::Fail && line.answered_by == NOBODY);
        }
    }

    fn write(&self, line: OutcomeLine) {
        if let Err(error) = self.log.outcome(line) {
            // The action is already done. The next verdict cannot be written either and will be a denial.
            crate::streams::say(&format!("portcullis: {error}"));
        }
    }

    fn finish(&self, request: &str, line: u64) {
        let mut finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        if finished.len() == FINISHED_KEPT {
            finished.pop_front();
        }
        finished.push_back((request.to_owned(), line));
    }

    /// Returns the log line of a request, with or without an outcome.
    fn line_of(&self, request: &str) -> Option<u64> {
        let open = self.lines.lock().unwrap_or_else(PoisonError::into_inner).get(request).copied();
        open.or_else(|| {
            let finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
            finished.iter().rfind(|(known, _)| known == request).map(|(_, line)| *line)
        })
    }

    fn facts(&self, context: &Context) -> Arc<Value> {
        let mut known = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((like, facts)) = &*known
            && context_json::are_facts_the_same(like, context)
        {
            return Arc::clone(facts);
        }
        let facts = Arc::new(context_json::facts(context));
        *known = Some((context.clone(), Arc::clone(&facts)));
        facts
    }
}

impl Journal for AuditJournal {
    fn before(&self, entry: &Entry<'_>) -> Result<(), JournalError> {
        let failed = |error: &dyn std::error::Error| JournalError(error.to_string());
        let decision = entry.decision;
        let line = verdict_line(entry).map_err(|error| failed(&error))?;
        self.report(&line);
        let facts = decision.context().map(|context| self.facts(context)).unwrap_or_default();
        let number = self.log.verdict_on(line, &facts).map_err(|error| failed(&error))?;
        if decision.effect() == Effect::Allow && has_outcome(&entry.request.action) {
            self.lines
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(entry.request.id.clone(), number);
        }
        Ok(())
    }

    fn after(&self, at: SystemTime, request: &str, outcome: &str) {
        let Some(verdict) = self.lines.lock().unwrap_or_else(PoisonError::into_inner).remove(request) else {
            return;
        };
        self.finish(request, verdict);
        let line = OutcomeLine {
            at_ms: milliseconds(at),
            verdict,
            result: outcome.to_owned(),
            ..OutcomeLine::default()
        };
        self.write(line);
    }

    fn meanwhile(&self, at: SystemTime, request: &str, event: &str) {
        self.write(OutcomeLine {
            at_ms: milliseconds(at),
            verdict: self.line_of(request).unwrap_or_default(),
            result: event.to_owned(),
            ..OutcomeLine::default()
        });
    }

    fn output_changed(&self, at: SystemTime, request: &str, change: &OutputChange<'_>) {
        let result = if change.is_withheld { "withheld" } else { "redacted" };
        let output = json!({
            "policy": change.policy, "rule": change.cause.rule, "reason": change.cause.reason,
        });
        self.write(OutcomeLine {
            at_ms: milliseconds(at),
            // Zero: the client had a tool run that no decision is known of.
            verdict: self.line_of(request).unwrap_or_default(),
            result: result.to_owned(),
            detail: json!({ OUTPUT: output }),
            ..OutcomeLine::default()
        });
    }
}

/// Returns true if an outcome follows an allowed action. The later stages of a connection share that of the connection.
fn has_outcome(action: &Action) -> bool {
    match action {
        Action::Network(access) => access.stage == Stage::Connect,
        Action::File(_)
        | Action::Command(_)
        | Action::Socket(_)
        | Action::Tool(_)
        | Action::Escalation(_)
        | Action::Other(_) => true,
    }
}

/// Returns a decision in the log's form, without the facts of its context.
pub fn verdict_line(entry: &Entry<'_>) -> serde_json::Result<VerdictLine> {
    let decision = entry.decision;
    let votes: Vec<PolicyLine> = decision.votes().iter().map(policy_line).collect();
    Ok(VerdictLine {
        at_ms: milliseconds(entry.at),
        request: serde_json::to_value(entry.request)?,
        cost_us: votes.iter().map(|vote| vote.cost_us).sum(),
        policies: votes,
        effect: decision.effect().to_string(),
        policy: decision.policy().to_owned(),
        rule: decision.cause().rule.clone(),
        reason: decision.cause().reason.clone(),
        setting: decision.cause().setting.clone(),
        answered_by: match decision.answered_by() {
            AnsweredBy::Nothing => String::new(),
            AnsweredBy::Grant => "grant".to_owned(),
            AnsweredBy::User => "user".to_owned(),
            AnsweredBy::NoUser => NOBODY.to_owned(),
            AnsweredBy::Timeout => "timeout".to_owned(),
            AnsweredBy::Withdrawal => "withdrawal".to_owned(),
        },
        now: decision.context().map_or(0, |context| context.now.into()),
        grants: decision.context().map(context_json::grants).unwrap_or_default(),
        facts: Value::Null,
        facts_at: 0,
    })
}

fn policy_line(vote: &Vote) -> PolicyLine {
    let verdict = match (vote.failed, vote.effect) {
        (true, _) => "failed".to_owned(),
        (false, Some(effect)) => effect.to_string(),
        (false, None) => "abstain".to_owned(),
    };
    PolicyLine {
        name: vote.policy.clone(),
        digest: vote.digest.clone(),
        verdict,
        rule: vote.cause.rule.clone(),
        reason: vote.cause.reason.clone(),
        setting: vote.cause.setting.clone(),
        counts: match vote.mode {
            Mode::Enforce => true,
            Mode::Tighten => vote.failed || vote.effect.is_some_and(|effect| effect != Effect::Allow),
            Mode::Observe => false,
        },
        tightens: vote.mode == Mode::Tighten,
        cost_us: vote.cost_us,
    }
}

fn milliseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use portcullis_audit::{Record, read_all};
    use portcullis_decision::request::{
        Direction, Endpoint, FileAccess, FileFacts, FileOperation, HttpHead, NetworkAccess, Origin, PathKind,
        PathRef, ProcessInfo, Request, Transport, Zone,
    };
    use portcullis_decision::verdict::Cause;
    use portcullis_decision::{Base, Chain, Decision, RuleSet, Ruling};

    use super::*;

    fn request() -> Request {
        let path = "/tmp/a".to_owned();
        let path = PathRef {
            given: path.clone(),
            absolute: path.clone(),
            canonical: path,
            zone: Zone::Temp,
            relative: "a".to_owned(),
            kind: PathKind::File,
        };
        let facts = FileFacts { size: 1, links: 1, owner: 0, mode: 0o644 };
        let action = Action::File(FileAccess { path, operation: FileOperation::Read, facts });
        Request { id: "1".into(), parent: None, origin: Origin::Agent, action, facts: Vec::new() }
    }

    #[test]
    fn stages_without_an_outcome_are_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let journal = AuditJournal::new(Log::open(folder.path(), "session").unwrap());
        let at_stage = |id: &str, stage: Stage| {
            let target = Endpoint::Domain("a.test".to_owned());
            let access = NetworkAccess {
                transport: Transport::Tcp,
                direction: Direction::Outbound,
                target,
                port: 443,
                stage,
                process: ProcessInfo::default(),
            };
            let decision = Decision::by_rule(Ruling {
                effect: Effect::Allow,
                policy: "settings".to_owned(),
                rule: "network.allowed".to_owned(),
                reason: String::new(),
                setting: String::new(),
                conceal: false,
            });
            let request = Request { id: id.to_owned(), action: Action::Network(access), ..request() };
            journal
                .before(&Entry { at: SystemTime::UNIX_EPOCH, request: &request, decision: &decision })
                .unwrap();
        };
        at_stage("connect", Stage::Connect);
        for number in 0..3 {
            let (method, url) = ("GET".to_owned(), "https://a.test/".to_owned());
            let head = HttpHead { method, url, header_names: Vec::new() };
            at_stage(&format!("request-{number}"), Stage::Http(head));
        }
        let kept: Vec<String> = journal.lines.lock().unwrap().keys().cloned().collect();
        assert_eq!(kept, ["connect"]);
    }

    #[test]
    fn a_redaction_leaves_a_line_after_the_outcome() {
        let folder = tempfile::tempdir().unwrap();
        let journal = AuditJournal::new(Log::open(folder.path(), "session").unwrap());
        let (request, at) = (request(), SystemTime::UNIX_EPOCH);
        let base = Base { temp: "/tmp".into(), ..Base::default() };
        let rules = RuleSet::compile(Vec::new(), base, &[]);
        let decision = Chain::default().decide(&request, &Context::default(), &rules, &[]);
        journal.before(&Entry { at, request: &request, decision: &decision }).unwrap();
        journal.after(at, &request.id, "done");
        let cause = Cause { rule: "secrets.key".into(), reason: "a key".into(), ..Cause::default() };
        for is_withheld in [false, true] {
            let change = OutputChange { is_withheld, policy: "secrets", cause: &cause };
            journal.output_changed(at, &request.id, &change);
        }
        let mut files = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let log = files.find(|path| path.extension().is_some_and(|end| end == "jsonl")).unwrap();
        let outcomes: Vec<OutcomeLine> = read_all(&log)
            .unwrap()
            .filter_map(|line| match line.unwrap().record {
                Record::Outcome(outcome) => Some(outcome),
                Record::Verdict(_) => None,
            })
            .collect();
        let results: Vec<_> =
            outcomes.iter().map(|outcome| (outcome.result.as_str(), outcome.verdict)).collect();
        assert_eq!(results, [("done", 1), ("redacted", 1), ("withheld", 1)]);
        assert_eq!(outcomes[1].detail.pointer("/output/rule"), Some(&"secrets.key".into()));
    }
}
