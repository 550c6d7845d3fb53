//! Tools that the host does not carry out itself: it decides, and another program carries them out.

use portcullis_decision::request::{Action, Origin, ToolCall};
use portcullis_decision::verdict::ContentBlock;
use portcullis_decision::{Decision, Effect, Inspection, RefusalText};
use portcullis_rpc::{
    DecideParams, DecideResponse, Denial, ErrorCode, ErrorObject, EscalateParams, InspectParams,
    InspectResponse, OutputBlock, OutputVerdict, Text, ToolEffect,
};
use portcullis_session::{Cancel, Output, Session, advice, escalation, tools, with_causes};
use serde_json::{Map, Value};

use crate::serve::host::{Host, Stage, closed, off};

/// Provider of pi's own tools.
const BUILT_IN: &str = "builtin";
/// pi's tool for PowerShell, for which there is no sandbox here.
const POWERSHELL: &str = "powershell";
const NO_POWERSHELL: &str = "PowerShell cannot be confined on this system; use the tool `bash`";

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
        let input = Value::Object(params.input.clone()).to_string();
        let tool = tool_call(&params.tool, &params.provider, &input);
        if params.provider.as_str() == BUILT_IN && params.tool.as_str() == POWERSHELL {
            let request = session.request(Origin::Agent, Action::Tool(tool));
            let refused = session.refuse(request, "host.powershell", NO_POWERSHELL);
            return Ok(response(&refused.decision, None));
        }
        if params.provider.as_str() != BUILT_IN
            && let Some(response) = self.judge_taken_over(session, params, cancel)?
        {
            return Ok(response);
        }
        let authorized = tools::authorize(session, tool, Some(call), cancel);
        let mut rewritten = None;
        if authorized.decision.effect() == Effect::Allow {
            session.outcome(&authorized.request, "left to pi");
            if let Action::Tool(tool) = &authorized.request.action
                && tool.input != input
            {
                rewritten = Some(serde_json::from_str(&tool.input).map_err(|error| {
                    ErrorObject::new(ErrorCode::Internal, format!("the new input of the tool: {error}"))
                })?);
            }
        }
        Ok(response(&authorized.decision, rewritten))
    }

    /// Decides on a command that its client runs outside the sandbox.
    ///
    /// It is only allowed after the user's "yes" to this command.
    pub(super) fn escalate(
        &self,
        params: &EscalateParams,
        cancel: &Cancel,
    ) -> Result<DecideResponse, ErrorObject> {
        if self.contained.is_some() {
            let why = "pi is contained: it cannot run commands outside the sandbox";
            return Err(ErrorObject::new(ErrorCode::Unavailable, why));
        }
        self.with_session(|session| {
            let (script, call) = (params.script.as_str(), params.call_id.as_str());
            let authorized = escalation::authorize(session, script, params.cwd.as_path(), call, cancel)
                .map_err(|failure| ErrorObject::new(ErrorCode::Unavailable, with_causes(&failure)))?;
            if authorized.permit.is_some() {
                session.outcome(&authorized.request, "left to pi, outside of the sandbox");
            }
            Ok(response(&authorized.decision, None))
        })
    }

    pub(super) fn inspect(&self, params: &InspectParams) -> Result<InspectResponse, ErrorObject> {
        self.with_session(|session| {
            let input = Value::Object(params.input.clone()).to_string();
            let output = Output {
                call: params.call_id.as_str(),
                tool: tool_call(&params.tool, &params.provider, &input),
                is_error: params.is_error,
                content: params.content.iter().cloned().map(block_in).collect(),
            };
            Ok(match tools::inspect(session, output) {
                Inspection::Pass => {
                    InspectResponse { verdict: OutputVerdict::Pass, content: None, cause: None }
                }
                Inspection::Replace { content, .. } => InspectResponse {
                    verdict: OutputVerdict::Replace,
                    content: Some(content.into_iter().map(block_out).collect()),
                    cause: None,
                },
                Inspection::Withhold { policy, cause } => InspectResponse {
                    verdict: OutputVerdict::Withhold,
                    content: None,
                    cause: Some(Denial { policy, rule: cause.rule, reason: cause.reason, hint: None }),
                },
            })
        })
    }
}

fn tool_call(name: &Text, provider: &Text, input: &str) -> ToolCall {
    ToolCall {
        name: name.as_str().to_owned(),
        provider: provider.as_str().to_owned(),
        input: input.to_owned(),
    }
}

fn block_in(block: OutputBlock) -> ContentBlock {
    match block {
        OutputBlock::Text { text } => ContentBlock::Text(text),
        OutputBlock::Image { mime_type, bytes } => ContentBlock::Image(mime_type, bytes),
        OutputBlock::Other { json } => ContentBlock::Other(json),
    }
}

fn block_out(block: ContentBlock) -> OutputBlock {
    match block {
        ContentBlock::Text(text) => OutputBlock::Text { text },
        ContentBlock::Image(mime_type, bytes) => OutputBlock::Image { mime_type, bytes },
        ContentBlock::Other(json) => OutputBlock::Other { json },
    }
}

pub(super) fn response(decision: &Decision, rewritten_input: Option<Map<String, Value>>) -> DecideResponse {
    let advice = advice(decision);
    let hint = RefusalText::for_decision(decision)
        .advice()
        .or_else(|| (!advice.is_empty()).then(|| advice.join("\n")));
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
