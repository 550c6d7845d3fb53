//! Known places: the repository, project or directory around a path, which a question names.
//!
//! A known place determines the text and the choices of a question; rules are still evaluated for each path. A command
//! may create a marker that changes the place, but that widens nothing: the user reads the place in the question.

use std::path::{Path, PathBuf};

use portcullis_decision::{Base, KnownPlace, KnownPlaceKind};
use portcullis_exec_surface::table;
use portcullis_file_gate::HostDirectory;

/// Directories of the system, which are no place as a whole.
const SYSTEM: &[&str] = &[
    "/",
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/home",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/media",
    "/mnt",
    "/nix",
    "/nix/store",
    "/opt",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/snap",
    "/srv",
    "/sys",
    "/tmp",
    "/usr",
    "/usr/bin",
    "/usr/include",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/libexec",
    "/usr/local",
    "/usr/local/bin",
    "/usr/local/etc",
    "/usr/local/include",
    "/usr/local/lib",
    "/usr/local/sbin",
    "/usr/local/share",
    "/usr/local/src",
    "/usr/sbin",
    "/usr/share",
    "/usr/src",
    "/var",
    "/var/cache",
    "/var/lib",
    "/var/local",
    "/var/log",
    "/var/mail",
    "/var/opt",
    "/var/spool",
    "/var/tmp",
    "/var/www",
];

/// The directories that cannot be a place as a whole.
pub(crate) struct Bounds<'a> {
    /// The regions that the rules know.
    pub(crate) base: &'a Base,
    /// The home directories.
    pub(crate) homes: &'a [PathBuf],
}

/// Returns the place of `path`, which is a directory or is to become one if `is_directory`.
///
/// It is the nearest repository around the path, or else the nearest project, or else the directory itself. An argument
/// of the program, one of `named`, is used instead if it contains that directory. Returns `None` for a home, a whole
/// system directory, or a directory around these.
pub(crate) fn place_of(
    bounds: &Bounds<'_>,
    path: &Path,
    is_directory: bool,
    named: &[PathBuf],
) -> Option<KnownPlace> {
    let start = start(path, is_directory)?;
    let around = || start.ancestors().take_while(|top| bounds.may_hold(top));
    let root = |is_root: fn(&HostDirectory) -> bool, kind| {
        let found = around().find(|top| HostDirectory::open(top).is_some_and(|open| is_root(&open)));
        found.map(|top| (top, kind))
    };
    let found = root(is_repository, KnownPlaceKind::Repository);
    let found = found.or_else(|| root(is_project, KnownPlaceKind::Project));
    let found = found.or_else(|| around().next().map(|top| (top, KnownPlaceKind::Directory)));
    let is_given = |top: &&Path| named.iter().any(|named| named == *top);
    let given = around().filter(is_given).last().map(|top| (top, KnownPlaceKind::Directory));
    let (top, kind) = match (found, given) {
        (Some((top, _)), Some(given)) if top != given.0 && top.starts_with(given.0) => given,
        // An argument inside a plain directory.
        (Some((top, KnownPlaceKind::Directory)), Some(given)) if given.0.starts_with(top) => given,
        (Some(found), _) => found,
        (None, _) => return None,
    };
    let wider = top.parent().filter(|wider| bounds.may_hold(wider)).map(Path::to_owned);
    Some(KnownPlace { top: top.to_owned(), kind, wider })
}

/// Returns the directory where the search begins: paths in `.git` belong to the directory around it.
fn start(path: &Path, is_directory: bool) -> Option<&Path> {
    let inner = if is_directory { path } else { path.parent()? };
    let outermost = inner.ancestors().filter(|top| top.file_name().is_some_and(is_git)).last();
    outermost.map_or(Some(inner), Path::parent)
}

fn is_git(name: &std::ffi::OsStr) -> bool {
    name.eq_ignore_ascii_case(".git")
}

fn is_repository(directory: &HostDirectory) -> bool {
    let is_bare =
        || directory.has("HEAD") && directory.has_directory("objects") && directory.has_directory("refs");
    [".git", ".hg", ".jj", ".svn"].iter().any(|name| directory.has(name)) || is_bare()
}

fn is_project(directory: &HostDirectory) -> bool {
    table::projects().iter().any(|entry| directory.has(entry.name))
}

