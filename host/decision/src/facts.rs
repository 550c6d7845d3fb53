//! Facts that the host finds out for a decision, besides the action itself.
//!
//! Inside the host they are values. Policies, the log and cases get them as [`Attribute`]s, see [`Fact::attribute`].

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::attribute::Attribute;
use crate::claim::{Claim, RESERVATIONS};
use crate::path_text;

/// A fact about a request.
///
/// An attribute becomes a fact if the fact would be written as exactly this attribute; otherwise it stays an attribute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Attribute", into = "Attribute")]
pub enum Fact {
    /// The claims of all agents; `None` if they cannot be read.
    Claims(Option<Vec<Claim>>),
    /// The rule for which the sandbox's broker asks about a call.
    BrokerRule(String),
    /// The place that one question covers, for names that the user's programs execute, and for a closed file that a
    /// command names.
    QuestionPlace(PathBuf),
    /// The place that a person knows, around the path of a command's call.
    KnownPlace(KnownPlace),
    /// The verdict on a file's other names (hard links).
    OtherNames(OtherNames),
    /// The verdict on the content to write to one of git's own files.
    Content(ContentVerdict),
    /// The path that a command named as not writable before it failed.
    NamedBeforeFailure(String),
    /// The paths that were allowed to a failed command, which is to run again.
    RunAgain(Vec<String>),
    /// The program that carries out the operation of an overridden tool.
    Provider(String),
    /// The tier of the sandbox in which a command would run.
    SandboxTier(String),
    /// The control group controllers that bound all commands together.
    ControlGroup(String),
    /// The program that runs in the sandbox instead of commands.
    Contained(String),
    /// The number of bytes that were sent to the destination before.
    SentBytes(u64),
    /// The name of the credential that the gate would put into the request.
    Credential(String),
    /// A fact that the host does not use itself.
    Other(Attribute),
}

/// A place that a person knows: questions about paths in it are about the place.
///
/// It only shapes the question: rules are evaluated for each path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownPlace {
    /// Its top directory.
    pub top: PathBuf,
    /// Its kind.
    pub kind: KnownPlaceKind,
    /// The directory around it, if an answer may cover that as well.
    pub wider: Option<PathBuf>,
}

/// The kind of a known place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KnownPlaceKind {
    /// A repository.
    Repository,
    /// A directory with the manifest of a project.
    Project,
    /// A directory.
    Directory,
}

impl KnownPlaceKind {
    /// Returns the noun for it.
    #[must_use]
    pub fn noun(self) -> &'static str {
        match self {
            Self::Repository => "repository",
            Self::Project => "project",
            Self::Directory => "directory",
        }
    }
}

/// The verdict on a file's other names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherNames {
    /// Whether the access is denied because of them, or asks.
    pub is_denied: bool,
    /// The reason.
    pub reason: String,
}

/// The verdict on the content to write, if the decision depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContentVerdict {
    /// It does no harm.
    Harmless,
    /// The user must be asked, for this reason.
    Asks(String),
    /// It is refused because it cannot be judged. The reason starts with [`UNREADABLE`].
    Unreadable(String),
}

/// The start of the reason for content that cannot be judged.
pub const UNREADABLE: &str = "it cannot be judged";

impl ContentVerdict {
    fn reason(&self) -> &str {
        match self {
            Self::Harmless => "",
            Self::Asks(reason) | Self::Unreadable(reason) => reason,
        }
    }

    /// Returns the verdict with a reason: none if it is empty, and a refusal if it starts with [`UNREADABLE`].
    #[must_use]
    pub fn with_reason(reason: String) -> Self {
        match reason {
            reason if reason.is_empty() => Self::Harmless,
            reason if reason.starts_with(UNREADABLE) => Self::Unreadable(reason),
            reason => Self::Asks(reason),
        }
    }
}

