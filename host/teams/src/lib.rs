//! Team bundles: settings, presets, packs and trust that a team gives to the machines of its members.
//!
//! A bundle is a signed document in the registry that also has the packs. Three documents make up the metadata, after
//! the model of The Update Framework: the *root* names the keys and thresholds of all roles and is replaced by a root
//! that the keys of the old one have signed; the *bundle* is the content, with the digest of each pack; the
//! *timestamp* names the newest bundle and expires soon. One bundle is one document, so there is no snapshot role
//! (`docs/decisions/0057-teams.md`).
//!
//! Owns: the documents ([`root`](Root), [`Bundle`], [`Timestamp`]), the workflow that accepts a newer one ([`update`]),
//! what a machine keeps ([`Held`]), membership files, the folder of a publisher, archives, and reports.
//! Must never know: settings, policies, sessions. A caller says whether the content can be used.
//!
//! ```
//! use portcullis_teams::{Stage, StagedMode};
//!
//! let tenth = Stage { enforce: 10, observe: 100 };
//! assert_eq!(tenth.mode(3), StagedMode::Enforce);
//! assert_eq!(tenth.mode(10), StagedMode::Observe);
//! ```

mod document;
mod refusal;
mod stage;

mod bundle;
mod root;
mod timestamp;

mod held;
mod source;
mod update;

mod membership;
mod store;

mod archive;
mod registry;

mod publisher;
mod report;

#[cfg(test)]
mod attack_tests;
#[cfg(test)]
mod test_team;

pub use archive::{ArchiveError, ArchiveSource, save};
pub use bundle::{Bundle, BundlePack, Yanked};
pub use document::{SignedText, TEAM_PURPOSE};
pub use held::{Held, HeldBundle, Trusted};
pub use membership::{Membership, MembershipError, Owner, Unprotected};
pub use publisher::{BundleDraft, Drafted, Folder, FolderError, NewTeam, PackFile, Pending, Rotation};
pub use refusal::TeamRefusal;
pub use registry::{RegistrySource, push};
pub use report::{MachineKey, PackInForce, REPORT_PURPOSE, Report, SignedReport};
pub use root::Root;
pub use source::{DocumentName, Source, SourceError};
pub use stage::{Stage, StagedMode, slot};
pub use store::{HELD, Store, StoreError};
pub use timestamp::Timestamp;
pub use update::{Checks, PackBytes, Update, Usable, update};
