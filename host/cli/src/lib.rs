//! The portcullis command.
