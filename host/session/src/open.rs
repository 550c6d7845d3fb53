//! Opens a session.

use std::sync::{Arc, OnceLock, Weak};

use portcullis_session_sandbox::confining::Confining;
use portcullis_session_sandbox::error::OpenError;
use portcullis_session_sandbox::network::Network;

use crate::basis::Basis;
use crate::connection_judge::CommandJudge;
use crate::session::Session;
use crate::setup::Setup;
use crate::signing;

/// Opens a session: gets the policies' standing rules, compiles the rule set, and sets up the sandbox.
///
/// If the sandbox fails, the session opens anyway and refuses commands.
///
/// # Errors
/// When a policy fails to return its rules. Nothing may be allowed in that case.
pub fn open(setup: Setup, basis: Basis) -> Result<Arc<Session>, OpenError> {
    // The sandbox is served before the session exists; the gate allows no connection until then.
    let session: Arc<OnceLock<Weak<Session>>> = Arc::default();
    let network = match &setup.confinement {
        Confining::Sandbox { .. } | Confining::Profile(_) => {
            let session = Arc::clone(&session);
            let make_judge = move |rules| CommandJudge::shared(Arc::clone(&session), rules);
            Some(Network::start(Box::new(make_judge)).map_err(OpenError::Network)?)
        }
        Confining::NoCommands => None,
    };
    let opened = Arc::new(Session::new(setup, basis, network)?);
    session.get_or_init(|| Arc::downgrade(&opened));
    let signing = Arc::downgrade(&opened);
    opened.brokering.sign_by(Box::new(move |listener| signing::serve(listener, Weak::clone(&signing))));
    Ok(opened)
}
