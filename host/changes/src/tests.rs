//! Undoing, on real directories.

mod agent;
mod cases;
mod interleaved;
mod killed;
mod tree;
