//! The handshake: opens the session from the client's `hello`.

use std::sync::{Arc, RwLock};

use portcullis_bootstrap::journal::NOBODY;
use portcullis_bootstrap::loaded_settings::{Purpose, RefusalReporter, Wanted};
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_bootstrap::teams;
use portcullis_decision::Reader;
use portcullis_decision::context::AgentInfo;
use portcullis_rpc::{
    ErrorCode, ErrorObject, EventNotification, HelloParams, HelloResponse, HostNotification, NoticeLevel,
    PROTOCOL_VERSION, Program, RunMode, Switch, Text,
};
use portcullis_session::notices;

use crate::record_text;
use crate::serve::host::{Host, Stage};
use crate::serve::settings_watch::Watch;

impl Host {
    /// Opens the session. If that fails, it is no protocol error: the host stays in the stage `Closed` and reports why.
    pub(super) fn hello(self: &Arc<Self>, hello: &HelloParams) -> Result<HelloResponse, ErrorObject> {
        if self.stage.get().is_some() {
            return Err(ErrorObject::new(ErrorCode::InvalidRequest, "`hello` was said before"));
        }
        let stage = self.open(hello).unwrap_or_else(|error| Stage::Closed(format!("{error:#}")));
        if self.stage.set(RwLock::new(Arc::new(stage))).is_err() {
            return Err(ErrorObject::new(ErrorCode::InvalidRequest, "`hello` was said before"));
        }
        self.tell_unread();
        self.keep_watching();
        let host = program().ok_or_else(|| ErrorObject::new(ErrorCode::Internal, "the host has no name"))?;
        Ok(HelloResponse { protocol: PROTOCOL_VERSION, host, status: self.status() })
    }

    /// Sends a notice for each settings file of another sandbox, which has no effect here.
    fn tell_unread(&self) {
        if let Stage::Open(wired) = self.stage().as_ref() {
            for old in &wired.session.settings().unread {
                let text = notices::other_settings(&old.file.to_string_lossy(), &old.warning().text);
                let event = EventNotification::Notice { level: NoticeLevel::Warning, text };
                // Ignore errors: the client may be gone.
                let _sent = self.sender.notify(&HostNotification::Event(event));
            }
        }
    }

    /// Returns a reporter that sends refusals to the client, which has no interface to show them otherwise.
    fn refusal_reporter(&self) -> RefusalReporter {
        let (sender, home) = (self.sender.clone(), self.around.home.clone());
        RefusalReporter(Arc::new(move |line, fails| {
            let text = record_text::refusal(line, &home);
            let event = EventNotification::Refused { text, unasked: line.answered_by == NOBODY, fails };
            // Ignore errors: the client may be gone.
            let _sent = sender.notify(&HostNotification::Event(event));
        }))
    }

    fn open(self: &Arc<Self>, hello: &HelloParams) -> anyhow::Result<Stage> {
        // Use the client's agent directory, since the client knows pi's own variables.
        let said =
            ProcessEnv { agent_directory: hello.agent_dir.as_path().to_owned(), ..self.around.clone() };
        let (around, mut wanted) = match &self.contained {
            Some(contained) => (self.around.clone(), contained.wanted(hello, wanted(hello))?),
            None => (said, wanted(hello)),
        };
        wanted.refusals = (!wanted.interactive).then(|| self.refusal_reporter());
        // A team file that cannot be used keeps the session closed in any case.
        let keeps_sandbox = teams::keeps_sandbox(&around.agent_directory).unwrap_or(true);
        let switch = hello.sandbox.filter(|switch| !keeps_sandbox || *switch == Switch::On);
        let watch = self.watch.get_or_init(|| Watch::new(around, wanted, switch));
        self.open_session(watch)
    }
}

fn wanted(hello: &HelloParams) -> Wanted {
    let session_file = hello.session_file.as_ref().map(|path| path.as_str().to_owned());
    Wanted {
        project: hello.cwd.as_path().to_owned(),
        settings: None,
        policies: Vec::new(),
        agent: AgentInfo {
            name: "pi".to_owned(),
            version: hello.pi_version.as_str().to_owned(),
            session_file: session_file.unwrap_or_default(),
            ..AgentInfo::default()
        },
        trusted: hello.project_trusted.unwrap_or(false),
        interactive: hello.interactive && matches!(hello.mode, RunMode::Tui | RunMode::Rpc),
        purpose: Purpose::Act,
        inmate: portcullis_session::SandboxSubject::Commands,
        reader: Reader::Model,
        refusals: None,
    }
}

/// Returns the description of this program for the client.
fn program() -> Option<Program> {
    Some(Program { name: Text::new("portcullis")?, version: Text::new(env!("CARGO_PKG_VERSION"))? })
}
