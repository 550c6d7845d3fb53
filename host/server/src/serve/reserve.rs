//! The tool by which agents reserve paths: decided on like any tool, and carried out here.

use portcullis_decision::path_text;
use portcullis_decision::request::ToolCall;
use portcullis_rpc::{Denial, ErrorCode, ErrorObject, ReserveParams, ReserveResponse, ReservedPath};
use portcullis_session::{Cancel, tools};
use portcullis_text::escape;
use serde_json::json;

use crate::serve::host::Host;

/// Name and provider of the tool, as policies see them.
const TOOL: &str = "reserve";
const PROVIDER: &str = "portcullis";

impl Host {
    pub(super) fn reserve(
        &self,
        params: &ReserveParams,
        cancel: &Cancel,
    ) -> Result<ReserveResponse, ErrorObject> {
        self.with_session(|session| {
            let paths: Vec<&str> = params.paths.iter().map(|path| path.as_str()).collect();
            let input = json!({ "paths": paths, "release": params.release }).to_string();
            let tool = ToolCall { name: TOOL.to_owned(), provider: PROVIDER.to_owned(), input };
            let authorized = tools::authorize(session, tool, Some(params.call_id.as_str()), cancel);
            let denied = match &authorized.permit {
                Some(_) => {
                    session.outcome(&authorized.request, "done");
                    None
                }
                None => {
                    let decision = &authorized.decision;
                    Some(Denial {
                        policy: decision.policy().to_owned(),
                        rule: decision.cause().rule.clone(),
                        reason: decision.cause().reason.clone(),
                        hint: portcullis_decision::RefusalText::for_decision(decision).advice(),
                    })
                }
            };
            let claims =
                session.claims().map_err(|why| ErrorObject::new(ErrorCode::Internal, escape(&why)))?;
            let shown = |claim: portcullis_decision::reservation::Claim| ReservedPath {
                path: path_text::encode(&claim.path),
                agent: claim.agent,
                own: claim.own,
            };
            Ok(ReserveResponse { denied, claims: claims.into_iter().map(shown).collect() })
        })
    }
}
