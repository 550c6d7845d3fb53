//! A policy as its author has it: the folder, its source, the component that is built.

pub(crate) mod build;
pub(crate) mod component;
mod confined_dir;
pub(crate) mod create;
pub(crate) mod edits;
mod folder;
mod inert_wasi;
mod source;
mod templates;
mod toolchain;
