//! One module for each verb.

pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod pi;
pub(crate) mod pi_extension;
pub(crate) mod run;
