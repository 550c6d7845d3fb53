//! Benchmarks: every speed claim is a ratio printed here.
