//! What is declared about brokered hosts.

use portcullis_decision::pattern::RequestPattern;
use portcullis_decision::request::Endpoint;

use super::aws::{AwsLimits, AwsPlaceholders};
use super::push::PushRule;

/// A host whose requests the gate reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokeredHost {
    /// The host.
    pub host: Endpoint,
    /// The port, on which it speaks TLS.
    pub port: u16,
    /// The credentials for it.
    pub credentials: Vec<Credential>,
    /// The requests that may be sent to it; `None` for every request.
    pub requests: Option<RequestLimits>,
    /// The pushes of git that may be sent to it; empty if they are like other requests.
    pub pushes: Vec<PushRule>,
}

impl BrokeredHost {
    /// Returns true if only some requests may be sent to the host.
    pub(super) fn is_limited(&self) -> bool {
        self.requests.is_some() || !self.pushes.is_empty()
    }
}

/// A credential that the gate puts into requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// Its name in the settings.
    pub name: String,
    /// The text that commands have in its place.
    pub placeholder: String,
    /// Its place in a request.
    pub form: Form,
    /// The requests that it may be put into.
    pub purpose: Vec<RequestPattern>,
}

impl Credential {
    /// Returns all texts that commands have in the place of the credential.
    pub(super) fn placeholders(&self) -> Vec<String> {
        match &self.form {
            Form::Aws(_) => AwsPlaceholders::of(&self.placeholder).into_texts().into(),
            Form::Bearer | Form::Basic { .. } | Form::Header(_) => vec![self.placeholder.clone()],
        }
    }
}

/// The place of a credential in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// `Authorization: Bearer` or `Authorization: token`, followed by the credential.
    Bearer,
    /// `Authorization: Basic`, with the credential as the password.
    Basic {
        /// The user name; `None` for the one that the command sends.
        user: Option<String>,
    },
    /// A header of this name, in lower case, whose value is the credential.
    Header(String),
    /// A signature of AWS, version 4, which is made with the credential.
    Aws(AwsLimits),
}

/// Limits on the requests to a host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestLimits {
    /// The requests that may be sent.
    pub allow: Vec<RequestPattern>,
    /// Names of headers that each request must have, in lower case.
    pub headers: Vec<String>,
    /// The largest body, in bytes.
    pub body_max: Option<u64>,
    /// Whether requests may carry no other credential than those of the settings.
    pub own_account_only: bool,
}
