//! Decides on connections for the gate: by rules and policies, by earlier answers, by the user.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock, Weak};

use portcullis_approvals::question::connections::{
    about_all, about_more, at_every_port, every_port_of, places,
};
use portcullis_approvals::question::endpoint_pattern;
use portcullis_approvals::{Answer, Cancel, Choice, ChoiceKind, Denied, Refusal, place, refused_because};
use portcullis_credential_broker::Broker;
use portcullis_decision::ConnectionRefusal;
use portcullis_decision::request::{Action, ActionKinds, Endpoint, HttpHead, NetworkAccess, Origin, Stage};
use portcullis_decision::verdict::Cause;
use portcullis_decision::{
    AnsweredBy, Decision, Effect, Fact, GrantPattern, GrantScope, RefusalText, Request, RuleSet,
};
use portcullis_network_gate::{
    AddressRuling, Checks, ConnectionAttempt, Ended, Ending, Judge, Judgement, Running, Stages, Undecided,
    Unresolved, Upstream, Want,
};
use portcullis_settings::allow_connection;

use crate::authorized::Authorized;
use crate::effective_policy::EffectivePolicy;
use crate::every_host;
use crate::fault::RULE;
use crate::notices;
use crate::provoked::fault_point;
use crate::session::Session;
use crate::upstream;

/// Description of the judge's work, for fault reports.
const JUDGING: &str = "judging a connection";

/// Decides on the connections in one sandbox.
pub(crate) struct CommandJudge {
    /// The session, which is created later than its first sandbox and dropped earlier.
    session: Arc<OnceLock<Weak<Session>>>,
    /// Rules of this sandbox alone; `None` for the session's rules in force at the time.
    stricter: Option<Arc<RuleSet>>,
}

impl CommandJudge {
    /// Returns the judge of a sandbox. Its rules are given if they differ from the session's.
    pub(crate) fn shared(
        session: Arc<OnceLock<Weak<Session>>>,
        stricter: Option<Arc<RuleSet>>,
    ) -> Arc<dyn Judge> {
        Arc::new(Self { session, stricter })
    }

    fn session(&self) -> Option<Arc<Session>> {
        self.session.get().and_then(Weak::upgrade)
    }

    fn rules<'a>(&'a self, effective: &'a EffectivePolicy) -> &'a RuleSet {
        self.stricter.as_deref().unwrap_or(&effective.rules)
    }

    /// Decides on an attempt: by rules, policies, grants and earlier answers.
    fn judge(&self, session: &Session, attempt: &ConnectionAttempt) -> Undecided {
        // Read first, so that a change during the decision counts as a later one.
        let revision = session.revision();
        let request = request(session, attempt);
        let effective = session.policy.for_connection();
        let rules = self.rules(&effective);
        let mut decision = match attempt.want {
            Want::Connect => session.decide_by(&request, &effective, rules),
            Want::SendMore { .. } if session.after_fault().is_some() => {
                session.decide_by(&request, &effective, rules)
            }
            Want::SendMore { .. } => {
                let budget = rules.budget(&attempt.access.target, attempt.access.port);
                Decision::by_rule(budget.beyond)
            }
        };
        if decision.effect() == Effect::Ask {
            decision = answered_before(session, attempt, &request.action, decision);
        }
        if !session.setup.context.interactive {
            decision = decision.denied(AnsweredBy::NoUser, Refusal::NoUser.reason());
        }
        Undecided { attempt: attempt.clone(), request, decision, revision }
    }

    /// Decides again if anything that the decision depends on has changed since.
    fn reviewed(&self, session: &Session, judged: Undecided) -> Undecided {
        if judged.revision == session.revision() { judged } else { self.judge(session, &judged.attempt) }
    }

