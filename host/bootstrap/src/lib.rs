//! What the program needs before it can do anything: its environment, settings and policies, and sessions made of them.
//!
//! Environment → settings → policies → session. The command line and the server both start here, and so does whatever
//! only asks what would be decided. This crate wires; it contains no rules, reads no arguments and prints no results.
//!
//! Reading order: [`process_env`] (the only reader of the environment), [`loaded_settings`], [`policies`],
//! [`session`], [`control`] (the session's socket for other terminals).

pub mod process_env;
pub mod streams;

pub mod loaded_settings;
pub mod toolchains;
pub mod trust_files;
pub mod untrusted_paths;

pub mod manifest;
pub mod policies;
pub mod policy_source;
mod setting_provenance;
mod shipped;

pub mod aws_keys;
#[cfg(target_os = "linux")]
pub mod branches;
pub mod changes;
pub mod confiner;
pub mod context_json;
pub mod control;
mod credential_offers;
pub mod credential_services;
pub mod credential_test;
pub mod credentials;
pub mod exports;
mod git_client;
pub mod git_config;
mod git_remote;
mod git_settings;
pub mod grant_keeper;
pub mod home;
pub mod in_force;
pub mod journal;
mod outside_signing;
mod outside_ssh;
mod own_programs;
mod reservations;
pub mod running_sessions;
pub mod scratch;
pub mod session;
pub mod teams;
#[cfg(target_os = "linux")]
pub mod undo;
