//! A request and a context for tests.

use portcullis_decision::request::{
    Action, FileAccess, FileFacts, FileOperation, Origin, PathKind, PathRef, Request, Zone,
};
use portcullis_decision::{Context, context};

pub(crate) fn read(path: &str) -> Request {
    let zone = if path.starts_with("/srv/app/") { Zone::Workspace } else { Zone::System };
    Request {
        id: "1".into(),
        parent: None,
        origin: Origin::Agent,
        action: Action::File(FileAccess {
            path: PathRef {
                given: path.into(),
                absolute: path.into(),
                canonical: path.into(),
                zone,
                relative: path.trim_start_matches("/srv/app/").into(),
                kind: PathKind::File,
            },
            operation: FileOperation::Read,
            facts: FileFacts::default(),
        }),
        facts: Vec::new(),
    }
}

pub(crate) fn context() -> Context {
    Context {
        session_id: "session".into(),
        workspace: context::Workspace { roots: vec!["/srv/app".into()], trusted: true, vcs: None },
        interactive: true,
        ..Context::default()
    }
}
