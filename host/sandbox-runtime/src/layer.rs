//! The kernel mechanisms that make up a sandbox, one per file.

pub(crate) mod devices;
pub(crate) mod failure;
pub(crate) mod landlock;
pub(crate) mod limits;
pub(crate) mod mount_calls;
pub(crate) mod mounts;
pub(crate) mod namespaces;
pub(crate) mod network;
pub(crate) mod privileges;
pub(crate) mod processes;
pub(crate) mod seccomp;
