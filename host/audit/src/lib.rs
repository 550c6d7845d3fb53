//! The append-only log of verdicts and outcomes.
