//! Asks the user: open questions, their text, and remembered answers. No other crate of the host asks.
//!
//! Terms: a [`Question`] is about a request on which a decision asks; a [`Prompter`] shows it; its [`Answer`] is one of
//! the [`Choice`]s, which can be remembered: for the session in [`RememberedAnswers`], for longer by a [`GrantStore`].
//! [`OpenQuestions`] is the one store of unanswered questions. Calls and connections of a command that wait for the same
//! answer share a question: see [`CommandQuestions`] and [`Connections`].
//!
//! Must never know: how a decision is made, how an answer is enforced, the clock, files.

mod cancel;
mod command_questions;
mod connections;
mod grant_store;
mod open_questions;
pub mod question;
mod remembered_answers;
mod special_addresses;

pub use cancel::Cancel;
pub use command_questions::{Access, Answered, CommandQuestions, Known, Subject, only_once};
pub use connections::{Connections, HostAndPort, Identity, place};
pub use grant_store::{GrantPlace, GrantStore, NoGrantStore};
pub use open_questions::{
    Answer, Answerer, Choice, ChoiceKind, NoUser, OpenQuestions, Prompter, Question, Refusal, SESSION,
    refused_because,
};
pub use remembered_answers::{Denied, Kept, Remembered, RememberedAnswers};
