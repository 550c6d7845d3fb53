//! One running session: the single path from a request to a permit.