const BROKER_RULE: &str = "host:asked-by";
const QUESTION_PLACE: &str = "host:place";
const KNOWN_PLACE: &str = "host:known-place";
const OTHER_NAMES: &str = "host:names";
const CONTENT: &str = "host:git-content";
const NAMED_BEFORE_FAILURE: &str = "host:said-afterwards";
const RUN_AGAIN: &str = "host:run-again";
const PROVIDER: &str = "host:provider";
const SANDBOX_TIER: &str = "host:sandbox-tier";
const CONTROL_GROUP: &str = "host:control-group";
const CONTAINED: &str = "host:contained";
const SENT_BYTES: &str = "host:sent-bytes";
const CREDENTIAL: &str = "host:credential";

impl Fact {
    /// Returns the fact as an attribute of the contract.
    #[must_use]
    pub fn attribute(&self) -> Attribute {
        let text = |text: &str| Value::from(text).to_string();
        let (name, value) = match self {
            Self::Claims(claims) => {
                let claims = claims.as_ref().and_then(|claims| serde_json::to_string(claims).ok());
                (RESERVATIONS, claims.unwrap_or_else(|| "null".to_owned()))
            }
            Self::BrokerRule(rule) => (BROKER_RULE, text(rule)),
            Self::QuestionPlace(place) => (QUESTION_PLACE, text(&path_text::encode(place))),
            Self::KnownPlace(KnownPlace { top, kind, wider }) => {
                let wider = wider.as_deref().map(path_text::encode);
                let top = path_text::encode(top);
                (KNOWN_PLACE, json!({ "kind": kind, "top": top, "wider": wider }).to_string())
            }
            Self::OtherNames(OtherNames { is_denied, reason }) => {
                let effect = if *is_denied { "deny" } else { "ask" };
                (OTHER_NAMES, json!({ "effect": effect, "reason": reason }).to_string())
            }
            Self::Content(verdict) => (CONTENT, text(verdict.reason())),
            Self::NamedBeforeFailure(path) => (NAMED_BEFORE_FAILURE, text(path)),
            Self::RunAgain(paths) => (RUN_AGAIN, Value::from(paths.clone()).to_string()),
            Self::Provider(provider) => (PROVIDER, text(provider)),
            Self::SandboxTier(tier) => (SANDBOX_TIER, text(tier)),
            Self::ControlGroup(controllers) => (CONTROL_GROUP, text(controllers)),
            Self::Contained(program) => (CONTAINED, text(program)),
            Self::SentBytes(bytes) => (SENT_BYTES, bytes.to_string()),
            Self::Credential(name) => (CREDENTIAL, text(name)),
            Self::Other(attribute) => return attribute.clone(),
        };
        Attribute { name: name.to_owned(), value }
    }

    /// Parses an attribute; `None` if it is not one of the host's, or has another form.
    fn read(attribute: &Attribute) -> Option<Self> {
        let value = attribute.value.as_str();
        let text = || serde_json::from_str::<String>(value).ok();
        Some(match attribute.name.as_str() {
            RESERVATIONS => Self::Claims(serde_json::from_str(value).ok()?),
            BROKER_RULE => Self::BrokerRule(text()?),
            QUESTION_PLACE => Self::QuestionPlace(path_text::decode(&text()?)?),
            KNOWN_PLACE => {
                let value: Value = serde_json::from_str(value).ok()?;
                let path = |name| value.get(name).and_then(Value::as_str).and_then(path_text::decode);
                let kind = serde_json::from_value(value.get("kind")?.clone()).ok()?;
                Self::KnownPlace(KnownPlace { top: path("top")?, kind, wider: path("wider") })
            }
            OTHER_NAMES => {
                let value: Value = serde_json::from_str(value).ok()?;
                let is_denied = value.get("effect").and_then(Value::as_str) == Some("deny");
                let reason = value.get("reason").and_then(Value::as_str)?.to_owned();
                Self::OtherNames(OtherNames { is_denied, reason })
            }
            CONTENT => Self::Content(ContentVerdict::with_reason(text()?)),
            NAMED_BEFORE_FAILURE => Self::NamedBeforeFailure(text()?),
            RUN_AGAIN => Self::RunAgain(serde_json::from_str(value).ok()?),
            PROVIDER => Self::Provider(text()?),
            SANDBOX_TIER => Self::SandboxTier(text()?),
            CONTROL_GROUP => Self::ControlGroup(text()?),
            CONTAINED => Self::Contained(text()?),
            SENT_BYTES => Self::SentBytes(value.parse().ok()?),
            CREDENTIAL => Self::Credential(text()?),
            _ => return None,
        })
    }
}

