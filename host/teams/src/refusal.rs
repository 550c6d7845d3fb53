//! The reasons to refuse a document of a team, with their messages.

use portcullis_packs::Seconds;
use semver::Version;

/// The reason why a document is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum TeamRefusal {
    /// The document is malformed, or has an invalid value.
    #[error("the {what} cannot be read: {reason}")]
    Unreadable { what: String, reason: String },
    /// The document has another role than the requested one.
    #[error("a {wanted} was asked for, and this is a `{found}`")]
    Role { wanted: &'static str, found: String },
    /// The document belongs to another team.
    #[error("the {what} is of the team `{found}`, not of `{wanted}`")]
    Team { what: String, wanted: String, found: String },
    /// Too few keys of the role have signed.
    #[error("the {what} needs signatures of {threshold} keys of its role, and has {count}{notes}")]
    Threshold { what: String, threshold: usize, count: usize, notes: String },
    /// The version is lower than one that was accepted before.
    #[error(
        "the {what} has version {offered}, and version {held} was seen before: an old one is offered again"
    )]
    Rollback { what: &'static str, offered: u64, held: u64 },
    /// A version that was accepted before has other content now.
    #[error("the {what} {version} has other content than when it was accepted")]
    Replaced { what: &'static str, version: u64 },
    /// The document has another version than its name says.
    #[error("the {what} {wanted} was asked for, and this is version {found}")]
    Version { what: &'static str, wanted: u64, found: u64 },
    /// The document has expired.
    #[error(
        "the {what} expired {} days ago; the registry may be holding back a newer one, or the team has to publish one",
        days(*.at, *.now)
    )]
    Expired { what: String, at: Seconds, now: Seconds },
    /// The digest differs from the signed one.
    #[error("the {what} has the digest `{found}`, not `{wanted}`")]
    Digest { what: String, wanted: String, found: String },
    /// The size differs from the signed one, or is over the limit.
    #[error("the {what} has {found} bytes, not {wanted}")]
    Size { what: String, wanted: u64, found: u64 },
    /// The first root is not the pinned one.
    #[error("the first root has the digest `{found}`, and `{wanted}` is pinned")]
    Pin { wanted: String, found: String },
    /// There are more new roots than one update follows.
    #[error("there are more than {0} new roots; this is no usual rotation of keys")]
    TooManyRoots(u64),
    /// The bundle needs a newer program.
    #[error("bundle {version} needs Portcullis {needed} or newer, and this is {own}; update Portcullis")]
    NewerProgram { version: u64, needed: Version, own: Version },
    /// A pack that the machine requires is not in the bundle.
    #[error("bundle {version} has no pack `{id}`, which this machine requires")]
    RequiredPack { version: u64, id: String },
    /// The bundle is older than the machine requires.
    #[error("bundle {version} is older than version {wanted}, which this machine requires")]
    TooOld { version: u64, wanted: u64 },
    /// The content of the bundle cannot be used on this machine.
    #[error("bundle {version} cannot be used here: {reason}")]
    Unusable { version: u64, reason: String },
}

impl TeamRefusal {
    /// Returns a stable identifier for programs. It does not change with the wording of the message.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "unreadable",
            Self::Role { .. } => "other-role",
            Self::Team { .. } => "other-team",
            Self::Threshold { .. } => "threshold",
            Self::Rollback { .. } => "rollback",
            Self::Replaced { .. } => "replaced",
            Self::Version { .. } => "other-version",
            Self::Expired { .. } => "expired",
            Self::Digest { .. } => "other-digest",
            Self::Size { .. } => "other-size",
            Self::Pin { .. } => "other-root",
            Self::TooManyRoots(_) => "too-many-roots",
            Self::NewerProgram { .. } => "newer-program",
            Self::RequiredPack { .. } => "required-pack",
            Self::TooOld { .. } => "too-old",
            Self::Unusable { .. } => "unusable",
        }
    }
}

fn days(at: Seconds, now: Seconds) -> Seconds {
    now.saturating_sub(at) / (24 * 60 * 60)
}
