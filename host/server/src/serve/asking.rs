//! Sends questions to the client and receives its answers.

use std::collections::HashMap;
use std::fs::File;
use std::sync::{Mutex, PoisonError};

use portcullis_decision::GrantScope;
use portcullis_rpc::{
    AskChoice, AskOption, AskParams, AskWithdrawNotification, EventNotification, HostNotification,
    NoticeLevel, RefusalCause, Reply, RequestId, Scope, ToolEffect,
};
use portcullis_session::{Answer, Answerer, Choice, ChoiceKind, Prompter, Question, Refusal};

/// Sends messages to the client.
pub(super) type Sender = portcullis_rpc::Sender<File>;

/// A prompter that shows questions through the client.
pub(super) struct RpcPrompter {
    sender: Sender,
    open: Mutex<HashMap<RequestId, (u64, Answerer)>>,
}

impl RpcPrompter {
    pub(super) fn new(sender: Sender) -> Self {
        Self { sender, open: Mutex::default() }
    }

    fn tell(&self, level: NoticeLevel, text: String) {
        // Ignore errors: the client may be gone.
        let _sent = self.sender.notify(&HostNotification::Event(EventNotification::Notice { level, text }));
    }

    /// Handles the client's reply to a question. An error or a second reply never allows.
    pub(super) fn reply(&self, reply: Reply) {
        let waiting = self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&reply.id);
        let Some((_, answerer)) = waiting else { return };
        answerer.answer(match reply.outcome {
            Err(_) => Answer::Refused(Refusal::NoUser),
            Ok(response) => match response.choice {
                // A choice with a cause for a refusal is invalid.
                AskChoice::Option(index) => {
                    match (usize::try_from(index), response.cause, response.because) {
                        (Ok(index), None, None) => Answer::Choice(index),
                        (Ok(_) | Err(_), _, _) => Answer::Refused(Refusal::NoUser),
                    }
                }
                AskChoice::Refuse(_) => match (response.cause, response.because) {
                    (None, Some(line)) => Answer::RefusedBecause(line),
                    (None, None) => Answer::Refused(Refusal::User),
                    (Some(RefusalCause::NoInterface), _) => Answer::Refused(Refusal::NoUser),
                    (Some(RefusalCause::Aborted), _) => Answer::Refused(Refusal::Aborted),
                    (Some(RefusalCause::Timeout), _) => Answer::Refused(Refusal::Timeout),
                },
            },
        });
    }
}

impl Prompter for RpcPrompter {
    fn show(&self, question: &Question, answer: Answerer) {
        // Hold the lock while sending, so that the reply cannot arrive before the question is registered.
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        match self.sender.ask(&params(question)) {
            Ok(id) => {
                open.insert(id, (question.id, answer));
            }
            Err(_) => answer.answer(Answer::Refused(Refusal::NoUser)),
        }
    }

    fn withdraw(&self, id: u64, why: &str) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, (question, _)| *question != id);
        let notification = AskWithdrawNotification { ask_id: id, why: why.to_owned() };
        // Ignore errors: a client that is gone shows no question.
        let _sent = self.sender.notify(&HostNotification::AskWithdraw(notification));
    }

    fn notice(&self, text: &str) {
        self.tell(NoticeLevel::Warning, text.to_owned());
    }

    fn saved(&self, text: &str) {
        self.tell(NoticeLevel::Info, format!("{text} · undo: /sandbox"));
    }
}

/// Returns a question as the protocol sends it.
#[must_use]
pub fn params(question: &Question) -> AskParams {
    AskParams {
        ask_id: question.id,
        call_id: question.call.clone(),
        title: question.title.clone(),
        subject: question.subject.clone(),
        place: question.place.clone(),
        context: question.context.clone(),
        preview: question.preview.clone(),
        sensitive: question.is_sensitive,
        asker: question.asker.clone(),
        reason: question.reason.clone(),
        policy: question.policy.clone(),
        rule: question.rule.clone(),
        quote: question.quote.clone(),
        options: question.choices.iter().map(option).collect(),
        timeout_ms: question.timeout_ms.map(u64::from),
    }
}

fn option(choice: &Choice) -> AskOption {
    AskOption {
        key: choice.key.to_string(),
        effect: match choice.kind {
            ChoiceKind::Allow => ToolEffect::Allow,
            ChoiceKind::Deny => ToolEffect::Deny,
        },
        label: choice.label.clone(),
        covers: choice.covers.clone(),
        width: choice.width,
        target: choice.target.clone(),
        scope: match choice.scope {
            GrantScope::Once => Scope::Once,
            GrantScope::Session => Scope::Session,
            GrantScope::Project => Scope::Project,
            GrantScope::User => Scope::User,
        },
    }
}
