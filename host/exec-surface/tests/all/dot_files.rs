//! Dot files of projects and homes, and names by their position in the project, whatever the roots are.

use std::path::{Path, PathBuf};

use portcullis_exec_surface::table;
use portcullis_exec_surface::{Change, Class, Site, class, protected_name};

/// Returns the id of the rule that asks about or refuses a change; empty if it is free.
fn ruled(path: &str, change: Change, site: &Site<'_>) -> &'static str {
    match class(Path::new(path), change, site) {
        Class::Asked(rule) | Class::Denied(rule) => rule.id,
        Class::Free | Class::Walk | Class::Completes(_) | Class::Judged(..) => "",
    }
}

const NEW: &str = "host.new-dot-files";
const HOME: &str = "host.home-files";

#[test]
fn a_new_dot_file_at_the_root_of_a_project_asks() {
    let roots = [PathBuf::from("/w")];
    let there = ["/w/.old", "/w/sub/package.json", "/w/repo/.git"];
    let exists = |path: &Path| there.iter().any(|known| path == Path::new(known));
    let was_there = |path: &Path| path == Path::new("/w/.gone");
    let site = Site { exists: &exists, was_there: &was_there, ..Site::without_files(&roots[0], &roots) };
    for (path, expected) in [
        ("/w/.foorc", NEW),
        ("/w/.FOORC", NEW),
        ("/w/.foo/config/x", NEW),
        ("/w/.env", NEW),
        ("/w/.prettierrc.json", NEW),
        ("/w/.yarn/other", NEW),
        ("/w/sub/.foorc", NEW),
        ("/w/repo/.foorc", NEW),
        ("/w/deep/repo/.foorc", ""),
        ("/w/.old", ""),
        ("/w/.gone", ""),
        ("/w/.gitignore", ""),
        ("/w/.tmpAbc/.foorc", ""),
        ("/w/.yarn/cache/x", ""),
        ("/w/.venv/lib/.foorc", ""),
        ("/w/node_modules/x/.foorc", ""),
        ("/w/src/.note", ""),
        ("/w/foorc", ""),
        // A rule that lists the name asks alone.
        ("/w/.envrc", "host.tool-files"),
        ("/w/x.code-workspace", "host.editor-files"),
        ("/w/a/pnpm-workspace.yaml", "host.tool-files"),
        ("/elsewhere/.foorc", ""),
    ] {
        for change in [Change::Write, Change::Install] {
            assert_eq!(ruled(path, change, &site), expected, "{change:?} {path}");
        }
    }
    for change in [Change::Symlink, Change::MoveTree, Change::Special] {
        assert_eq!(ruled("/w/.old", change, &site), NEW, "{change:?}");
    }
    for change in [Change::MakeDirectory, Change::Remove, Change::MoveAway, Change::Metadata, Change::Link] {
        assert_eq!(ruled("/w/.foorc", change, &site), "", "{change:?}");
    }
}

#[test]
fn in_a_home_every_dot_name_asks_there_or_not() {
    let roots = [PathBuf::from("/home/u")];
    let homes = [PathBuf::from("/home/u")];
    let exists = |path: &Path| path != Path::new("/home/u/src/p/.foorc");
    let site = Site { homes: &homes, exists: &exists, ..Site::without_files(&roots[0], &roots) };
    for entry in table::home() {
        for below in ["", "/x/y"] {
            let path = format!("/home/u/{}{below}", entry.name);
            assert!(!ruled(&path, Change::Write, &site).is_empty(), "{path}");
        }
    }
    for (path, expected) in [
        ("/home/u/.whatever", HOME),
        ("/home/u/.cache/x", HOME),
        ("/home/u/bin/ls", HOME),
        ("/home/u/node_modules/x/index.js", HOME),
        ("/home/u/.cache/thumbnails/x", ""),
        ("/home/u/.gitignore", ""),
        ("/home/u/notes.txt", ""),
        ("/home/u/src/p/.foorc", NEW),
        ("/home/u/src/p/.there", ""),
    ] {
        assert_eq!(ruled(path, Change::Write, &site), expected, "{path}");
    }
    // If the project is elsewhere, a writable home counts all the same.
    let roots = [PathBuf::from("/w"), PathBuf::from("/home")];
    let site = Site { roots: &roots, workspace: Path::new("/w"), ..site };
    assert_eq!(ruled("/home/u/.whatever", Change::Write, &site), HOME);
}

#[test]
fn names_count_at_their_place_in_the_project_whatever_the_roots_are() {
    let workspace = Path::new("/w");
    let lists: [&[&str]; 5] =
        [&["/w"], &["/w/.pi"], &["/w", "/w/.pi"], &["/w/.pi/skills", "/w/.github"], &["/w/.cargo", "/w/src"]];
    for list in lists {
        let roots: Vec<PathBuf> = list.iter().map(PathBuf::from).collect();
        let site = Site::without_files(workspace, &roots);
        for (path, expected) in [
            ("/w/.pi/skills/SKILL.md", "host.agent-files"),
            ("/w/.pi/settings.json", "host.project-agent-settings"),
            ("/w/.github/workflows/x.yml", "host.ci-files"),
            ("/w/.cargo/config.toml", "host.tool-files"),
            ("/w/src/.vscode/x", "host.editor-files"),
            ("/w/src/x", ""),
        ] {
            assert_eq!(ruled(path, Change::Write, &site), expected, "{path} {list:?}");
        }
    }
    // Outside of the project the outermost root counts: a directory that the user has opened is not protected by its
    // own name.
    let roots = ["/w", "/h/.claude", "/h/.claude/plans", "/s", "/s/.vscode"].map(PathBuf::from);
    let site = Site::without_files(workspace, &roots);
    assert_eq!(ruled("/h/.claude/plans/x", Change::Write, &site), "");
    assert_eq!(ruled("/s/.vscode/x", Change::Write, &site), "host.editor-files");
}

#[test]
fn a_project_below_a_protected_name_is_not_protected_by_it() {
    let roots = [PathBuf::from("/h/.codex/worktrees/p"), PathBuf::from("/h")];
    let site = Site::without_files(&roots[0], &roots);
    assert_eq!(ruled("/h/.codex/worktrees/p/src/x", Change::Write, &site), "");
    assert_eq!(ruled("/h/.codex/config.toml", Change::Write, &site), "host.agent-files");
}

#[test]
fn a_question_is_about_the_outermost_name() {
    let roots = [PathBuf::from("/w")];
    let site = Site::without_files(&roots[0], &roots);
    for (path, expected) in [
        ("/w/.vscode/a/.vscode/b", Some(("/w", "/w/.vscode"))),
        ("/w/a/.VSCODE/x", Some(("/w/a", "/w/a/.VSCODE"))),
        // A command that creates `.github` has not created the project.
        ("/w/.github/workflows/x", Some(("/w", "/w/.github/workflows"))),
        ("/w/.foo/a/b", Some(("/w", "/w/.foo"))),
        ("/w/src/x", None),
    ] {
        let found = protected_name(Path::new(path), &site);
        let expected = expected.map(|(holder, name)| (PathBuf::from(holder), PathBuf::from(name)));
        assert_eq!(found.map(|found| (found.holder, found.name)), expected, "{path}");
    }
}