impl From<Attribute> for Fact {
    fn from(attribute: Attribute) -> Self {
        Self::read(&attribute).filter(|fact| fact.attribute() == attribute).unwrap_or(Self::Other(attribute))
    }
}

impl From<Fact> for Attribute {
    fn from(fact: Fact) -> Self {
        fact.attribute()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(fact: &Fact, name: &str, value: &str) {
        let attribute = Attribute { name: name.to_owned(), value: value.to_owned() };
        assert_eq!(fact.attribute(), attribute);
        assert_eq!(Fact::from(attribute), *fact);
    }

    #[test]
    fn a_fact_has_one_form_for_policies() {
        let claim = Claim { path: "/w/a".into(), agent: "one".to_owned(), own: true };
        let claims = r#"[{"path":"/w/a","agent":"one","own":true}]"#;
        check(&Fact::Claims(Some(vec![claim])), RESERVATIONS, claims);
        check(&Fact::Claims(None), RESERVATIONS, "null");
        check(&Fact::BrokerRule("host.git-hooks".into()), "host:asked-by", r#""host.git-hooks""#);
        check(&Fact::QuestionPlace("/w/.vscode".into()), "host:place", r#""/w/.vscode""#);
        let place = KnownPlace { top: "/s/x".into(), kind: KnownPlaceKind::Repository, wider: None };
        let text = r#"{"kind":"repository","top":"/s/x","wider":null}"#;
        check(&Fact::KnownPlace(place.clone()), "host:known-place", text);
        let wider = KnownPlace { wider: Some("/s".into()), ..place };
        let text = r#"{"kind":"repository","top":"/s/x","wider":"/s"}"#;
        check(&Fact::KnownPlace(wider), "host:known-place", text);
        let names = OtherNames { is_denied: true, reason: "it \"has\" more".into() };
        check(&Fact::OtherNames(names), "host:names", r#"{"effect":"deny","reason":"it \"has\" more"}"#);
        let names = OtherNames { is_denied: false, reason: String::new() };
        check(&Fact::OtherNames(names), "host:names", r#"{"effect":"ask","reason":""}"#);
        check(&Fact::Content(ContentVerdict::Harmless), "host:git-content", r#""""#);
        check(&Fact::Content(ContentVerdict::Asks("x".into())), "host:git-content", r#""x""#);
        let unreadable = ContentVerdict::Unreadable("it cannot be judged: x".into());
        check(&Fact::Content(unreadable), "host:git-content", r#""it cannot be judged: x""#);
        check(&Fact::NamedBeforeFailure("a".into()), "host:said-afterwards", r#""a""#);
        check(&Fact::RunAgain(vec!["/a".into(), "/b".into()]), "host:run-again", r#"["/a","/b"]"#);
        check(&Fact::Provider("x".into()), "host:provider", r#""x""#);
        check(&Fact::SandboxTier("full".into()), "host:sandbox-tier", r#""full""#);
        check(&Fact::ControlGroup("memory pids".into()), "host:control-group", r#""memory pids""#);
        check(&Fact::Contained("pi itself".into()), "host:contained", r#""pi itself""#);
        check(&Fact::SentBytes(7), "host:sent-bytes", "7");
        check(&Fact::Credential("forge".into()), "host:credential", r#""forge""#);
    }

    #[test]
    fn an_attribute_of_another_form_stays_as_it_is() {
        for (name, value) in [
            ("host:names", "{}"),
            ("host:names", r#"{"reason":"","effect":"ask"}"#),
            ("host:reservations", "[ ]"),
            ("host:asked-by", "7"),
            ("host:sent-bytes", "07"),
            ("host:new", "{}"),
            ("vendor:name", "not JSON"),
        ] {
            let attribute = Attribute { name: name.to_owned(), value: value.to_owned() };
            assert_eq!(Fact::from(attribute.clone()), Fact::Other(attribute.clone()));
            assert_eq!(Fact::Other(attribute.clone()).attribute(), attribute);
        }
    }
}
