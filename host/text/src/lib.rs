//! Foreign text: escaping before users see it, and detection of secrets.
//!
//! Foreign text is all text that the program did not write itself: paths, hosts, arguments, error output of commands,
//! rule ids and reasons of policies, metadata of packs, answers of registries, texts in settings. It can steer a
//! terminal, hide characters or reorder them.
//!
//! | function | for |
//! |---|---|
//! | [`escape`] | one line in a message or a table, shortened |
//! | [`escape_subject`], [`escape_confusables`], [`escape_script`] | a text that the user decides about |
//! | [`escape_message`] | a whole message, at the place where it is written to a terminal |
//! | [`escape_json`] | JSON text, which keeps its meaning |
//!
//! All of them agree on which characters are unsafe ([`is_unsafe`]). Escaping is idempotent. A message is escaped when
//! it is composed, to limit its length and to escape confusables, and again when it is written, so that no call site
//! can be forgotten.
//!
//! [`counted`] formats counts, [`tilde`] paths in the home directory, [`utc`] times. [`secrets`] recognizes credentials by name and by value, for the log and for the environment of commands.
//!
//! This crate is pure and does not know what the texts mean.
//!
//! ```
//! assert_eq!(portcullis_text::escape("a\u{202e}b\n"), "a\\u{202e}b\\n");
//! assert!(portcullis_text::secrets::is_secret_name("SSHPASS"));
//! ```

mod confusables;
mod counted;
mod escape;
mod home;
pub mod secrets;
mod utc;

pub use confusables::{escape_confusables, escape_confusables_in_subject, escape_script};
pub use counted::counted;
pub use escape::{escape, escape_json, escape_message, escape_subject, is_unsafe};
pub use home::tilde;
pub use utc::utc;
