//! Types and calls generated from `wit/`. Only this track uses them.
#![allow(
    unreachable_pub,
    unused_qualifications,
    clippy::all,
    clippy::restriction,
    reason = "generated from the WIT"
)]

wasmtime::component::bindgen!({ path: "../../wit", world: "full-policy" });
