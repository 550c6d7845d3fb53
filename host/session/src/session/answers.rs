//! The answers of the user that a session remembers, and its open questions.

use std::path::PathBuf;

use portcullis_approvals::{Answer, Choice, ChoiceKind, Question, Remembered};
use portcullis_decision::request::Action;
use portcullis_decision::{Grant, GrantPattern, GrantScope};

use super::Session;
use crate::notices;

impl Session {
    /// Records a grant or a denial: in memory at once, and also in a file if it outlives the session.
    pub(crate) fn remember(&self, choice: &Choice) {
        self.remember_all(choice, std::slice::from_ref(&choice.pattern));
    }

    /// Records an answer that covers several patterns; it is listed and revoked as one.
    pub(crate) fn remember_all(&self, choice: &Choice, patterns: &[GrantPattern]) {
        let now = self.setup.seconds();
        if choice.scope == GrantScope::Once {
            return;
        }
        let expires_at = if choice.lifetime == 0 { 0 } else { now.saturating_add(choice.lifetime) };
        let grant = |pattern: &GrantPattern| Grant {
            scope: choice.scope,
            pattern: pattern.clone(),
            granted_at: now,
            expires_at,
        };
        let grants: Vec<Grant> = patterns.iter().map(grant).collect();
        let id = self.answers.grant(&grants);
        self.policy.rebuild();
        let covers = |action: &Action| grants.iter().any(|grant| grant.pattern.covers(action));
        self.asks.close_settled(&self.setup.prompter, covers);
        let Some(place) = choice.place.as_deref() else { return self.say_saved(choice) };
        let kept = grants.iter().try_for_each(|grant| self.setup.keeper.keep(place, grant));
        if let Err(error) = kept {
            self.answers.hold_for_session(id);
            self.setup.prompter.notice(&notices::not_saved(&error));
        } else {
            self.say_saved(choice);
        }
    }

    /// Tells the user what an answer covers that is kept.
    pub(crate) fn say_saved(&self, choice: &Choice) {
        let Some(covers) = &choice.covers else { return };
        let no = if choice.kind == ChoiceKind::Deny { "no " } else { "" };
        if choice.scope == GrantScope::Once {
            return;
        }
        let text = notices::saved(choice.scope, self.setup.prompter.session_name(), &format!("{no}{covers}"));
        self.setup.prompter.saved(&text);
    }

    /// Revokes a grant or denial of this session, see [`Session::remembered`].
    ///
    /// New connections of running commands are affected too.
    pub fn forget(&self, id: u64) -> bool {
        let covered = self.answers.forget(id);
        if covered.is_empty() {
            return false;
        }
        for pattern in &covered {
            if let GrantPattern::Network(network) = pattern {
                self.connections.forget_allowed(|target, port| network.matches(target, port));
            }
        }
        self.policy.rebuild();
        true
    }

    /// Returns the live grants, of this session and of the settings.
    #[must_use]
    pub fn live_grants(&self) -> Vec<Grant> {
        self.policy.live_grants()
    }

    /// Returns the answers that the session remembers, with the ids for [`Session::forget`].
    #[must_use]
    pub fn remembered(&self) -> Vec<Remembered> {
        let basis = self.basis();
        self.answers.list(self.setup.seconds(), basis.resolved.homes.first().map(PathBuf::as_path))
    }

    /// Returns the open questions, the oldest first.
    #[must_use]
    pub fn questions(&self) -> Vec<Question> {
        self.asks.questions()
    }

    /// Answers a question without its prompter. Returns false if it is no longer open.
    pub fn answer_question(&self, id: u64, answer: Answer) -> bool {
        self.asks.answer(&self.setup.prompter, id, answer)
    }

    /// Returns the number of open questions.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.asks.waiting()
    }
}
