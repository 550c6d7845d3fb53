//! Answers pending calls of a running command, which wait while the user is asked.
//!
//! Each call is decided and logged, also where an earlier answer covers it, and explicit denials stay.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use portcullis_approvals::question::pending_call::{has_own_question, known_place};
use portcullis_approvals::{Access, Answered, Cancel, Known, Refusal, Subject, only_once};
use portcullis_decision::host_rules::{HARD_LINKS, HOST, broker_rule};
use portcullis_decision::request::Origin;
use portcullis_decision::{AnsweredBy, ContentVerdict, Decision, Effect, Fact, GrantScope, Request};
use portcullis_sandbox::{CallDetails, NameAccess};
use portcullis_sandbox_runtime::Held;
use portcullis_session_sandbox::system_caches;

use crate::authorized::Authorized;
use crate::broker_question;
use crate::links::other_names;
use crate::provoked::fault_point;
use crate::refused;
use crate::rejudge::{is_still_allowed, may_complete};
use crate::session::Session;
use crate::started::Started;

/// Answers a pending call of a command, once the user has decided.
pub(crate) fn answer(session: &Session, started: &Started, held: Held) {
    fault_point("call");
    let path = held.path().to_owned();
    if !session.setup.inmate.may(&path, held.attempt(), held.deed()) {
        return held.refuse();
    }
    let (reason, attempt) = (held.reason().to_owned(), held.attempt());
    let content = (!reason.is_empty()).then(|| started.questions.next_content());
    let action = broker_question::action(session, &held);
    let deed = only_once(&action);
    let mut request = session.request(Origin::Process, action);
    let place = broker_question::known_place(session, started, &held);
    let details = held.deed().clone();
    let at_first = session.effective_policy();
    let rules = started.rules.as_deref().unwrap_or(&at_first.rules);
    let is_link =
        matches!(details, CallDetails::Symlink(_) | CallDetails::LinkOf(_) | CallDetails::MoveOf(_));
    let loosens = || is_link && broker_question::loosens(rules, &path, &details);
    // A rule on the name asks for more than the place.
    let makes_link = loosens() || is_link && !held.rule().is_empty();
    request.facts.extend(broker_rule(held.rule(), makes_link));
    request.facts.extend(place.map(Fact::KnownPlace));
    // Content and links are asked about one by one.
    let is_plain = deed.is_none() && content.is_none();
    let asks = is_plain.then(|| session.decide(&request)).filter(|decision| decision.policy() == HOST);
    let executed = asks.and_then(|decision| {
        let rules = [held.rule(), decision.cause().rule.as_str()];
        let rule = rules.into_iter().find(|rule| has_own_question(rule))?;
        session.exec_surface(&session.effective_policy()).question_place(&path, rule)
    });
    request.facts.extend(executed.clone().map(Fact::QuestionPlace));
    request.facts.extend(match held.rule() {
        HARD_LINKS => other_names(session, &path),
        _ => (!reason.is_empty()).then(|| Fact::Content(ContentVerdict::with_reason(reason))),
    });
    // A write through this name changes the file under all its names, and one of the others may be denied.
    let is_shared = || attempt == NameAccess::Write && has_other_names(&path);
    let knows_other_names = held.rule() == HARD_LINKS || is_shared();
    if held.rule() != HARD_LINKS && knows_other_names {
        request.facts.extend(other_names(session, &path));
    }
    let (may_proceed, decision) = loop {
        let decision = session.decide_under(&request, started.rules.as_deref());
        if decision.effect() != Effect::Ask || session.is_for_branch(&request) {
            // This call was allowed without a question, so the result does not cover other calls in the place.
            let authorized = authorize_held(session, request.clone(), started, started.questions.cancel());
            break (is_allowed(session, started, authorized, attempt, &path), decision);
        }
        if is_plain
            && attempt != NameAccess::Read
            && held.rule().is_empty()
            && system_caches::is_refused(&decision, &path)
        {
            session.record_decision(request, decision.denied(AnsweredBy::Nothing, system_caches::REASON));
            return held.refuse();
        }
        let subject = match (&executed, known_place(&request, &decision)) {
            (Some(place), _) => Subject::executed(place, access(attempt)),
            (None, Some(place)) => Subject::place(&place.top, access(attempt), &decision),
            (None, None) => {
                Subject::new((held.rule(), access(attempt), &path), deed.as_ref(), content, &decision)
            }
        };
        let known = started.questions.answer(subject, |cancel| {
            let authorized = authorize_held(session, request.clone(), started, cancel);
            match (authorized.permit.is_some(), authorized.answer) {
                (true, Some(GrantScope::Once)) => Answered::Place(true),
                (true, _) => Answered::Itself(true),
                // pi itself runs for the whole session, so a single "no" must not last as long.
                (false, _) if session.setup.inmate.is_agent() => {
                    Answered::Itself(is_allowed(session, started, authorized, attempt, &path))
                }
                (false, _) => Answered::Place(is_allowed(session, started, authorized, attempt, &path)),
            }
        });
        match known {
            Known::Asked(answer) => break (answer, decision),
            Known::Before(false) => break (false, decision),
            Known::Before(true) => {
                let authorized = authorize_as_before(session, request.clone(), decision.clone());
                break (is_allowed(session, started, authorized, attempt, &path), decision);
            }
            Known::Changed => {}
        }
    };
    if !may_proceed {
        return held.refuse();
    }
    // Get the rules before names are locked: putting changed rules in force builds a sandbox, which takes that
    // lock.
    let effective = session.effective_policy();
    held.allow_if(&|| {
        // The host would change the project itself.
        !changes_project(session, &path, &details)
            // The "yes" does not cover names of the file that were created since.
            && (knows_other_names || !is_shared())
            // Commands may have put another file at one of the names.
            && (makes_link || !loosens())
            && is_still_allowed(session, &effective, &request, &[&decision])
            && (attempt == NameAccess::Remove || may_complete(session, &effective, &path))
    });
}

