//! The verbs about policies and their log: `policy`, `check`, `explain` and `audit`.
//!
//! Owns what these verbs print, as text and as JSON, and which exit code each outcome has. The work behind them is in
//! `portcullis-policy-tools`, `portcullis-audit` and `portcullis-export`.
//!
//! Must never know: the other verbs, and that the program can be anything but a command line. `portcullis-cli` calls
//! these verbs.

pub mod audit;
pub mod check;
pub mod explain;
pub mod policy;
