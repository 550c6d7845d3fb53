//! Links of the user at sensitive names, and their targets.

use std::path::{Path, PathBuf};

use portcullis_exec_surface::{
    Change, Class, ProtectedName, Site, UserLink, class, is_linked, protected_name,
};

fn link(name: &str, target: &str) -> UserLink {
    UserLink { name: name.into(), target: target.into() }
}

/// Asks with these links in the project `/w`, in which only repositories exist.
fn with<T>(links: &[UserLink], ask: impl FnOnce(&Site<'_>) -> T) -> T {
    let (roots, homes) = ([PathBuf::from("/w"), "/home/u".into()], [PathBuf::from("/home/u")]);
    let exists = |path: &Path| path == Path::new("/w/.git");
    ask(&Site { exists: &exists, links, homes: &homes, ..Site::without_files(&roots[0], &roots) })
}

#[test]
fn links_matter_that_lead_from_a_known_name_to_the_project() {
    for (name, target, matters) in [
        ("/w/.envrc", "/w/env/rc", true),
        ("/w/.vscode", "/w/tools/editor", true),
        ("/w/.cargo", "/w/tools/cargo", true),
        ("/w/a/CLAUDE.md", "/w/a/guide.md", true),
        ("/w/.git/hooks/pre-commit", "/w/scripts/check", true),
        ("/home/u/.foorc", "/home/u/dotfiles/foorc", true),
        ("/w/.envrc", "/elsewhere/rc", false),
        ("/w/.vscode/self", "/w", false),
        ("/w/.foorc", "/w/etc/foorc", false),
        ("/w/src", "/w/source", false),
        ("/w/modules/x", "/w/y", false),
        ("/w/node_modules/x/.envrc", "/w/y", false),
    ] {
        assert_eq!(with(&[], |site| link(name, target).matters(site)), matters, "{name}");
    }
}

#[test]
fn what_a_link_leads_to_is_protected_as_its_name() {
    let links = [
        link("/w/.envrc", "/w/env/rc"),
        link("/w/.vscode", "/w/tools/editor"),
        link("/w/.cargo", "/w/tools/cargo"),
        link("/w/.pi/extensions", "/w/tools/extensions"),
        link("/home/u/.config/foo", "/home/u/dotfiles/foo"),
    ];
    let ruled = |path: &str, change| match with(&links, |site| class(Path::new(path), change, site)) {
        Class::Asked(rule) => rule.id,
        Class::Denied(_) => "denied",
        Class::Walk => "walk",
        Class::Free => "",
        Class::Completes(_) | Class::Judged(..) => "other",
    };
    for (path, expected) in [
        ("/w/env/rc", "host.tool-files"),
        ("/w/tools/editor/tasks.json", "host.editor-files"),
        ("/w/tools/cargo/config.toml", "host.tool-files"),
        ("/w/tools/cargo/other", ""),
        ("/w/tools/extensions/x.ts", "denied"),
        ("/home/u/dotfiles/foo/x", "host.home-files"),
        ("/w/env/other", ""),
        ("/w/tools/x", ""),
    ] {
        for change in [Change::Write, Change::Install, Change::Link] {
            assert_eq!(ruled(path, change), expected, "{change:?} {path}");
        }
    }
    // A directory that moves around it, or to its place.
    for (path, change, expected) in [
        ("/w/env", Change::MoveTree, "walk"),
        ("/w/env", Change::Symlink, "host.tool-files"),
        ("/w/env", Change::MakeDirectory, ""),
        ("/w/env", Change::MoveAway, ""),
        ("/w/env/rc", Change::Symlink, "host.tool-files"),
        ("/w/env/rc", Change::Remove, ""),
        ("/w/tools/editor", Change::MoveTree, "host.editor-files"),
        ("/w/tools", Change::MoveTree, "walk"),
        ("/w/tools/cargo", Change::MoveTree, "walk"),
        ("/w/other", Change::MoveTree, ""),
    ] {
        assert_eq!(ruled(path, change), expected, "{change:?} {path}");
    }
}

#[test]
fn a_question_is_about_the_place_that_a_link_leads_to() {
    let links =
        [link("/w/.envrc", "/w/env/rc"), link("/w/.vscode", "/w/tools/editor"), link("/w/.cargo", "/w/t/c")];
    let place = |path: &str| with(&links, |site| protected_name(Path::new(path), site));
    let name = |holder: &str, name: &str| Some(ProtectedName { holder: holder.into(), name: name.into() });
    assert_eq!(place("/w/env/rc"), name("/w/env", "/w/env/rc"));
    assert_eq!(place("/w/tools/editor/a/b"), name("/w/tools", "/w/tools/editor"));
    assert_eq!(place("/w/t/c/config.toml"), name("/w/t/c", "/w/t/c/config.toml"));
    assert_eq!(place("/w/t/c/other"), None);
    let linked = |path: &str| with(&links, |site| is_linked(Path::new(path), site));
    assert!(linked("/w/tools/editor/a") && linked("/w/env/rc") && !linked("/w/env"));
}
