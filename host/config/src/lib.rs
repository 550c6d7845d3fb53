//! The settings file: schema, discovery, validation.
