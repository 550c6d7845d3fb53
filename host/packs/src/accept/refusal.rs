//! What speaks against a pack, in words for whoever offered it.

use semver::Version;

use crate::error::PackError;

/// Why a pack is not taken.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// It is damaged, or no pack.
    #[error("it cannot be read as a pack")]
    Pack(#[source] PackError),
    /// It carries no manifest.
    #[error("it carries no manifest; `portcullis policy build` makes a pack of a component")]
    NoManifest,
    /// Its bytes are not those that were asked for.
    #[error("its digest is `{found}`, not `{wanted}`: these are other bytes")]
    Digest {
        /// What was asked for.
        wanted: String,
        /// What there is.
        found: String,
    },
    /// Its bytes were revoked.
    #[error("`{digest}` was revoked: {reason}")]
    RevokedDigest {
        /// The digest.
        digest: String,
        /// Why.
        reason: String,
    },
    /// It is another policy than the one that was asked for.
    #[error("`{wanted}` was asked for, and this is `{found}`")]
    Name {
        /// What was asked for.
        wanted: String,
        /// What there is.
        found: String,
    },
    /// It is another version than the one that was asked for.
    #[error("version {wanted} was asked for, and this is {found}")]
    Version {
        /// What was asked for.
        wanted: Version,
        /// What there is.
        found: Version,
    },
    /// It cannot be run.
    #[error("it is no policy that this host can run")]
    Code(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Its manifest and its code disagree.
    #[error("its manifest says {what} `{manifest}`, its code says `{code}`")]
    Disagrees {
        /// What they disagree about.
        what: &'static str,
        /// The manifest's word.
        manifest: String,
        /// The code's word.
        code: String,
    },
    /// Its name can be taken for another one.
    #[error("`{id}` looks like `{like}`; if you mean it, say so with `--similar-name`")]
    Similar {
        /// Its name.
        id: String,
        /// What it looks like.
        like: String,
    },
    /// Nobody has signed it.
    #[error("nobody has signed it; {hint}")]
    Unsigned {
        /// What to do.
        hint: String,
    },
    /// Nobody whom it takes has signed it.
    #[error("`{id}` must be signed by `{publisher}` with {threshold} of their keys: {found}")]
    NotSigned {
        /// Its name.
        id: String,
        /// Whose name it is.
        publisher: String,
        /// How many keys it takes.
        threshold: usize,
        /// What there is.
        found: String,
    },
    /// It is signed by somebody whose namespace it is not in.
    #[error("`{id}` is signed by `{publisher}`, who may sign in {namespaces} only")]
    Namespace {
        /// Its name.
        id: String,
        /// Who signed.
        publisher: String,
        /// What they may sign.
        namespaces: String,
    },
    /// A signature is there, of somebody who is not known.
    #[error(
        "it is signed by `{keys}`, which nobody here trusts; `portcullis policy trust publisher` names one"
    )]
    Foreign {
        /// Who signed.
        keys: String,
    },
    /// It is older than what is used.
    #[error(
        "version {offered} is older than {used}, which is or was in use; `--allow-older` takes it all the same"
    )]
    Rollback {
        /// What is offered.
        offered: Version,
        /// What is used.
        used: Version,
    },
    /// The same version has other bytes than before.
    #[error(
        "version {version} has other bytes than when it was taken; `--allow-older` takes it all the same"
    )]
    Replaced {
        /// The version.
        version: Version,
    },
    /// It wants more than it may.
    #[error("it wants {wanted}; agree with `--allow {wanted}`")]
    Capabilities {
        /// What it wants and was not agreed to, separated by commas.
        wanted: String,
    },
}

impl Refusal {
    /// One word for programs, which stays the same when the sentence is written better.
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
