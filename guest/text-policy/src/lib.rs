//! For policies that are a text in a language of its own, such as Cedar and Rego.
//!
//! A request becomes one or more [`Question`]s: may this principal take this action on this resource? A script of a
//! shell becomes one question for each of its simple commands. The engine of the language answers each question, and
//! [`combine`] makes one verdict of the answers. So both languages have the same entities and attributes, which
//! `policies/cedar/portcullis.cedarschema` lists with their types.
//!
//! The crate knows no engine, and nothing of the host.

mod answer;
mod commands;
mod config;
mod entity;
mod files;
mod place;
mod question;
mod rule_id;
mod trace;

pub use answer::{Answer, Effect, combine, failure};
pub use config::TextConfig;
pub use entity::Entity;
pub use place::Place;
pub use question::{Question, questions};
pub use rule_id::is_rule_id;
pub use trace::{shortened, step};

/// The rule id that stands for all rules of the text, in the description of a policy.
pub const RULES_OF_TEXT: &str = "*";
