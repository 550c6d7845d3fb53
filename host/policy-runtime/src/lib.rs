//! Loads and calls policy components.
