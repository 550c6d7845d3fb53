//! Policies written for released versions of this crate still compile, and give the same answers.

#[path = "../../../tests/golden/0.1.0/sdk.rs"]
mod v0_1_0;
