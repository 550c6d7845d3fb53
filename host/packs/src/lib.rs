//! A pack is one `.wasm` file: a policy component that carries its manifest, the
//! schema of its configuration, its cases, its README and its licence in custom
//! sections. One file to drop in, one digest.
//!
//! Owns: the manifest (`policy.toml`), and writing and reading the sections. Must
//! never know: how policies are run, or what they answer.
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

mod error;
mod manifest;
mod pack;
mod section;

pub use error::PackError;
pub use manifest::{
    About, Build, Capabilities, Config, Contract, Language, MANIFEST_MAX, Manifest, StateScope, Tests,
};
pub use pack::{Pack, Provenance};

/// SHA-256 of bytes, lower-case hex.
#[must_use]
pub fn digest(bytes: &[u8]) -> String {
    use sha2::Digest as _;
    sha2::Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
