//! Tools that the host does not carry out itself: judged here, carried out by whoever has them.

use portcullis_decision::request::{Action, FileOperation, Origin, SearchQuery, ToolCall};
use portcullis_decision::{Decision, Effect};
use portcullis_file_gate::spelling;
use portcullis_rpc::{DecideParams, DecideResponse, ErrorCode, ErrorObject, ToolEffect};
use portcullis_session::{Cancel, FileCall, Session, advice};
use serde_json::{Map, Value};

use crate::serve::files::failure;
use crate::serve::{Host, Stage, closed, off};

/// Who supplies pi's own tools.
const BUILT_IN: &str = "builtin";

impl Host {
    pub(super) fn decide(
        &self,
        params: &DecideParams,
        cancel: &Cancel,
    ) -> Result<DecideResponse, ErrorObject> {
        match self.stage().as_ref() {
            Stage::Closed(why) => Err(closed(why)),
            Stage::Off => Err(off()),
            Stage::Open(wired) => self.judge(&wired.session, params, cancel),
        }
    }

    fn judge(
        &self,
        session: &Session,
        params: &DecideParams,
        cancel: &Cancel,
    ) -> Result<DecideResponse, ErrorObject> {
        let call = params.call_id.as_str();
        let search = if params.provider.as_str() == BUILT_IN { search(params) } else { None };
        let Some((given, operation)) = search else {
            let action = Action::Tool(ToolCall {
                name: params.tool.as_str().to_owned(),
                provider: params.provider.as_str().to_owned(),
                input: Value::Object(params.input.clone()).to_string(),
            });
            let authorized = session.authorize(session.request(Origin::Agent, action), Some(call), cancel);
            if authorized.decision.effect() == Effect::Allow {
                session.outcome(&authorized.request, "left to pi");
            }
            return Ok(response(&authorized.decision, None));
        };
        let path = spelling::resolve(&given, &session.settings().workspace, &self.around.home)
            .map_err(|error| ErrorObject::new(ErrorCode::InvalidParams, error.to_string()))?;
        let file = FileCall { path: &path, given: &given, call: Some(call), cancel };
        let authorized = session.judge_file(file, operation).map_err(|error| failure(&error))?;
        let Action::File(access) = &authorized.request.action else {
            return Err(ErrorObject::new(ErrorCode::Internal, "a file operation became something else"));
        };
        // pi must use the path that was judged, not its own reading of what was written.
        let rewritten = portcullis_decision::path_text::decode(&access.path.canonical)
            .and_then(|path| session.host_path(&path).into_os_string().into_string().ok())
            .map(|path| with_path(&params.input, path));
        if authorized.decision.effect() == Effect::Allow {
            session.outcome(&authorized.request, "left to pi");
        }
        match rewritten {
            Some(input) => Ok(response(&authorized.decision, Some(input))),
            None => Err(ErrorObject::new(
                ErrorCode::InvalidParams,
                "the path is not text, so pi cannot be told it",
            )),
        }
    }
}

/// The path and operation of pi's own tools that look at files and are not carried out by the host.
fn search(params: &DecideParams) -> Option<(String, FileOperation)> {
    let text = |key: &str| params.input.get(key).and_then(Value::as_str).map(str::to_owned);
    // A path of another type is pi's to refuse; here it is judged as the directory pi would take.
    let path = text("path").filter(|path| !path.is_empty()).unwrap_or_else(|| ".".to_owned());
    let query = || SearchQuery { pattern: text("pattern").unwrap_or_default(), glob: text("glob") };
    match params.tool.as_str() {
        "ls" => Some((path, FileOperation::List)),
        "grep" | "find" => Some((path, FileOperation::Search(query()))),
        _ => None,
    }
}

fn with_path(input: &Map<String, Value>, path: String) -> Map<String, Value> {
    let mut input = input.clone();
    input.insert("path".to_owned(), Value::String(path));
    input
}

fn response(decision: &Decision, rewritten_input: Option<Map<String, Value>>) -> DecideResponse {
    let advice = advice(decision);
    let hint = decision.hint().map(str::to_owned).or_else(|| (!advice.is_empty()).then(|| advice.join("\n")));
    DecideResponse {
        effect: match decision.effect() {
            Effect::Allow => ToolEffect::Allow,
            Effect::Ask | Effect::Deny => ToolEffect::Deny,
        },
        policy: decision.policy().to_owned(),
        rule: decision.cause().rule.clone(),
        reason: decision.cause().reason.clone(),
        hint,
        rewritten_input,
    }
}
