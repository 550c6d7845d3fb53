//! For policy authors: the contract in Rust.
