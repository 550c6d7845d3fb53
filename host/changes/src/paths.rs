//! Paths that other paths lie below, and what a move makes of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Returns the keys of a map at and below `top`.
pub(crate) fn below<T>(map: &BTreeMap<PathBuf, T>, top: &Path) -> Vec<PathBuf> {
    let keys = map.range(top.to_owned()..).map(|(path, _)| path);
    keys.take_while(|path| path.starts_with(top)).cloned().collect()
}

/// Returns what a path is called after `from` was moved to `to`; `None` if it is called the same.
pub(crate) fn renamed(path: &Path, from: &Path, to: &Path) -> Option<PathBuf> {
    let rest = path.strip_prefix(from).ok()?;
    // Joining nothing would add a slash.
    Some(if rest.as_os_str().is_empty() { to.to_owned() } else { to.join(rest) })
}

/// Returns what a path is called after a move or an exchange.
pub(crate) fn follow(path: &Path, from: &Path, to: &Path, exchange: bool) -> PathBuf {
    let there = renamed(path, from, to);
    let back = || exchange.then(|| renamed(path, to, from)).flatten();
    there.or_else(back).unwrap_or_else(|| path.to_owned())
}

/// Renames the keys of a map after a move or an exchange.
pub(crate) fn moved<T>(map: &mut BTreeMap<PathBuf, T>, from: &Path, to: &Path, exchange: bool) {
    let mut take = |top: &Path| {
        let keys = below(map, top);
        keys.into_iter().filter_map(|key| map.remove(&key).map(|value| (key, value))).collect::<Vec<_>>()
    };
    let (gone, came) = (take(from), take(to));
    let back = if exchange { came } else { Vec::new() };
    for (path, value) in gone {
        map.extend(renamed(&path, from, to).map(|path| (path, value)));
    }
    for (path, value) in back {
        map.extend(renamed(&path, to, from).map(|path| (path, value)));
    }
}
