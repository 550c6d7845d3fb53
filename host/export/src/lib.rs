//! Sends the records of the audit log to collectors: OTLP, OCSF, syslog and journald.
//!
//! The log is the spool. It is on disk before an action happens, so an exporter only remembers how far a collector has
//! received it: the [`Cursor`]. Nothing is copied, and nothing here is called by a decision: an exporter is a process
//! of its own.
//!
//! # Promises
//! - **At least once, in the order of each log.** The cursor moves after the collector has accepted a batch. A batch
//!   whose answer was lost is sent again, and its records say so ([`Event::repeated`]). Each record has an id that is
//!   the same every time ([`Event::id`]).
//! - **Bounded.** A batch has at most [`BATCH_EVENTS`] records and [`BATCH_BYTES`] bytes; there is one in memory.
//! - **Nothing is left out without a word.** A line that cannot be read, a log that was removed before it was sent, and
//!   a record that a collector refuses for good are events or counts of their own.
//!
//! # Never
//! This crate writes no log, knows no settings of the sandbox, and masks nothing: what it sends was masked when it was
//! logged.

mod address;
mod answer;
mod channel;
mod cursor;
mod destination;
mod event;
mod exporter;
mod format;
mod http;
mod source;
mod stream;

pub use address::Address;
pub use answer::SendError;
pub use cursor::{Cursor, CursorError, Failure};
pub use destination::{ConfigError, Destination, HeaderValue, parse};
pub use event::{Decider, Event, Kind};
pub use exporter::{ExportError, Exporter, Step};
pub use format::Format;
pub use source::{BATCH_BYTES, BATCH_EVENTS, Describe};
