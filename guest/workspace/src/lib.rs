//! The default policy.
