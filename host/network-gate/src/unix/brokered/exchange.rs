//! One connection to a brokered host, as all its requests see it.

use std::sync::Arc;

use hyper::Response;
use portcullis_decision::request::Stage;
use tokio::net::TcpStream;

use super::broken::Unanswered;
use super::declared::{Content, Declared};
use super::outcome::Outcome;
use super::unread::Unread;
use crate::judge::ConnectionAttempt;
use crate::unix::budget::Spent;
use crate::unix::pump::Traffic;
use crate::unix::scope::{Scope, Wanted};

pub(super) type Answer = Response<Content>;

/// One connection to a brokered host.
pub(crate) struct Exchange {
    pub(crate) scope: Arc<Scope>,
    pub(crate) attempt: ConnectionAttempt,
    /// The id of the request that allowed the connection.
    pub(crate) request: String,
    pub(crate) wanted: Wanted,
    /// What the settings had when the connection began.
    pub(crate) declared: Declared,
    pub(crate) spent: Arc<Spent>,
    pub(crate) traffic: Arc<Traffic>,
    /// The client's socket, to notice that the client has gone.
    pub(crate) client: TcpStream,
    pub(crate) outcome: Outcome,
    /// Of a client that speaks HTTP/2.
    pub(crate) unread: Arc<Unread>,
}

impl Exchange {
    /// Has a later stage of the connection decided, with the name of the credential that is to be used.
    pub(super) async fn clear(&self, stage: Stage, credential: Option<String>) -> Result<(), Unanswered> {
        let attempt = ConnectionAttempt { credential, ..self.attempt.clone() };
        let cleared = self.scope.clear_stage(&attempt, stage, &self.wanted, &self.client).await;
        cleared.map_err(|refusal| refusal.map_or(Unanswered::Abandoned, Unanswered::Refused))
    }
}
