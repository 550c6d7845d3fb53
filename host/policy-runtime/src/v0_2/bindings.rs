//! Types and calls generated from `wit/0.2`. Only this track uses them.
#![allow(
    unreachable_pub,
    unused_qualifications,
    clippy::all,
    clippy::restriction,
    reason = "generated from the WIT"
)]

wasmtime::component::bindgen!({ path: "../../wit/0.2", world: "full-policy" });
