//! Questions that offer a credential to a tool that is seen to need one.

use portcullis_decision::request::{Action, OtherAction};
use portcullis_decision::{GrantPattern, GrantScope};
use portcullis_text::{escape, escape_confusables};
use serde_json::{Value, json};

use crate::open_questions::{Choice, ChoiceKind, Question};

/// The kind of the request, as in `other-action` of the contract.
pub const KIND: &str = "host:credential-offer";

/// The use of a credential that a question offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfferedUse {
    /// Pushes by the user's own `ssh`.
    PushBySsh,
    /// Pushes over HTTPS.
    PushByHttps,
    /// Publishing a package.
    Publish,
    /// Requests that read.
    Read,
}

/// The facts of an offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialOffer {
    /// The program that needs the credential.
    pub tool: &'static str,
    /// The use.
    pub usage: OfferedUse,
    /// The host.
    pub host: String,
    /// The repository or the package, if it is for one only.
    pub object: Option<String>,
    /// The entries that a yes adds to the settings, in words.
    pub adds: String,
}

impl OfferedUse {
    /// Returns the word for the use in requests to policies.
    const fn word(self) -> &'static str {
        match self {
            Self::PushBySsh | Self::PushByHttps => "push",
            Self::Publish => "publish",
            Self::Read => "read",
        }
    }

    /// Returns the verb of the question; the place follows.
    const fn verb(self) -> &'static str {
        match self {
            Self::PushBySsh => "push by your own ssh to",
            Self::PushByHttps => "push with your credential to",
            Self::Publish => "publish with your credential at",
            Self::Read => "use your credential at",
        }
    }

    const fn context(self) -> &'static str {
        match self {
            Self::PushBySsh => "Commands do not get the key. Only branches agent/** move.",
            Self::PushByHttps => "Commands do not get the credential. Only branches agent/** move.",
            Self::Publish => "Commands do not get the credential. Only this package can be published.",
            Self::Read => "Commands do not get the credential. It only reads.",
        }
    }
}

impl CredentialOffer {
    /// Returns the action of the request to policies.
    #[must_use]
    pub fn action(&self) -> Action {
        let input = json!({
            "tool": self.tool, "use": self.usage.word(), "host": self.host, "object": self.object, "adds": self.adds,
        });
        Action::Other(OtherAction { kind: KIND.to_owned(), input: input.to_string() })
    }

    /// Makes a question the one about this offer. A yes is written to `target`.
    #[must_use]
    pub fn put(&self, question: Question, target: &str) -> Question {
        let always = Choice {
            key: 'A',
            kind: ChoiceKind::Allow,
            label: "Always, in every project".to_owned(),
            covers: Some(escape_confusables(&self.adds)),
            width: 0,
            target: Some(escape(target)),
            place: None,
            scope: GrantScope::User,
            pattern: GrantPattern::Exact(Box::new(self.action())),
            lifetime: 0,
        };
        Question {
            title: format!("{} wants to {}", self.tool, self.usage.verb()),
            context: self.usage.context().to_owned(),
            reason: "it needs a credential, and your settings have none for it".to_owned(),
            choices: vec![always],
            ..question
        }
    }
}

/// Returns the host, with the repository or the package.
pub(super) fn subject(action: &OtherAction) -> Option<String> {
    let input: Value = serde_json::from_str(&action.input).ok().filter(|_| action.kind == KIND)?;
    let host = input.get("host")?.as_str()?;
    Some(match input.get("object").and_then(Value::as_str) {
        Some(object) => format!("{host}/{object}"),
        None => host.to_owned(),
    })
}
