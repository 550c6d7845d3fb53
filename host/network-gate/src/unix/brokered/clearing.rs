//! The decision on a request, and the log of the credential in it.

use portcullis_credential_broker::Accepted;
use portcullis_decision::request::Stage;

use super::broken::Unanswered;
use super::declared::Declared;
use super::exchange::Exchange;
use crate::judge::{ConnectionAttempt, Judge};

/// Whether the use of a credential is in the log already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UseLogged {
    Yes,
    No,
}

impl Exchange {
    /// Has a request with a head of this length decided, and counts its bytes.
    ///
    /// If nothing can come between the decision and the credential, its use is logged right after the decision, so that
    /// the thread of the judge is needed once. The decision, with the credential's name, is in the log before the request
    /// is sent, as always.
    pub(super) async fn clear_request(
        &self,
        declared: &Declared,
        accepted: &Accepted<'_>,
        length: u64,
    ) -> Result<UseLogged, Unanswered> {
        let stage = Stage::Http(accepted.head.clone());
        let used = accepted.credential.as_ref();
        let name = used.map(|used| used.credential.name.clone());
        let is_in_memory =
            declared.host.credentials.iter().all(|one| declared.broker.loaded().known(&one.name).is_some());
        // Signatures, pushes and operations of GraphQL are judged afterwards.
        let is_judged = accepted.push.is_none()
            && accepted.operations.is_none()
            && !used.is_some_and(|used| used.signs());
        let is_certain = is_judged && is_in_memory && self.spent.has_room_for(length);
        let Some(name) = name.filter(|_| is_certain) else {
            self.clear(stage, used.map(|used| used.credential.name.clone())).await?;
            self.count(length).await?;
            return Ok(UseLogged::No);
        };
        let attempt = ConnectionAttempt { credential: Some(name.clone()), ..self.attempt.clone() };
        let (request, head) = (self.request.clone(), accepted.head.clone());
        let record = move |judge: &dyn Judge| judge.credential_used(&request, &name, &head);
        let place = (&self.wanted, &self.client);
        let cleared = self.scope.clear_stage_and(&attempt, stage, place, record).await;
        let is_logged =
            cleared.map_err(|refusal| refusal.map_or(Unanswered::Abandoned, Unanswered::Refused))?;
        self.count(length).await?;
        Ok(if is_logged { UseLogged::Yes } else { UseLogged::No })
    }
}
