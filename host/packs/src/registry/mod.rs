//! Registries: pushing and pulling packs.
//!
//! Written by hand on `ureq`: other clients of registries bring an asynchronous runtime and a second HTTP stack.

pub(crate) mod artifact;
mod client;
mod credentials;
mod documents;
mod error;
mod exchange;
#[cfg(test)]
mod hostile_registry_tests;
mod proof;
mod reference;
mod transfer;

pub use client::{Registry, Transfer};
pub use credentials::Credentials;
pub use documents::Part;
pub use error::RegistryError;
pub use reference::{Reference, ReferenceError, tag_of, version_of};