    fn put(&self, session: &Session, round: u64, judged: Vec<Undecided>) -> Answered {
        let Some(first) = judged.iter().find(|one| is_open(&one.decision)) else {
            let is_about = vec![false; judged.len()];
            return Answered { judged, is_about, answer: Answer::Covered, choice: None };
        };
        let is_about: Vec<bool> =
            judged.iter().map(|other| is_open(&other.decision) && is_same_question(first, other)).collect();
        let command = first.attempt.command;
        let call = session.connections.identity(command).and_then(|identity| identity.call);
        let question = session.question_about(&first.request, &first.decision, call.as_deref());
        let question = match first.attempt.want {
            Want::Connect => {
                let details = first.decision.question().and_then(|asked| asked.details.as_deref());
                let asked_about = places(chosen(&judged, &is_about).map(|one| &one.access));
                let mut question = about_all(question, &asked_about, details);
                if session.settings().ask.every_port && asked_about.len() > 1 {
                    at_every_port(&mut question, &asked_about);
                }
                question
            }
            Want::SendMore { sent } => about_more(question, sent),
        };
        let cancel = Cancel::default();
        session.connections.begin_round(round, command, cancel.clone());
        let is_covered = || !is_open(&self.reviewed(session, first.clone()).decision);
        let prompter = &session.setup.prompter;
        let answer = session.asks.put(prompter, &question, &first.request, &cancel, is_covered);
        session.connections.end_round(round, command);
        let choice = match &answer {
            Answer::Choice(index) => question.choices.get(*index).cloned(),
            Answer::Refused(_) | Answer::RefusedBecause(_) | Answer::Covered => None,
        };
        Answered { judged, is_about, answer, choice }
    }

    /// Asks the user about attempts, and returns the judgement for each.
    fn ask_about(&self, session: &Session, round: u64, waiting: Vec<Undecided>) -> Vec<Judgement> {
        let judged = waiting.into_iter().map(|one| self.reviewed(session, one)).collect();
        let Answered { judged, is_about, answer, choice } = self.put(session, round, judged);
        if let Some(choice) = choice.as_ref().filter(|choice| choice.scope != GrantScope::Once) {
            remember(session, choice, &chosen(&judged, &is_about).collect::<Vec<_>>());
        }
        let each = judged.into_iter().zip(is_about);
        let each = each.map(|(judged, is_about)| {
            if is_open(&judged.decision) && !is_about {
                return Judgement::Ask(Box::new(judged));
            }
            let Undecided { attempt, request, decision, .. } = judged;
            let is_connection = is_to_connect(&attempt);
            let decision = match (&answer, &choice) {
                _ if !is_open(&decision) => decision,
                (Answer::Covered, _) => self.judge(session, &attempt).decision,
                (Answer::Refused(refusal), _) => {
                    // pi itself runs for the whole session, so a single "no" must not last as long.
                    if *refusal == Refusal::User && is_connection && !session.setup.inmate.is_agent() {
                        session.connections.refuse(attempt.command, place(&attempt.access));
                    }
                    decision.denied(refusal.by(), refusal.reason())
                }
                (Answer::RefusedBecause(line), _) => {
                    if is_connection && !session.setup.inmate.is_agent() {
                        session.connections.refuse(attempt.command, place(&attempt.access));
                    }
                    decision.denied(AnsweredBy::User, &refused_because(line))
                }
                (Answer::Choice(_), Some(choice)) if choice.kind == ChoiceKind::Deny => {
                    decision.denied(AnsweredBy::User, Refusal::Remembered.reason())
                }
                (Answer::Choice(_), Some(choice)) => {
                    if is_connection {
                        session.connections.allow(attempt.command, place(&attempt.access), choice.scope);
                    }
                    decision.granted(AnsweredBy::User, &choice.label)
                }
                (Answer::Choice(_), None) => {
                    decision.denied(AnsweredBy::User, "the answer was not one of the choices")
                }
            };
            // The answer does not cover this attempt.
            let decision = decision.denied(AnsweredBy::User, "the answer does not cover it");
            record_judgement(session, &attempt, request, decision)
        });
        each.collect()
    }

    /// Returns the judgement for a decision; records it unless only the user can decide.
    fn judgement(session: &Session, judged: Undecided) -> Judgement {
        if is_open(&judged.decision) {
            return Judgement::Ask(Box::new(judged));
        }
        record_judgement(session, &judged.attempt, judged.request, judged.decision)
    }
}

/// The result of a question.
struct Answered {
    judged: Vec<Undecided>,
    /// Whether the question was about the attempt, for each attempt.
    is_about: Vec<bool>,
    answer: Answer,
    choice: Option<Choice>,
}

impl Judge for CommandJudge {
    fn decide(&self, attempt: &ConnectionAttempt) -> Judgement {
        let Some(session) = self.session() else { return Judgement::Deny(closed()) };
        let judge = || {
            fault_point("judge");
            Self::judgement(&session, self.judge(&session, attempt))
        };
        session.guarded(JUDGING, judge, |reason| Judgement::Deny(fault(reason)))
    }

