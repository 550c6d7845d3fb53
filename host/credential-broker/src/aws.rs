//! Signatures of AWS, version 4 (AWS Signature Version 4): commands sign with placeholders, and the gate signs anew
//! with the user's keys.
//!
//! The signature of the command is checked first. The gate signs only what the command has signed, and nothing that
//! was changed on the way.

mod canonical;
mod keys;
mod names;
mod scope;
mod signature;
mod signed;
mod verified;

pub use keys::{AwsKeys, AwsPlaceholders};
pub use scope::AwsLimits;

pub(super) use names::TOKEN;
pub(crate) use signed::Signed;
pub use verified::Verified;

#[cfg(test)]
mod tests;
