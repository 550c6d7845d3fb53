//! Carries out file operations on the descriptor that was judged.
