//! Without a sandbox for commands there are no branches.

use anyhow::bail;
use portcullis_bootstrap::loaded_settings::LoadedSettings;
use portcullis_bootstrap::session::{self, OpenSession};
use portcullis_rpc::{
    BranchCommitParams, BranchCommitResponse, BranchParams, BranchResponse, ErrorCode, ErrorObject,
};

use crate::serve::host::Host;
use crate::serve::settings_watch::Watch;

impl Host {
    pub(super) fn open_here(&self, watch: &Watch, loaded: LoadedSettings) -> anyhow::Result<OpenSession> {
        if watch.around().branch.is_some() {
            bail!("branches need a sandbox for commands, which this system does not have");
        }
        session::open(watch.around(), watch.wanted(), loaded, self.asks_at())
    }

    pub(super) fn leave_branch(&self) {}

    pub(super) fn branch(&self, _params: &BranchParams) -> Result<BranchResponse, ErrorObject> {
        Err(none())
    }

    pub(super) fn branch_commit(
        &self,
        _params: &BranchCommitParams,
    ) -> Result<BranchCommitResponse, ErrorObject> {
        Err(none())
    }
}

fn none() -> ErrorObject {
    ErrorObject::new(ErrorCode::Unavailable, "there are no branches on this system")
}
