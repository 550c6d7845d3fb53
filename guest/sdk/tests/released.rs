//! Policies that were written for released versions of this crate go on compiling, and answer as they did.

#[path = "../../../tests/golden/0.1.0/sdk.rs"]
mod v0_1_0;