    fn review(&self, undecided: Box<Undecided>) -> Judgement {
        let Some(session) = self.session() else { return Judgement::Deny(closed()) };
        let review = || Self::judgement(&session, self.reviewed(&session, *undecided));
        session.guarded(JUDGING, review, |reason| Judgement::Deny(fault(reason)))
    }

    fn ask(&self, round: u64, attempts: Vec<Undecided>) -> Vec<Judgement> {
        let count = attempts.len();
        let all_denied =
            |refused: ConnectionRefusal| vec![refused; count].into_iter().map(Judgement::Deny).collect();
        let Some(session) = self.session() else { return all_denied(closed()) };
        let ask = || self.ask_about(&session, round, attempts);
        session.guarded(JUDGING, ask, |reason| all_denied(fault(reason)))
    }

    fn withdraw(&self, round: u64) {
        if let Some(session) = self.session() {
            session.connections.withdraw(round);
        }
    }

    fn address(&self, attempt: &ConnectionAttempt, address: IpAddr) -> AddressRuling {
        let Some(session) = self.session() else { return AddressRuling::Denied(closed()) };
        let access = &attempt.access;
        let effective = session.policy.unchecked();
        let ruling = self.rules(&effective).address(address, access.port, &access.process);
        let as_itself = Endpoint::Address(address);
        match ruling {
            Some(ruling) if ruling.effect == Effect::Deny => {
                let reason = format!("`{}` leads to {address}: {}", access.target, ruling.reason);
                let refusal = RefusalText::by_rule(&ruling.policy, &ruling.rule, &reason);
                AddressRuling::Denied(ConnectionRefusal::new(refusal, None))
            }
            Some(ruling) if ruling.effect == Effect::Allow => AddressRuling::Named,
            // The user was asked about the address itself.
            _ if session.connections.is_allowed(attempt.command, &(as_itself.clone(), access.port)) => {
                AddressRuling::Named
            }
            _ if session.live_grants().iter().any(|grant| names(&grant.pattern, &as_itself, access.port)) => {
                AddressRuling::Named
            }
            _ => AddressRuling::Unnamed,
        }
    }

    fn budget(&self, attempt: &ConnectionAttempt) -> u64 {
        let Some(session) = self.session() else { return 0 };
        let effective = session.policy.unchecked();
        self.rules(&effective).budget(&attempt.access.target, attempt.access.port).bytes
    }

    fn checks(&self) -> Checks {
        match self.session() {
            Some(session) => {
                let connections = session.settings().connecting;
                Checks { names_match: connections.names_match, hidden_names: connections.hidden_names }
            }
            None => Checks::default(),
        }
    }

    fn stages(&self) -> Stages {
        let Some(session) = self.session() else { return Stages::default() };
        let effective = session.policy.unchecked();
        let hears_of = |kind: fn(ActionKinds) -> bool| effective.basis.chain.hears_of(kind);
        Stages {
            resolved: hears_of(|kinds| kinds.network_resolved),
            client_hello: hears_of(|kinds| kinds.network_client_hello),
            http: hears_of(|kinds| kinds.network_http),
        }
    }

    fn upstream(&self, attempt: &ConnectionAttempt) -> Option<Upstream> {
        let session = self.session()?;
        let effective = session.policy.unchecked();
        let (resolved, access) = (&effective.basis.resolved, &attempt.access);
        let mut upstream = upstream::find(resolved, &access.target, access.port)?;
        if every_host::alone_covers(&session.live_grants(), &resolved.allowed_domains, access) {
            // The proxy may be in a private network, and knows names there that lead to private addresses.
            upstream.unresolved = Unresolved::Refused;
        }
        Some(upstream)
    }

    fn broker(&self) -> Result<Option<Arc<Broker>>, ConnectionRefusal> {
        let Some(session) = self.session() else { return Err(closed()) };
        // A contained agent has its own keys, and does not trust the certificates of the session.
        if session.setup.inmate.is_agent() {
            return Ok(None);
        }
        let effective = session.policy.unchecked();
        session.brokering.broker(&effective.basis).map_err(|error| {
            let reason = format!("the brokered hosts of the settings cannot be set up: {error}");
            ConnectionRefusal::by_host("host.brokered-tls", reason)
        })
    }

    fn credential_used(&self, request: &str, name: &str, head: &HttpHead) {
        let Some(session) = self.session() else { return };
        let event = format!("the credential `{name}` goes into {} {}", head.method, head.url);
        session.setup.journal.meanwhile((session.setup.clock)(), request, &event);
    }

    fn running(&self) -> Running {
        self.session().map_or(Running::None, |session| session.connections.running())
    }

