//! Names that the user's other programs execute: what the broker of Linux refuses, asks about or judges, the profile
//! refuses.

use std::path::{Path, PathBuf};

use portcullis_decision::{Base, RuleSet};
use portcullis_exec_surface::{Change, Class, NEW_DOT_FILES, RULES, Rule, Site, class, class_under, table};
use portcullis_profile_model::Evaluator;
use portcullis_seatbelt::{Wanted, compile};

use crate::generator::Random;
use crate::kit::paths;

fn rules() -> RuleSet {
    let base = Base { workspace: paths(&["/w"]), closed: paths(&["/home"]), ..Base::default() };
    RuleSet::compile(Vec::new(), base, &[])
}

fn profile(wanted: &Wanted<'_>) -> Evaluator {
    Evaluator::read(&compile(wanted).unwrap())
}

/// Returns true if a command can give content to a name that does not exist yet.
fn can_make(profile: &Evaluator, path: &Path) -> bool {
    profile.allows("file-write-create", path.to_str().unwrap())
}

/// Returns true if a command can change the content of a file.
fn can_change(profile: &Evaluator, path: &Path) -> bool {
    profile.allows("file-write-data", path.to_str().unwrap())
}

/// Every name of a rule, with those that git's files have.
fn names() -> Vec<String> {
    let listed = RULES.iter().flat_map(|rule| rule.names()).map(|name| name.replace('*', "x"));
    let git = [
        ".git",
        ".git/config",
        ".git/config.worktree",
        ".git/hooks/pre-commit",
        ".git/index",
        ".git/sharedindex.0a",
        ".git/MERGE_RR",
        ".git/info/attributes",
        ".git/objects/info/alternates",
        ".git/commondir",
        ".git/worktrees/x/gitdir",
        ".git/worktrees/x/config.worktree",
        ".git/worktrees/x/hooks/y",
        ".git/remotes/x",
        ".git/branches/x",
        ".git/rebase-merge/git-rebase-todo",
        ".git/rebase-merge/strategy_opts",
        ".git/rebase-apply/apply-opt",
        ".git/sequencer/opts",
        ".git/modules/x/config",
        ".git/modules/x/hooks/y",
        ".gitmodules",
        ".jj/repo",
        ".unknown-tool",
        ".portcullis-0123456789abcdef.tmp",
    ];
    listed.chain(git.map(str::to_owned)).collect()
}

fn site_exists(path: &Path) -> bool {
    // A submodule has the shape of a repository.
    path.starts_with("/w/.git/modules/x")
        && path.file_name().is_some_and(|name| name == "objects" || name == "refs")
}

#[test]
fn what_the_broker_holds_is_refused() {
    let rules = rules();
    let profile = profile(&Wanted::of_rules(&rules));
    let roots = paths(&["/w"]);
    let site = Site { exists: &site_exists, ..Site::without_files(&roots[0], &roots) };
    let mut held = 0;
    for name in names() {
        for spelled in [name.clone(), name.to_uppercase()] {
            for path in [
                format!("/w/{spelled}"),
                format!("/w/a/b/{spelled}"),
                format!("/w/{spelled}/below"),
                format!("/w/node_modules/a/{spelled}"),
                format!("/w/{spelled}/node_modules/a"),
                format!("/w/.cache/{spelled}"),
            ] {
                let path = PathBuf::from(path);
                let of = |holds: &dyn Fn(&'static Rule) -> bool| {
                    let changes = [Change::Write, Change::Install];
                    changes.iter().any(|change| class_under(&path, *change, &site, holds) != Class::Free)
                };
                if of(&|_| true) {
                    held += 1;
                    assert!(!can_make(&profile, &path), "{}", path.display());
                }
                // A new dot file, and a temporary file of the tools, count only while they are new.
                let is_temporary = path.to_string_lossy().to_lowercase().contains(".portcullis-");
                if !is_temporary && of(&|rule| *rule != NEW_DOT_FILES) {
                    assert!(!can_change(&profile, &path), "{}", path.display());
                }
            }
        }
    }
    assert!(held > 1_000, "{held}");
}

