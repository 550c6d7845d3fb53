//! The limit for all globs together.

use portcullis_settings_format::ConfigError;

use crate::found::FoundSettings;
use crate::pattern::{GLOB_CHARACTERS, pattern_error};

/// Limit for all globs of all files together, in bytes. Some globs take 25 ms per KiB to compile.
const GLOBS_MAX: usize = 64 << 10;

/// Refuses globs that would take too long to compile.
pub(crate) fn globs_are_few(found: &FoundSettings) -> Result<(), ConfigError> {
    let filesystem = &found.settings.filesystem;
    let own = [
        &filesystem.deny_read,
        &filesystem.allow_read,
        &filesystem.allow_write,
        &filesystem.deny_write,
        &found.settings.credentials.files,
    ];
    let layers = found.layers.iter().flat_map(|layer| [&layer.deny_read, &layer.deny_write]);
    let mut length: usize = 0;
    for entry in own.into_iter().chain(layers).flatten() {
        let is_glob = !entry.value.literal && entry.value.text.contains(GLOB_CHARACTERS);
        length = length.saturating_add(if is_glob { entry.value.text.len() } else { 0 });
        if length > GLOBS_MAX {
            let reason = "with it all globs together are longer than 64 KiB; name directories in their place";
            return Err(pattern_error(&entry.origin, reason));
        }
    }
    Ok(())
}
