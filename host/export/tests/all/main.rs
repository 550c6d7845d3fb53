//! The exporter with real collectors on loopback.
#![cfg(unix)]
#![expect(clippy::expect_used, clippy::unwrap_used, clippy::indexing_slicing, reason = "these are tests")]

mod collector;
mod http;
mod logs;
mod restarts;
mod streams;
mod world;
