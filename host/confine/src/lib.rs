//! Runs commands in a box that the kernel enforces.
