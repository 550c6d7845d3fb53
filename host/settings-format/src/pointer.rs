//! JSON pointers (RFC 6901).

/// Appends a key to a JSON pointer (RFC 6901).
pub fn step(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
}