/// Authorizes a call by the rules of its command.
fn authorize_held(session: &Session, request: Request, started: &Started, cancel: &Cancel) -> Authorized {
    session.authorize_under(request, started.rules.as_deref(), started.call.as_deref(), cancel)
}

/// Authorizes one more call in a place where the user has allowed all calls of the command.
///
/// Denials for the session and reservations of other sessions still apply.
fn authorize_as_before(session: &Session, request: Request, decision: Decision) -> Authorized {
    let decision = if session.answers.denies(&request.action) {
        decision.denied(AnsweredBy::User, Refusal::Remembered.reason())
    } else {
        decision.granted(AnsweredBy::User, "you allowed it for all that this command does there")
    };
    session.record_decision(request, decision)
}

/// Returns true if a call may proceed; notes the reason otherwise.
fn is_allowed(
    session: &Session,
    started: &Started,
    authorized: Authorized,
    attempt: NameAccess,
    path: &Path,
) -> bool {
    let refused = authorized.granted().err();
    let note = |why: &Decision| refused::after_question(session, attempt, path, why);
    refused.inspect(|why| started.questions.note(note(why))).is_none()
}

/// Returns the access that the question about a call names.
fn access(attempt: NameAccess) -> Access {
    match attempt {
        NameAccess::Read => Access::Read,
        NameAccess::Write | NameAccess::MakeDirectory => Access::Write,
        NameAccess::Remove => Access::Remove,
    }
}

/// Returns true if the host would change the project of a branch by carrying out a call.
fn changes_project(session: &Session, path: &Path, details: &CallDetails) -> bool {
    let Some(branch) = &session.setup.own.branch else { return false };
    let other = match details {
        CallDetails::LinkOf(other)
        | CallDetails::LinkTo(other)
        | CallDetails::MoveOf(other)
        | CallDetails::MoveTo(other) => Some(other.as_path()),
        CallDetails::Plain | CallDetails::Symlink(_) | CallDetails::Special => None,
    };
    std::iter::once(path).chain(other).any(|path| branch.holds(path))
}

fn has_other_names(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_file() && found.nlink() > 1)
}
