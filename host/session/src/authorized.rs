//! The result of authorization.

use portcullis_decision::verdict::Obligation;
use portcullis_decision::{Decision, GrantScope, Permit, Request};
use portcullis_text::escape;

/// The result of authorizing a request.
#[derive(Debug)]
pub struct Authorized {
    /// The final decision; never `ask`.
    pub decision: Decision,
    /// The permit, if it was allowed.
    pub permit: Option<Permit>,
    /// The request, as decided.
    pub request: Request,
    /// The scope of the user's "yes", if there was one.
    pub(crate) answer: Option<GrantScope>,
}

/// An allowed request.
#[derive(Debug)]
pub struct Granted {
    /// The permit.
    pub permit: Permit,
    /// The request, as decided.
    pub request: Request,
    /// Texts of policies for the model, to be sent with the result.
    pub advice: Vec<String>,
    /// The decision that allowed it.
    pub(crate) decision: Decision,
}

impl Authorized {
    /// Returns the permit.
    ///
    /// # Errors
    /// The decision, if the request was not allowed.
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

/// Returns the policies' texts for the model, escaped.
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
