//! Offers of credentials: a command that is about to start is seen to need one, and the settings have none.
//!
//! The user is asked once in a session for each need. A yes writes entries to the user's own settings, which apply to
//! this command already. After a no, or without a user, the command runs without a credential.

mod needs;

use std::path::PathBuf;

use portcullis_approvals::{Answer, Cancel, ChoiceKind, Refusal};
use portcullis_decision::request::{Action, Origin};
use portcullis_decision::{AnsweredBy, Effect};

use crate::authorized::Granted;
use crate::credential_offers::CredentialProposal;
use crate::notices;
use crate::session::Session;

/// Maximum number of offers before a command starts.
const MOST: usize = 2;

/// Offers the credentials that an allowed command is seen to need.
pub(crate) fn ask(session: &Session, granted: &Granted, call: Option<&str>, cancel: &Cancel) {
    let Action::Command(command) = &granted.request.action else { return };
    if session.setup.inmate.is_agent() || !session.is_interactive() {
        return;
    }
    let home = PathBuf::from(&session.setup.context.machine.home);
    for need in needs::of(command, &home).into_iter().take(MOST) {
        let proposal = session.setup.offers.propose(&need);
        if let Some(proposal) = proposal.filter(|proposal| session.brokering.is_new_offer(&proposal.offer)) {
            offer(session, &proposal, call, cancel);
        }
    }
}

fn offer(session: &Session, proposal: &CredentialProposal, call: Option<&str>, cancel: &Cancel) {
    let request = session.request(Origin::Process, proposal.offer.action());
    let decision = session.decide(&request);
    // A policy can refuse. Only the user changes the settings, so no policy can say yes.
    if decision.effect() == Effect::Deny {
        session.record_decision(request, decision);
        return;
    }
    let target = session.setup.offers.target();
    let question = proposal.offer.put(session.question_about(&request, &decision, call), &target);
    let answer = session.asks.put(&session.setup.prompter, &question, &request, cancel, || false);
    let is_yes = match answer {
        Answer::Choice(index) => {
            question.choices.get(index).is_some_and(|choice| choice.kind == ChoiceKind::Allow)
        }
        Answer::Refused(_) | Answer::RefusedBecause(_) | Answer::Covered => false,
    };
    let adds = &proposal.offer.adds;
    if !is_yes {
        session.record_decision(request, decision.denied(AnsweredBy::User, Refusal::User.reason()));
        return;
    }
    let authorized = session.record_decision(request, decision.granted(AnsweredBy::User, adds));
    if authorized.permit.is_none() {
        return;
    }
    let accepted = session
        .setup
        .offers
        .accept(proposal)
        .and_then(|basis| session.reload(basis).map_err(|error| error.to_string()));
    let outcome = match accepted {
        Ok(()) => notices::credential_added(adds, &proposal.name),
        Err(why) => notices::credential_not_added(&why),
    };
    session.outcome(&authorized.request, &outcome);
    session.setup.prompter.notice(&outcome);
}
