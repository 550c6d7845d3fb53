//! JSON pointers (RFC 6901).

/// Appends a key to a JSON pointer (RFC 6901).
pub fn step(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// Returns the place of a value as people write it: `network.allowedDomains[2]` for `/network/allowedDomains/2`.
///
/// A text that is no pointer stays as it is.
///
/// ```
/// use portcullis_settings_format::pointer::written;
/// assert_eq!(written("/filesystem/denyRead/0"), "filesystem.denyRead[0]");
/// assert_eq!(written("/~1home~1ann~1shop/presets/1"), r#"["/home/ann/shop"].presets[1]"#);
/// assert_eq!(written("the whole file"), "the whole file");
/// ```
#[must_use]
pub fn written(pointer: &str) -> String {
    let Some(steps) = pointer.strip_prefix('/') else { return pointer.to_owned() };
    steps.split('/').map(unescaped).fold(String::new(), |place, key| {
        let is_index = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_digit());
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        match place.as_str() {
            _ if is_index => format!("{place}[{key}]"),
            _ if key.is_empty() || !key.bytes().all(is_plain) => format!("{place}[\"{key}\"]"),
            "" => key,
            _ => format!("{place}.{key}"),
        }
    })
}

fn unescaped(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}
