//! Paths that other paths lie below, and what a move makes of them.
//!
//! The keys of a map are paths, or their texts where many are looked up: comparing texts costs a fraction.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The beginning of the names that an undo gives files for a moment.
pub(crate) const TEMPORARY: &str = ".portcullis-undo-";

/// Returns true if an undo gives files this name for a moment.
pub(crate) fn is_temporary(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_bytes().starts_with(TEMPORARY.as_bytes()))
}

/// The name of the directory in which git keeps objects.
pub(crate) const OBJECTS: &str = "objects";

/// Returns true if git may keep the objects of a repository in the directory of a path.
pub(crate) fn is_of_objects(path: &Path) -> bool {
    path.ancestors().skip(1).take(2).any(|above| above.ends_with(OBJECTS))
}

/// Returns the keys of a map at and below `top`.
pub(crate) fn below<K, T>(map: &BTreeMap<K, T>, top: &Path) -> Vec<K>
where
    K: Ord + Clone + From<PathBuf> + AsRef<Path>,
{
    let first = top.as_os_str().as_bytes();
    let keys = map.range(K::from(top.to_owned())..).map(|(path, _)| path);
    // Among texts, names that only begin like the last one of `top` lie in between.
    let keys = keys.take_while(|path| path.as_ref().as_os_str().as_bytes().starts_with(first));
    keys.filter(|path| path.as_ref().starts_with(top)).cloned().collect()
}

/// Returns true if a path is `top` or below it. Comparing bytes costs a fraction of comparing names, and undoing many
/// moves compares each path with all of them.
pub(crate) fn is_below(path: &Path, top: &Path) -> bool {
    let (path, top) = (path.as_os_str().as_bytes(), top.as_os_str().as_bytes());
    let rest = path.strip_prefix(top);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/") || top.ends_with(b"/"))
}

/// Returns the new path of `path` after `from` was moved to `to`; `None` if the move does not change it.
pub(crate) fn renamed(path: &Path, from: &Path, to: &Path) -> Option<PathBuf> {
    if !is_below(path, from) {
        return None;
    }
    let rest = path.strip_prefix(from).ok()?;
    // Joining nothing would add a slash.
    Some(if rest.as_os_str().is_empty() { to.to_owned() } else { to.join(rest) })
}

/// Returns what a path is called after a move or an exchange; `None` if it is called the same.
pub(crate) fn renamed_by(path: &Path, from: &Path, to: &Path, exchange: bool) -> Option<PathBuf> {
    let back = || exchange.then(|| renamed(path, to, from)).flatten();
    renamed(path, from, to).or_else(back)
}

/// Returns what a path is called after a move or an exchange.
pub(crate) fn follow(path: &Path, from: &Path, to: &Path, exchange: bool) -> PathBuf {
    renamed_by(path, from, to, exchange).unwrap_or_else(|| path.to_owned())
}

/// Renames the keys of a map after a move or an exchange.
pub(crate) fn moved<K, T>(map: &mut BTreeMap<K, T>, from: &Path, to: &Path, exchange: bool)
where
    K: Ord + Clone + From<PathBuf> + AsRef<Path>,
{
    let mut take = |top: &Path| {
        let keys = below(map, top);
        keys.into_iter().filter_map(|key| map.remove(&key).map(|value| (key, value))).collect::<Vec<_>>()
    };
    let (gone, came) = (take(from), take(to));
    let back = if exchange { came } else { Vec::new() };
    for (path, value) in gone {
        map.extend(renamed(path.as_ref(), from, to).map(|path| (path.into(), value)));
    }
    for (path, value) in back {
        map.extend(renamed(path.as_ref(), to, from).map(|path| (path.into(), value)));
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    #[test]
    fn a_path_is_below_whole_names() {
        let below = |path: &str, top: &str| is_below(Path::new(path), Path::new(top));
        assert!(below("/a", "/a") && below("/a/b", "/a") && below("/a/b", "/"));
        assert!(!below("/ab", "/a") && !below("/a", "/a/b") && !below("/b/a", "/a"));
    }

    #[test]
    fn a_move_takes_along_what_lies_below_and_nothing_else() {
        let paths = ["/a", "/a-b", "/a-b/c", "/a/", "/a/b", "/a/b/c", "/ab", "/b"];
        let mut texts: BTreeMap<OsString, ()> = paths.iter().map(|path| ((*path).into(), ())).collect();
        let mut others: BTreeMap<PathBuf, ()> = paths.iter().map(|path| ((*path).into(), ())).collect();
        assert_eq!(below(&texts, Path::new("/a")), ["/a", "/a/", "/a/b", "/a/b/c"]);
        moved(&mut texts, Path::new("/a"), Path::new("/x"), false);
        moved(&mut others, Path::new("/a"), Path::new("/x"), false);
        let left = ["/a-b", "/a-b/c", "/ab", "/b", "/x", "/x/b", "/x/b/c"];
        assert_eq!(texts.into_keys().collect::<Vec<_>>(), left);
        let mut others: Vec<_> = others.into_keys().map(PathBuf::into_os_string).collect();
        others.sort();
        assert_eq!(others, left);
    }
}
