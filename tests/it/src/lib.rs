//! Everything that needs more than one crate, a real kernel, a real component or a real pi.