impl Bounds<'_> {
    /// Returns true if `top` can be a place as a whole.
    fn may_hold(&self, top: &Path) -> bool {
        let regions = self.base.closed.iter().chain(&self.base.workspace).chain(self.base.own_tops());
        let mut kept = regions.chain(self.homes);
        !SYSTEM.iter().any(|system| top == Path::new(system)) && !kept.any(|kept| kept.starts_with(top))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree with homes, repositories and projects.
    fn tree() -> (tempfile::TempDir, PathBuf, Base, Vec<PathBuf>) {
        let root = tempfile::tempdir().unwrap();
        let top = root.path().canonicalize().unwrap();
        for directory in [
            "home/u/work/project",
            "home/u/work/lib/.git/objects",
            "home/u/work/lib/src",
            "srv/bare.git/objects",
            "srv/bare.git/refs",
            "srv/plain/a/b",
            "srv/crate/src/deep",
        ] {
            std::fs::create_dir_all(top.join(directory)).unwrap();
        }
        for file in ["srv/bare.git/HEAD", "srv/crate/Cargo.toml", "home/u/.git"] {
            std::fs::write(top.join(file), "").unwrap();
        }
        let base = Base {
            workspace: vec![top.join("home/u/work/project")],
            temp: "/tmp".into(),
            closed: vec![top.join("home")],
            ..Base::default()
        };
        let homes = vec![top.join("home/u")];
        (root, top, base, homes)
    }

    #[test]
    fn a_place_is_what_a_person_knows() {
        let (_root, top, base, homes) = tree();
        // The temporary directory is not the session's here.
        let base = Base { temp: "/nowhere".into(), ..base };
        let bounds = Bounds { base: &base, homes: &homes };
        let place = |path: &str, is_directory, named: &[&str]| {
            let named: Vec<PathBuf> = named.iter().map(|named| top.join(named)).collect();
            let found = place_of(&bounds, &top.join(path), is_directory, &named)?;
            Some((found.top.strip_prefix(&top).unwrap().to_str().unwrap().to_owned(), found.kind))
        };
        use KnownPlaceKind::{Directory, Project, Repository};
        for (path, is_directory, named, expected) in [
            (
                "srv/bare.git/objects/tmp_objdir-incoming-x/a",
                false,
                &[][..],
                Some(("srv/bare.git", Repository)),
            ),
            ("home/u/work/lib/src/a", false, &[], Some(("home/u/work/lib", Repository))),
            ("home/u/work/lib/.git/objects/x", true, &[], Some(("home/u/work/lib", Repository))),
            ("home/u/work/lib/.git", true, &[], Some(("home/u/work/lib", Repository))),
            ("home/u/work/new/.git/objects", true, &[], Some(("home/u/work/new", Directory))),
            ("home/u/work/new", true, &[], Some(("home/u/work/new", Directory))),
            ("srv/crate/src/deep/x", false, &[], Some(("srv/crate", Project))),
            ("srv/plain/a/b/c", false, &[], Some(("srv/plain/a/b", Directory))),
            // Arguments of a program.
            ("srv/plain/a/b/c", false, &["srv/plain/a"], Some(("srv/plain/a", Directory))),
            ("srv/bare.git/refs/x", false, &["srv/bare.git/refs"], Some(("srv/bare.git", Repository))),
            ("srv/bare.git/refs/x", false, &["srv"], Some(("srv", Directory))),
            // Never a home, a region or a directory around one, whatever a marker or an argument says.
            ("home/u/notes", false, &["home/u", "home", ""], None),
            ("home/u/work/a", false, &[], None),
            ("home/u/docs/a", false, &["home/u"], Some(("home/u/docs", Directory))),
        ] {
            let expected = expected.map(|(path, kind)| (path.to_owned(), kind));
            assert_eq!(place(path, is_directory, named), expected, "{path} {named:?}");
        }
        let bounds = Bounds { base: &Base::default(), homes: &[] };
        assert_eq!(place_of(&bounds, Path::new("/etc/x"), false, &["/etc".into(), "/".into()]), None);
    }

    #[test]
    fn a_link_is_no_place() {
        let (_root, top, base, homes) = tree();
        let base = Base { temp: "/nowhere".into(), ..base };
        std::os::unix::fs::symlink("bare.git", top.join("srv/link")).unwrap();
        let bounds = Bounds { base: &base, homes: &homes };
        let found = place_of(&bounds, &top.join("srv/link/objects/x"), false, &[]).unwrap();
        assert_eq!((found.top, found.kind), (top.join("srv/link/objects"), KnownPlaceKind::Directory));
    }
}
