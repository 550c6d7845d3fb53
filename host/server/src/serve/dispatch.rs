//! Which method carries out which request.

use std::sync::Arc;

use portcullis_rpc::{Empty, Request, RequestId};
use portcullis_session::Cancel;

use crate::serve::host::Host;

impl Host {
    /// Carries out a request and replies.
    pub(super) fn carry_out(self: &Arc<Self>, id: RequestId, request: Request, cancel: &Cancel) {
        // An edit of the settings applies from the next request on.
        self.refresh();
        match request {
            Request::Hello(hello) => self.reply(id, self.hello(&hello)),
            Request::Status => self.reply(id, Ok(self.status())),
            Request::Decide(params) => self.reply(id, self.decide(&params, cancel)),
            Request::Escalate(params) => self.reply(id, self.escalate(&params, cancel)),
            Request::FileOpen(params) => self.reply(id, self.file_open(&params, cancel)),
            Request::FileRead(params) => self.reply(id, self.file_read(&params)),
            Request::FileWrite(params) => self.reply(id, self.file_write(&params, cancel)),
            Request::FileWriteHandle(params) => self.reply(id, self.file_write_handle(&params, cancel)),
            Request::FileClose(params) => self.reply(id, self.file_close(&params)),
            Request::FileList(params) => self.reply(id, self.file_list(&params, cancel)),
            Request::FileFind(params) => self.reply(id, self.file_find(&params, cancel)),
            Request::FileGrep(params) => self.reply(id, self.file_grep(&params, cancel)),
            Request::FileOutput(params) => self.reply(id, self.file_output(&params)),
            Request::Inspect(params) => self.reply(id, self.inspect(&params)),
            Request::Reserve(params) => self.reply(id, self.reserve(&params, cancel)),
            Request::Exec(params) => self.reply(id, self.exec(params, cancel)),
            Request::Menu(params) => self.reply(id, self.menu(params)),
            Request::Turn(params) => self.reply(id, self.turn(&params)),
            Request::Changes => self.reply(id, self.changes()),
            Request::Undo(params) => self.reply(id, self.undo(&params)),
            Request::Branch(params) => self.reply(id, self.branch(&params)),
            Request::BranchCommit(params) => self.reply(id, self.branch_commit(&params)),
            // The reading thread carries it out.
            Request::Shutdown => self.reply(id, Ok(Empty {})),
        }
    }
}
