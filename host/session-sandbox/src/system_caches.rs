//! Caches outside the project whose programs work without them.
//!
//! A program that root runs tries to write them; for an ordinary user the kernel refuses most of them. No question is
//! worth it: the sandbox refuses, the program continues, and the log says so. A setting that allows the path opens it.

use std::path::Path;

use portcullis_decision::{Decision, Effect};

/// The reason in the log.
pub const REASON: &str = "programs work without this cache, so it is refused without a question";

/// Directories of the system.
const DIRECTORIES: [&str; 3] = [
    // Fontconfig uses `~/.cache/fontconfig` instead.
    "/var/cache/fontconfig",
    // The index of manual pages is searched without a cache.
    "/var/cache/man",
    // Yarn uses a directory in `/tmp` instead.
    "/usr/local/share/.cache",
];

/// Names of directories that Python creates beside its sources; it compiles in memory instead.
const NAMES: [&str; 1] = ["__pycache__"];

/// Returns true if only the base rules ask about a write to `path`, and `path` is in such a cache.
pub fn is_refused(decision: &Decision, path: &Path) -> bool {
    decision.effect() == Effect::Ask && decision.cause().rule.starts_with("base.") && is_cache(path)
}

fn is_cache(path: &Path) -> bool {
    let has_name = path.components().any(|part| NAMES.iter().any(|name| part.as_os_str() == *name));
    has_name || DIRECTORIES.iter().any(|directory| path.starts_with(directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_are_whole_names() {
        for cache in
            ["/usr/lib/python3/re/__pycache__", "/opt/x/__pycache__/a.pyc", "/var/cache/fontconfig/a"]
        {
            assert!(is_cache(Path::new(cache)), "{cache}");
        }
        for other in ["/usr/lib/python3/__pycache__x", "/var/cache/fontconfig2/a", "/var/lib/gems"] {
            assert!(!is_cache(Path::new(other)), "{other}");
        }
    }
}
