//! Recognizes credentials by the names and the values of settings and variables.
//!
//! The log masks them, and commands do not get them. Detection errs on the side of secrecy: a masked word that was no
//! secret costs a detail, a secret that stays costs more. It cannot be complete: a secret with an ordinary name and an
//! ordinary value is not recognized.

mod files;
mod names;
mod values;

pub use files::{FILE_SECRET_SPAN, secret_in_file};
pub use names::{is_secret_name, is_secret_variable};
pub use values::{SHORTEST_TOKEN, has_secret, is_token};

/// Why a variable counts as a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// Its name is that of a secret.
    Name,
    /// Its value is or contains a secret.
    Value,
}

/// Returns why a variable counts as a credential, or `None` if it does not.
#[must_use]
pub fn sign_of_credential(name: &str, value: &str) -> Option<Sign> {
    if names::is_harmless_variable(name) || values::is_switch(value) {
        return None;
    }
    if is_secret_variable(name) && !(names::is_limit(name) && values::is_number(value)) {
        return Some(Sign::Name);
    }
    has_secret(value).then_some(Sign::Value)
}