    fn has_ended(&self, command: u32) -> bool {
        self.session().is_none_or(|session| session.connections.has_ended(command))
    }

    fn overloaded(&self, why: &str) {
        let Some(session) = self.session() else { return };
        let text = notices::network(why);
        session.connections.note_to_all(&text);
        if session.connections.is_news(why) {
            session.setup.prompter.notice(&text);
        }
    }

    fn ended(&self, attempt: &ConnectionAttempt, request: &str, ended: &Ended) {
        let Some(session) = self.session() else { return };
        let Ended { how, sent, received } = ended;
        let how = match how {
            Ending::Closed => "closed".to_owned(),
            Ending::Refused(refusal) => {
                note(&session, attempt, STOPPED, refusal.text_for(session.setup.reader));
                format!("refused: {}", refusal.reason)
            }
            Ending::Unreachable(why) => {
                note(&session, attempt, NO_CONNECTION, why);
                format!("unreachable: {why}")
            }
        };
        let outcome = format!("{how}; {sent} bytes sent, {received} bytes received");
        session.setup.journal.after((session.setup.clock)(), request, &outcome);
    }
}

fn is_open(decision: &Decision) -> bool {
    decision.effect() == Effect::Ask
}

/// Returns true if two attempts can share a question.
///
/// The same program makes them, and the same policies ask for the same reasons. An answer for one then applies to the
/// other.
fn is_same_question(one: &Undecided, other: &Undecided) -> bool {
    let (by, by_other) = (&one.decision, &other.decision);
    one.attempt.access.process.program == other.attempt.access.process.program
        && by.policy() == by_other.policy()
        && by.cause() == by_other.cause()
        && words(by) == words(by_other)
        && asking(by).eq(asking(by_other))
}

/// Returns the policy's text besides the title of its question (which names a place), and its timeout.
fn words(decision: &Decision) -> Option<(Option<&str>, Option<u32>)> {
    decision.question().map(|question| (question.details.as_deref(), question.timeout_ms))
}

/// Returns the other policies that ask, with their reasons.
fn asking(decision: &Decision) -> impl Iterator<Item = (&str, &Cause)> {
    let asking = decision.votes().iter().filter(|vote| vote.effect == Some(Effect::Ask));
    asking.map(|vote| (vote.policy.as_str(), &vote.cause))
}

/// Returns the attempts that a question was about.
fn chosen<'a>(judged: &'a [Undecided], is_about: &'a [bool]) -> impl Iterator<Item = &'a ConnectionAttempt> {
    judged.iter().zip(is_about).filter_map(|(one, is_about)| is_about.then_some(&one.attempt))
}

/// Applies an earlier answer of the user, if there is one.
fn answered_before(
    session: &Session,
    attempt: &ConnectionAttempt,
    action: &Action,
    decision: Decision,
) -> Decision {
    let place = place(&attempt.access);
    match attempt.want {
        Want::SendMore { .. } if session.answers.denies_more(action) => {
            decision.denied(AnsweredBy::User, Refusal::Remembered.reason())
        }
        Want::Connect if attempt.access.stage != Stage::Connect => decision,
        Want::Connect if session.connections.is_allowed(attempt.command, &place) => {
            decision.granted(AnsweredBy::User, "you allowed it for this command")
        }
        Want::Connect if session.connections.is_refused(attempt.command, &place) => {
            decision.denied(AnsweredBy::User, "you said no for this command")
        }
        Want::Connect if session.answers.denies(action) => {
            decision.denied(AnsweredBy::User, Refusal::Remembered.reason())
        }
        Want::Connect | Want::SendMore { .. } => decision,
    }
}

/// Returns true for an attempt to connect, as opposed to its later stages.
fn is_to_connect(attempt: &ConnectionAttempt) -> bool {
    attempt.want == Want::Connect && attempt.access.stage == Stage::Connect
}

/// Returns the request for an attempt.
fn request(session: &Session, attempt: &ConnectionAttempt) -> Request {
    let mut request = session.request(Origin::Process, Action::Network(attempt.access.clone()));
    request.parent = session.connections.identity(attempt.command).map(|identity| identity.request);
    if let Want::SendMore { sent } = attempt.want {
        request.facts.push(Fact::SentBytes(sent));
    }
    request.facts.extend(attempt.credential.clone().map(Fact::Credential));
    request
}

