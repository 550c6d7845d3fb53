//! The reasons to refuse a pack, with their messages.

use semver::Version;

use crate::error::PackError;

/// The reason why a pack is refused.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum PackRefusal {
    /// The pack is damaged, or is not a pack.
    #[error("it cannot be read as a pack")]
    Pack(#[source] PackError),
    /// The pack has no manifest.
    #[error("it carries no manifest; `portcullis policy build` makes a pack of a component")]
    NoManifest,
    /// The digest differs from the requested one.
    #[error("its digest is `{found}`, not `{wanted}`: these are other bytes")]
    Digest { wanted: String, found: String },
    /// The pack's bytes were revoked.
    #[error("`{digest}` was revoked: {reason}")]
    RevokedDigest { digest: String, reason: String },
    /// The id differs from the requested one.
    #[error("`{wanted}` was asked for, and this is `{found}`")]
    Name { wanted: String, found: String },
    /// The version differs from the requested one.
    #[error("version {wanted} was asked for, and this is {found}")]
    Version { wanted: Version, found: Version },
    /// The component cannot be run.
    #[error("it is no policy that this host can run")]
    Code(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The manifest and the code disagree.
    #[error("its manifest says {what} `{manifest}`, its code says `{code}`")]
    Disagrees { what: &'static str, manifest: String, code: String },
    /// The name looks like a known name.
    #[error("`{id}` looks like `{like}`; if you mean it, say so with `--similar-name`")]
    Similar { id: String, like: String },
    /// The pack is unsigned.
    #[error("it is unsigned; {hint}")]
    Unsigned { hint: String },
    /// The namespace's owner has not signed with enough keys.
    #[error("`{id}` must be signed by `{publisher}` with {threshold} of their keys: {found}")]
    NotSigned { id: String, publisher: String, threshold: usize, found: String },
    /// The signing publisher does not own the namespace.
    #[error("`{id}` is signed by `{publisher}`, who may sign in {namespaces} only")]
    Namespace { id: String, publisher: String, namespaces: String },
    /// The pack is signed by unknown keys only.
    #[error(
        "it is signed by `{keys}`, which you do not trust; add the publisher with `portcullis policy trust publisher`"
    )]
    Foreign { keys: String },
    /// The version is older than the one in use.
    #[error(
        "version {offered} is older than {used}, which is or was in use; `--allow-older` takes it all the same"
    )]
    Rollback { offered: Version, used: Version },
    /// The bytes of a known version have changed.
    #[error(
        "version {version} has other bytes than when it was taken; `--allow-older` takes it all the same"
    )]
    Replaced { version: Version },
    /// The pack asks for capabilities that the user has not agreed to.
    #[error("it wants {wanted}; agree with `--allow {wanted}`")]
    Capabilities { wanted: String },
}

impl PackRefusal {
    /// Returns a stable identifier for programs. It does not change with the wording of the message.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Pack(_) => "damaged",
            Self::NoManifest => "no-manifest",
            Self::Digest { .. } => "other-digest",
            Self::RevokedDigest { .. } => "revoked",
            Self::Name { .. } => "other-name",
            Self::Version { .. } => "other-version",
            Self::Code(_) => "not-runnable",
            Self::Disagrees { .. } => "disagrees",
            Self::Similar { .. } => "similar-name",
            Self::Unsigned { .. } => "unsigned",
            Self::NotSigned { .. } => "not-signed-by-owner",
            Self::Namespace { .. } => "foreign-namespace",
            Self::Foreign { .. } => "unknown-signer",
            Self::Rollback { .. } => "older",
            Self::Replaced { .. } => "other-bytes",
            Self::Capabilities { .. } => "capabilities",
        }
    }
}
