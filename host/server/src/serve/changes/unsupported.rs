//! Without a sandbox for commands nothing is recorded.

use portcullis_rpc::{ChangesResponse, Empty, ErrorCode, ErrorObject, TurnParams, UndoParams, UndoResponse};

use crate::serve::host::Host;

impl Host {
    pub(super) fn turn(&self, _params: &TurnParams) -> Result<Empty, ErrorObject> {
        Ok(Empty {})
    }

    pub(super) fn changes(&self) -> Result<ChangesResponse, ErrorObject> {
        Ok(ChangesResponse { points: Vec::new(), redoable: false })
    }

    pub(super) fn undo(&self, _params: &UndoParams) -> Result<UndoResponse, ErrorObject> {
        Err(ErrorObject::new(ErrorCode::Unavailable, "changes are not recorded on this system"))
    }
}