/// Records the decision and returns the judgement.
fn record_judgement(
    session: &Session,
    attempt: &ConnectionAttempt,
    request: Request,
    decision: Decision,
) -> Judgement {
    let Authorized { decision, permit, .. } = session.record(request, decision);
    match permit {
        Some(permit) => Judgement::Allow(permit),
        None => {
            let NetworkAccess { target, port, .. } = &attempt.access;
            let what = is_to_connect(attempt).then(|| allow_connection(target, *port));
            let refused = ConnectionRefusal::new(RefusalText::for_decision(&decision), what.as_deref());
            let beginning = if what.is_some() { NO_CONNECTION } else { STOPPED };
            note(session, attempt, beginning, refused.text_for(session.setup.reader));
            Judgement::Deny(refused)
        }
    }
}

/// Adds a note on a connection.
fn note(session: &Session, attempt: &ConnectionAttempt, beginning: &str, why: &str) {
    let NetworkAccess { target, port, .. } = &attempt.access;
    let place = target.with_port(*port);
    session.connections.note(attempt.command, format!("{beginning}{place}: {why}"));
}

/// The beginning of a note on a refused connection; the place, a colon and the reason follow.
const NO_CONNECTION: &str = "network: no connection to ";
/// The same for a connection that was allowed, and refused later for its address or for what the program sent.
const STOPPED: &str = "network: stopped on the way to ";

/// Makes one note of those on connections that were refused for the same reason.
pub(crate) fn gathered(notes: Vec<String>) -> Vec<String> {
    let parts = |note: &str| {
        let beginning = [NO_CONNECTION, STOPPED].into_iter().find(|one| note.starts_with(one))?;
        let (place, why) = note.strip_prefix(beginning)?.split_once(": ")?;
        Some((place.to_owned(), (beginning, why.to_owned())))
    };
    let mut gathered: Vec<(Vec<String>, (&str, String))> = Vec::new();
    for note in notes {
        let Some((place, why)) = parts(&note) else {
            gathered.push((Vec::new(), ("", note)));
            continue;
        };
        match gathered.iter_mut().find(|(places, other)| !places.is_empty() && *other == why) {
            Some((places, _)) if places.contains(&place) => {}
            Some((places, _)) => places.push(place),
            None => gathered.push((vec![place], why)),
        }
    }
    let text = |(places, (beginning, why)): (Vec<String>, (&str, String))| match places.as_slice() {
        [] => why,
        places => format!("{beginning}{}: {why}", places.join(", ")),
    };
    gathered.into_iter().map(text).collect()
}

/// Remembers one answer for all the places in a question.
fn remember(session: &Session, choice: &Choice, attempts: &[&ConnectionAttempt]) {
    // All of them send more to the same place.
    if let Some(ConnectionAttempt { want: Want::SendMore { .. }, access, .. }) = attempts.first() {
        session.answers.deny(vec![Denied::of_more(access)]);
        return session.say_saved(choice);
    }
    let mut patterns: Vec<GrantPattern> = Vec::new();
    if places(attempts.iter().map(|one| &one.access)).len() > 1 {
        for one in attempts {
            let pattern = endpoint_pattern(&one.access);
            let is_wide = choice.kind == ChoiceKind::Allow && session.settings().ask.every_port;
            let pattern = GrantPattern::Network(if is_wide { every_port_of(pattern) } else { pattern });
            if !patterns.contains(&pattern) {
                patterns.push(pattern);
            }
        }
    } else {
        patterns.push(choice.pattern.clone());
    }
    match (choice.kind, attempts.first()) {
        (ChoiceKind::Allow, _) => session.remember_all(choice, &patterns),
        (ChoiceKind::Deny, Some(one)) => {
            let action = Action::Network(one.access.clone());
            let deny = |pattern| Denied::from_choice(&Choice { pattern, ..choice.clone() }, &action);
            session.answers.deny(patterns.into_iter().map(deny).collect());
            session.say_saved(choice);
        }
        (ChoiceKind::Deny, None) => {}
    }
}

/// Returns true if a grant is for this address or a block that contains it.
fn names(pattern: &GrantPattern, address: &Endpoint, port: u16) -> bool {
    matches!(pattern, GrantPattern::Network(network) if network.host.is_of_addresses() && network.matches(address, port))
}

/// Returns the refusal after a fault of the host.
fn fault(reason: String) -> ConnectionRefusal {
    ConnectionRefusal::by_host(RULE, reason)
}

fn closed() -> ConnectionRefusal {
    ConnectionRefusal::by_host("host.closing", "the session is ending")
}

#[cfg(test)]
mod tests;
