//! Tools that other programs carry out, and the output of all tools.

use portcullis_approvals::Cancel;
use portcullis_decision::request::{Action, Origin, ToolCall};
use portcullis_decision::verdict::{ContentBlock, Obligation, ToolOutput};
use portcullis_decision::{Decision, Inspection};

use crate::authorized::Authorized;
use crate::journal::OutputChange;
use crate::session::Session;

/// Maximum number of times that policies may rewrite an input.
const REWRITES: usize = 4;
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

/// Authorizes a tool call that another program carries out.
///
/// If a policy rewrites the input, all policies decide on the new input; the returned request contains it.
pub fn authorize(session: &Session, tool: ToolCall, call: Option<&str>, cancel: &Cancel) -> Authorized {
    let mut tool = tool;
    for _ in 0..REWRITES {
        let request = session.request(Origin::Agent, Action::Tool(tool.clone()));
        let authorized = session.authorize(request, call, cancel);
        if authorized.permit.is_none() {
            return authorized;
        }
        match rewritten(&authorized.decision, &tool) {
            Ok(None) => return authorized,
            Ok(Some(input)) => {
                session.outcome(&authorized.request, "rewritten");
                tool.input = input;
            }
            Err(rule) => return session.refuse(authorized.request, rule.0, rule.1),
        }
    }
    let request = session.request(Origin::Agent, Action::Tool(tool));
    session.refuse(request, "host.rewrites-endless", "policies rewrite each other's input again and again")
}

/// Passes a tool's output to the policies that inspect outputs.
#[must_use]
pub fn inspect(session: &Session, output: Output<'_>) -> Inspection {
    let request = session.calls.take(output.call);
    let basis = session.basis();
    if !basis.chain.members.iter().any(|member| member.policy.inspects()) {
        return Inspection::Pass;
    }
    let request = request.unwrap_or_else(|| session.request(Origin::Agent, Action::Tool(output.tool)));
    let grants = session.live_grants();
    let context = session.context_for(&request, &grants);
    let output = ToolOutput { request, is_error: output.is_error, truncated: false, content: output.content };
    let inspection = basis.chain.inspect(&output, &context);
    match &inspection {
        Inspection::Pass => {}
        Inspection::Replace { policy, cause, .. } => {
            session.output_changed(&output.request, &OutputChange { is_withheld: false, policy, cause });
        }
        Inspection::Withhold { policy, cause } => {
            session.output_changed(&output.request, &OutputChange { is_withheld: true, policy, cause });
        }
    }
    inspection
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