/// The same for random paths of such names and others.
#[test]
fn what_the_broker_holds_is_refused_in_random_places() {
    let rules = rules();
    let profile = profile(&Wanted::of_rules(&rules));
    let roots = paths(&["/w"]);
    let site = Site::without_files(&roots[0], &roots);
    let names = names();
    let parts: Vec<&str> = names.iter().flat_map(|name| name.split('/')).collect();
    let others = [
        "a",
        "src",
        "node_modules",
        ".cache",
        "x.rs",
        ".yarn",
        "cache",
        "refs",
        "logs",
        "worktrees",
        "modules",
    ];
    let count = if std::env::var_os("PORTCULLIS_EVERY_TASK").is_some() { 30_000 } else { 1_000 };
    let (mut random, mut held, mut free) = (Random(7), 0, 0);
    for _ in 0..count {
        let mut path = PathBuf::from("/w");
        for _ in 0..=random.below(4) {
            path.push(if random.in_ten(5) { random.one(&parts) } else { random.one(&others) });
        }
        if class(&path, Change::Install, &site) == Class::Free {
            free += usize::from(can_make(&profile, &path));
        } else {
            held += 1;
            assert!(!can_make(&profile, &path), "{}", path.display());
        }
    }
    assert!(held > count / 10 && free > count / 20, "{held} {free}");
}

#[test]
fn ordinary_names_are_free() {
    let rules = rules();
    let profile = profile(&Wanted::of_rules(&rules));
    for path in [
        "/w/src/main.rs",
        "/w/Makefile",
        "/w/.gitignore",
        "/w/a/.env.example",
        "/w/.cache/x/y",
        "/w/.git/HEAD",
        "/w/.git/objects/ab/cdef",
        "/w/.git/refs/heads/main",
        "/w/.git/refs/remotes/origin/main",
        "/w/.git/index.lock",
        "/w/.git/COMMIT_EDITMSG",
        "/w/.git/logs/HEAD",
        "/w/node_modules/x/.eslintrc",
        "/w/node_modules/.bin/x",
        "/w/config",
        "/w/hooks/x",
        "/w/objects/x",
        "/w/x/info/attributes",
    ] {
        let path = Path::new(path);
        assert!(can_make(&profile, path) && can_change(&profile, path), "{}", path.display());
    }
    assert!(can_change(&profile, Path::new("/w/.unknown-tool")), "an existing one is the project's own");
    assert!(!can_make(&profile, Path::new("/other/x")));
}

/// A directory with a name inside is not made by moving another.
#[test]
fn holders_of_such_names_stay() {
    let rules = rules();
    let profile = profile(&Wanted::of_rules(&rules));
    for path in ["/w/.github", "/w/a/.vscode", "/w/.pi", "/w/.git", "/w/.git/info", "/w/bare/refs", "/w"] {
        for operation in ["file-write-create", "file-write-unlink"] {
            assert!(!profile.allows(operation, path), "{operation} {path}");
        }
    }
}

#[test]
fn the_facts_about_the_machine_count() {
    let rules = rules();
    let lifted = ["host.git-index".to_owned(), "host.shell-files".to_owned()];
    let homes = paths(&["/w"]);
    let (repositories, targets) = (paths(&["/w/bare.git"]), paths(&["/w/dotfiles/zshrc"]));
    let plain = profile(&Wanted::of_rules(&rules));
    let full = profile(&Wanted {
        lifted: &lifted,
        homes: &homes,
        repositories: &repositories,
        link_targets: &targets,
        ..Wanted::of_rules(&rules)
    });
    for (path, is_plain, is_full) in [
        ("/w/.git/index", false, true),
        ("/w/bare.git/hooks/post-receive", true, false),
        ("/w/bare.git/config", true, false),
        ("/w/bare.git/objects/ab/c", true, true),
        ("/w/dotfiles/zshrc", true, false),
        ("/w/dotfiles/other", true, true),
        ("/w/.git/config", false, false),
    ] {
        let both = (can_change(&plain, Path::new(path)), can_change(&full, Path::new(path)));
        assert_eq!(both, (is_plain, is_full), "{path}");
    }
    for entry in table::home() {
        let path = format!("/w/{}", entry.name.replace('*', "x"));
        assert!(!can_change(&full, Path::new(&path)), "{path}");
    }
}
