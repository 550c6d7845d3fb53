//! What became of a request, and what it lets its caller do.

use portcullis_decision::verdict::Obligation;
use portcullis_decision::{Decision, GrantScope, Permit, Request};
use portcullis_text::escape;

/// What became of a request.
#[derive(Debug)]
pub struct Authorized {
    /// The final decision; never `ask`.
    pub decision: Decision,
    /// The proof, if it was allowed.
    pub permit: Option<Permit>,
    /// The request as it was judged.
    pub request: Request,
    /// How long the user's yes holds; none where there was none.
    pub(crate) answer: Option<GrantScope>,
}

/// A request that was allowed.
#[derive(Debug)]
pub struct Granted {
    /// The proof.
    pub permit: Permit,
    /// The request as it was judged.
    pub request: Request,
    /// What policies want the model to be told with the result.
    pub advice: Vec<String>,
    /// The decision that allowed it.
    pub(crate) decision: Decision,
}

impl Authorized {
    /// The permit, or the decision that refused it.
    ///
    /// # Errors
    /// When it was not allowed.
    pub fn granted(self) -> Result<Granted, Box<Decision>> {
        match self.permit {
            Some(permit) => {
                let advice = advice(&self.decision);
                Ok(Granted { permit, request: self.request, advice, decision: self.decision })
            }
            None => Err(Box::new(self.decision)),
        }
    }
}

/// What policies want the model to be told with the result, safe to show.
#[must_use]
pub fn advice(decision: &Decision) -> Vec<String> {
    let advise = |obligation: &Obligation| match obligation {
        Obligation::Advise(text) => Some(escape(text)),
        Obligation::Notify(_)
        | Obligation::RewriteScript(_)
        | Obligation::RewriteInput(_)
        | Obligation::Other(_) => None,
    };
    decision.obligations().iter().filter_map(advise).collect()
}
