//! Tools that other programs carry out, and the output of all tools.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use portcullis_decision::request::{Action, Origin, ToolCall};
use portcullis_decision::verdict::{ContentBlock, Obligation, ToolOutput};
use portcullis_decision::{Decision, Inspection, Request};

use crate::authorized::Authorized;
use crate::cancel::Cancel;
use crate::session::Session;

/// Maximum number of times that policies may rewrite an input.
const REWRITES: usize = 4;
/// Number of requests kept until the output of their calls arrives; pi has a few calls at a time.
const KEPT_CALLS: usize = 256;

/// The requests of calls whose output has not arrived.
#[derive(Debug, Default)]
pub(crate) struct Calls(Mutex<VecDeque<(String, Request)>>);

impl Calls {
    pub(crate) fn remember(&self, call: &str, request: &Request) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(other, _)| other != call);
        if known.len() == KEPT_CALLS {
            known.pop_front();
        }
        known.push_back((call.to_owned(), request.clone()));
    }

    fn take(&self, call: &str) -> Option<Request> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = known.iter().position(|(other, _)| other == call)?;
        known.remove(place).map(|(_, request)| request)
    }
}

/// The output of a tool, as the client received it.
#[derive(Debug)]
pub struct Output<'a> {
    /// The client's call.
    pub call: &'a str,
    /// The tool and its input, for calls that the host did not carry out and does not know.
    pub tool: ToolCall,
    /// Whether it failed.
    pub is_error: bool,
    /// The content blocks.
    pub content: Vec<ContentBlock>,
}

impl Session {
    /// Authorizes a tool call that another program carries out.
    ///
    /// If a policy rewrites the input, all policies decide on the new input; the returned request contains it.
    pub fn authorize_tool(&self, tool: ToolCall, call: Option<&str>, cancel: &Cancel) -> Authorized {
        let mut tool = tool;
        for _ in 0..REWRITES {
            let request = self.request(Origin::Agent, Action::Tool(tool.clone()));
            let authorized = self.authorize(request, call, cancel);
            if authorized.permit.is_none() {
                return authorized;
            }
            match rewritten(&authorized.decision, &tool) {
                Ok(None) => return authorized,
                Ok(Some(input)) => {
                    self.outcome(&authorized.request, "rewritten");
                    tool.input = input;
                }
                Err(rule) => return self.refuse(authorized.request, rule.0, rule.1),
            }
        }
        let request = self.request(Origin::Agent, Action::Tool(tool));
        self.refuse(request, "host.rewrites-endless", "policies rewrite each other's input again and again")
    }

    /// Refuses a request for a reason of the host.
    pub fn refuse(&self, request: Request, rule: &str, reason: &str) -> Authorized {
        self.record(request, Decision::host_denial(rule, reason))
    }

    /// Passes a tool's output to the policies that inspect outputs.
    #[must_use]
    pub fn inspect(&self, output: Output<'_>) -> Inspection {
        let request = self.calls.take(output.call);
        let basis = self.basis();
        if !basis.chain.members.iter().any(|member| member.policy.inspects()) {
            return Inspection::Pass;
        }
        let request = request.unwrap_or_else(|| self.request(Origin::Agent, Action::Tool(output.tool)));
        let grants = self.live_grants();
        let context = self.context_for(&request, &grants);
        let output =
            ToolOutput { request, is_error: output.is_error, truncated: false, content: output.content };
        let inspection = basis.chain.inspect(&output, &context);
        match &inspection {
            Inspection::Pass => {}
            Inspection::Replace { policy, cause, .. } => {
                self.outcome(&output.request, &format!("output replaced by `{policy}` ({})", cause.rule));
            }
            Inspection::Withhold { policy, cause } => {
                self.outcome(&output.request, &format!("output withheld by `{policy}` ({})", cause.rule));
            }
        }
        inspection
    }
}

/// Returns the input that policies want instead of the call's own, unless it is the same.
fn rewritten(decision: &Decision, tool: &ToolCall) -> Result<Option<String>, (&'static str, &'static str)> {
    let wanted = decision.obligations().iter().filter_map(|obligation| match obligation {
        Obligation::RewriteInput(input) => Some(input),
        Obligation::RewriteScript(_)
        | Obligation::Notify(_)
        | Obligation::Advise(_)
        | Obligation::Other(_) => None,
    });
    let mut new: Option<&String> = None;
    for input in wanted {
        if new.is_some_and(|known| known != input) {
            return Err(("host.rewrites-differ", "two policies want different inputs for the tool"));
        }
        new = Some(input);
    }
    Ok(new.filter(|input| **input != tool.input).cloned())
}
