//! Serving a client in a sandbox: pi started by `portcullis pi --contain`.
//!
//! Questions are answered outside. The client is told about them but never asked.

use std::path::Path;
use std::sync::Arc;

use portcullis_bootstrap::session::OpenSession;
use portcullis_rpc::{ErrorCode, ErrorObject, StatusResponse};
use portcullis_session::{Answerer, Prompter, Question};

use crate::menu::{Event, Line, Need, Screen, World};
use crate::serve::asking::RpcPrompter;
use crate::serve::host::Host;

impl Host {
    /// Returns the prompter for questions.
    pub(super) fn asks_at(&self) -> Arc<dyn Prompter> {
        match &self.contained {
            None => Arc::clone(&self.prompter) as _,
            Some(contained) => Arc::new(Outside {
                questions: Arc::clone(&contained.prompter),
                told: Arc::clone(&self.prompter),
            }),
        }
    }

    /// Marks the status of a contained client, which cannot run commands outside the sandbox.
    pub(super) fn as_contained(&self, status: StatusResponse) -> StatusResponse {
        let contained = self.contained.is_some();
        StatusResponse { contained, escalation: status.escalation && !contained, ..status }
    }

    /// Copies a file with a tool's full output, if the client is contained. Returns whether it is.
    pub(super) fn bring_output(&self, path: &Path, wired: &OpenSession) -> Result<bool, ErrorObject> {
        let Some(contained) = &self.contained else { return Ok(false) };
        let refused = |error: anyhow::Error| ErrorObject::new(ErrorCode::Unavailable, format!("{error:#}"));
        contained.bring(path, wired).map_err(refused).map(|()| true)
    }
}

/// Asks outside and tells the client.
struct Outside {
    questions: Arc<dyn Prompter>,
    told: Arc<RpcPrompter>,
}

impl Prompter for Outside {
    fn show(&self, question: &Question, answer: Answerer) {
        self.questions.show(question, answer);
    }

    fn withdraw(&self, id: u64, why: &str) {
        self.questions.withdraw(id, why);
    }

    fn notice(&self, text: &str) {
        self.told.notice(text);
    }
}

/// Returns the screen of `/sandbox`, on which a contained client cannot change anything.
pub(super) fn screen(world: &dyn World, event: &Event) -> Screen {
    if *event != Event::Open {
        return Screen::needing(Need::Close);
    }
    let mut lines = vec![Line::good(
        "pi itself is contained, with its extensions and MCP servers; questions are asked outside of it.",
    )];
    lines.extend(world.summary());
    lines.push(Line::faint(
        "Nothing is changed from in here: `portcullis config`, `grants` and `asks` do that in another terminal.",
    ));
    Screen { title: "Sandbox".to_owned(), lines, keys: vec![('q', "quit")], ..Screen::default() }
}
