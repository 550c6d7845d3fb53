//! A pack is one `.wasm` file: a policy component with its manifest, the schema of its configuration, its
//! cases, its README and its licence in custom sections. There is one file to install and one digest.
//!
//! Owns: the manifest (`policy.toml`); the custom sections; the decision to accept a pack (`accept`), with
//! signatures, `trust.toml` and `policy.lock`; local storage (`store`) and transport (`registry`, `archive`).
//! Must never know: how policies run, or how they answer.
//!
//! ```
//! use portcullis_packs::{Manifest, Pack};
//!
//! let manifest = Manifest::parse(
//!     "[policy]\nid = 'acme:net'\nversion = '1.0.0'\ntitle = 'Hosts'\n[contract]\nversion = '0.1'",
//! )?;
//! let pack = Pack { manifest, ..Pack::default() };
//! // The smallest component there is.
//! let component = pack.embed(b"\0asm\x0d\0\x01\0")?;
//! assert_eq!(Pack::read(&component)?.unwrap().manifest.policy.id, "acme:net");
//! # Ok::<(), portcullis_packs::PackError>(())
//! ```

mod digest;
mod error;
mod manifest;
mod pack;
mod section;
mod shown;

mod accept;
mod allowed_signers;
mod date;
mod key;
mod lock;
mod signature;
mod trust;

mod archive;
mod registry;
mod release;
mod store;

pub use accept::{
    Approval, CAPABILITIES, Candidate, Described, FROM_FILE, PackRefusal, Voucher, accept, capabilities,
    vouched,
};
pub use archive::{ArchiveError, load, save};
pub use date::Seconds;
pub use digest::digest;
pub use error::PackError;
pub use key::{Key, KeyError, Validity};
pub use lock::{Lock, LockError, Locked, Removed, is_digest};
pub use manifest::{
    About, Build, Capabilities, Config, Contract, Language, MANIFEST_MAX, Manifest, StateScope, Tests, is_id,
};
pub use pack::{Pack, Provenance};
pub use registry::{
    Credentials, Part, Reference, ReferenceError, Registry, RegistryError, Transfer, tag_of, version_of,
};
pub use release::{RELEASE_PURPOSE, ReleaseError, ReleaseFile, SUMS, SUMS_SIGNATURE, verify_release};
pub use signature::{Checked, PURPOSE, SignatureError, SignatureState, Signatures, TEXT_MAX};
pub use store::{
    COMPONENT_MAX, LOCK, Signed, Store, StoreError, Writing, beside, open, read, read_text,
    signatures_beside, write, write_signed,
};
pub use trust::{Publisher, TRUST_MAX, Trust, TrustError};
