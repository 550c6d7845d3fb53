//! Policies put through the runtime: hand-made ones that misbehave in one way
//! each, and those that the toolchains build.

mod cache;
mod cases;
mod guests;
mod hand_made;
mod hostile;
mod loading;
mod request;
mod wasi;
