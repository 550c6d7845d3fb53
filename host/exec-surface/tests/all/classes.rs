//! Tables of names: the class of each change.

use portcullis_exec_surface::git::Content;
use portcullis_exec_surface::{Change, Class};

use crate::kit::TestTree;

/// Returns a short word for a class.
fn word(class: &Class) -> String {
    match class {
        Class::Free => "free".to_owned(),
        Class::Walk => "walk".to_owned(),
        Class::Completes(directory) => format!("completes {}", directory.display()),
        Class::Judged(_, content) => format!("{content:?}"),
        Class::Asked(rule) => format!("ask {}", rule.id),
        Class::Denied(rule) => format!("deny {}", rule.id),
    }
}

fn check(place: &TestTree, change: Change, cases: &[(&str, &str)]) {
    for (path, expected) in cases {
        assert_eq!(word(&place.class(path, change)), *expected, "{change:?} {path}");
    }
}

/// A project with a repository of its own and a bare one, as `git init --bare` creates it.
fn place() -> TestTree {
    let repositories = ["bare", ".git/modules/m", ".git/modules/m/modules/c"];
    let whole =
        repositories.iter().flat_map(|top| ["HEAD", "objects", "refs"].map(|name| format!("{top}/{name}")));
    let half = ["half", ".git/modules/new"]
        .iter()
        .flat_map(|top| ["HEAD", "config", "hooks", "refs"].map(|name| format!("{top}/{name}")));
    // The target of `commondir` needs no HEAD of its own.
    let common = ["common/objects", "common/refs"].map(str::to_owned);
    TestTree::with(&whole.chain(half).chain(common).collect::<Vec<_>>())
}

#[test]
fn names_in_git_directories() {
    check(
        &place(),
        Change::Write,
        &[
            (".git/config", "Config"),
            ("a/b/.git/config", "Config"),
            (".GIT/Config", "Config"),
            (".git/config.worktree", "Config"),
            (".git/config.lock", "free"),
            (".git/HEAD", "free"),
            (".git/MERGE_RR", "Conflicts"),
            (".git/worktrees/w/merge_rr", "Conflicts"),
            (".git/MERGE_RR.lock", "free"),
            (".git/index", "Index"),
            (".git/index.lock", "free"),
            (".git/sharedindex.0123", "Index"),
            (".git/sharedindex_0123", "free"),
            (".git/worktrees/w/index", "Index"),
            (".git/modules/m/index", "Index"),
            (".git/refs/heads/index", "free"),
            (".git/rebase-merge/strategy", "Strategy"),
            (".git/rebase-apply/strategy", "Strategy"),
            (".git/rebase-merge/strategy_opts", "StrategyOptions"),
            (".git/rebase-apply/apply-opt", "ApplyOptions"),
            (".git/worktrees/w/rebase-apply/Apply-Opt", "ApplyOptions"),
            (".git/rebase-apply/0001", "free"),
            (".git/sequencer/opts", "SequencerOptions"),
            (".git/sequencer/todo", "free"),
            (".git/objects/ab/config", "free"),
            (".git/refs/heads/config", "free"),
            (".git/refs/heads/hooks/x", "free"),
            (".git/hooks/pre-commit", "deny host.git-hooks"),
            (".git/hooks/pre-commit.sample", "free"),
            (".git/hooks/x.sample/pre-commit", "deny host.git-hooks"),
            (".git/hooks", "deny host.git-hooks"),
            (".git/info/attributes", "Attributes"),
            (".git/info/exclude", "free"),
            (".git/remotes/origin", "ask host.git-config"),
            (".git/branches/x", "ask host.git-config"),
            (".git/commondir", "CommonDirectory"),
            (".git/worktrees/w/commondir", "CommonDirectory"),
            (".git/worktrees/w/gitdir", "WayBack"),
            (".git/worktrees/w/config.worktree", "Config"),
            (".git/worktrees/w/hooks/x", "deny host.git-hooks"),
            (".git/worktrees/w/HEAD", "free"),
            (".git/modules/m/config", "Config"),
            (".git/modules/m/hooks/x", "deny host.git-hooks"),
            (".git/modules/m/modules/c/config.worktree", "Config"),
            (".git/modules/m/info/attributes", "Attributes"),
            (".git/modules/m/worktrees/w/gitdir", "WayBack"),
            (".git/modules/m/objects/pack/x", "free"),
            (".git/modules/m/refs/heads/hooks/x", "free"),
            (".git/modules/m/logs/refs/remotes/origin/config", "free"),
            (".git/rebase-merge/git-rebase-todo", "RebaseTodo"),
            (".git/rebase-merge/done", "free"),
            (".git", "GitFile"),
            ("sub/.git", "GitFile"),
            (".gitmodules", "Modules"),
            (".gitattributes", "free"),
            (".gitignore", "free"),
        ],
    );
}

#[test]
fn a_directory_with_the_shape_of_a_repository_is_one() {
    check(
        &place(),
        Change::Install,
        &[
            ("bare/config", "Config"),
            ("bare/hooks/post-receive", "deny host.git-hooks"),
            ("bare/worktrees/w/config.worktree", "Config"),
            ("bare/modules/m/hooks/x", "free"),
            ("bare/info/attributes", "Attributes"),
            ("half/config", "free"),
            ("half/hooks/x", "free"),
            ("config", "free"),
            ("hooks/useState.ts", "free"),
            ("src/config", "free"),
            ("half/objects", "completes /w/half"),
            ("common/config", "Config"),
            ("common/hooks/x", "deny host.git-hooks"),
            (".git/modules/new/objects", "completes /w/.git/modules/new"),
            (".git/modules/new/OBJECTS", "completes /w/.git/modules/new"),
            ("half/commondir", "CommonDirectory"),
            ("bare/objects", "free"),
            ("src/HEAD", "free"),
            ("src/objects", "free"),
        ],
    );
    check(&place(), Change::MakeDirectory, &[("half/objects", "completes /w/half"), ("src/refs", "free")]);
    check(&place(), Change::MakeDirectory, &[("common/HEAD", "free"), ("half/objects", "completes /w/half")]);
    check(&place(), Change::Symlink, &[("half/objects", "deny host.git-pointers")]);
    check(&place(), Change::MoveTree, &[("half/objects", "completes /w/half")]);
    check(&place(), Change::Remove, &[("bare/HEAD", "free"), ("half/objects", "free")]);
    let redirected = TestTree::with(&["x/HEAD", "x/commondir", "y/commondir", "y/hooks"].map(str::to_owned));
    check(&redirected, Change::Write, &[("x/config.worktree", "Config"), ("y/HEAD", "completes /w/y")]);
}

#[test]
fn links_and_moves_cannot_bring_what_writing_cannot() {
    check(
        &place(),
        Change::Symlink,
        &[
            (".git", "ask host.git-pointers"),
            (".git/config", "ask host.git-config"),
            (".git/hooks", "deny host.git-hooks"),
            (".git/modules", "ask host.git-pointers"),
            (".git/modules/m", "ask host.git-pointers"),
            (".git/worktrees/w", "ask host.git-pointers"),
            (".git/info", "ask host.git-pointers"),
            (".git/HEAD", "ask host.git-pointers"),
            (".git/COMMIT_EDITMSG", "ask host.git-pointers"),
            (".GIT/logs/HEAD", "ask host.git-pointers"),
            (".git/logs", "ask host.git-pointers"),
            ("a/.git/info/exclude", "ask host.git-pointers"),
            ("bare/packed-refs", "ask host.git-pointers"),
            ("bare/refs/heads/x", "ask host.git-pointers"),
            ("half/packed-refs", "free"),
            (".hg/last-message.txt", "ask host.tool-files"),
            (".hg/store/undo", "ask host.tool-files"),
            (".hg/wlock", "free"),
            (".hg/cache/checklink-x", "free"),
            (".jj/repo/store", "ask host.tool-files"),
            ("a/.vscode", "ask host.editor-files"),
            (".github", "ask host.agent-files"),
            ("link", "free"),
        ],
    );
    check(
        &place(),
        Change::Special,
        &[
            (".git/FETCH_HEAD", "deny host.git-pointers"),
            ("bare/gc.log", "deny host.git-pointers"),
            (".hg/last-message.txt", "deny host.tool-files"),
            ("half/objects", "deny host.git-pointers"),
            ("pipe", "free"),
        ],
    );
    check(
        &place(),
        Change::MoveTree,
        &[
            (".git", "walk"),
            (".git/hooks", "deny host.git-hooks"),
            (".git/modules/m", "walk"),
            (".git/worktrees/w", "walk"),
            (".git/info", "walk"),
            (".git/logs", "walk"),
            ("bare/refs", "walk"),
            (".hg/store", "walk"),
            (".github", "walk"),
            (".pi", "ask host.new-dot-files"),
            ("x/.vscode", "ask host.editor-files"),
            ("x", "free"),
        ],
    );
    check(
        &place(),
        Change::Link,
        &[
            (".git/config", "deny host.git-config"),
            (".git/hooks/pre-commit", "deny host.git-hooks"),
            ("sub/.git", "deny host.git-pointers"),
            (".git/objects/ab/cd", "free"),
            (".bashrc", "ask host.shell-files"),
        ],
    );
}

#[test]
fn what_is_removed_executes_nothing() {
    for change in [Change::Remove, Change::MoveAway] {
        check(
            &place(),
            change,
            &[
                (".git", "free"),
                (".git/config", "free"),
                (".git/hooks/pre-commit.sample", "free"),
                (".git/hooks/pre-commit", "deny host.git-hooks"),
                (".git/commondir", "free"),
                (".vscode/tasks.json", "free"),
                (".pi/portcullis.json", "deny host.project-agent-settings"),
            ],
        );
    }
    check(&place(), Change::Remove, &[(".git/hooks", "free")]);
    check(&place(), Change::MoveAway, &[(".git/hooks", "deny host.git-hooks")]);
    check(
        &place(),
        Change::Metadata,
        &[(".git/config", "free"), (".git/hooks/pre-commit", "deny host.git-hooks"), (".bashrc", "free")],
    );
}

#[test]
fn names_that_other_tools_execute() {
    let ask = [
        (".bashrc", "host.shell-files"),
        ("a/b/c/d/.zshenv", "host.shell-files"),
        (".BashRC", "host.shell-files"),
        (".npmrc", "host.tool-files"),
        ("pkg/.envrc", "host.tool-files"),
        ("mise.toml", "host.tool-files"),
        ("sub/.hg/hgrc", "host.tool-files"),
        (".jj/repo/config.toml", "host.tool-files"),
        (".jj/repo", "host.tool-files"),
        (".sl/sharedpath", "host.tool-files"),
        (".vscode/tasks.json", "host.editor-files"),
        ("sub/.idea/workspace.xml", "host.editor-files"),
        (".vimrc", "host.editor-files"),
        (".devcontainer/devcontainer.json", "host.editor-files"),
        (".claude/settings.json", "host.agent-files"),
        (".codex/config.toml", "host.agent-files"),
        (".cursor/mcp.json", "host.agent-files"),
        (".mcp.json", "host.agent-files"),
        ("AGENTS.md", "host.agent-files"),
        (".husky/pre-commit", "host.hook-managers"),
        (".pre-commit-config.yaml", "host.hook-managers"),
        ("lefthook-local.yml", "host.hook-managers"),
        (".lefthook.toml", "host.hook-managers"),
        (".config/lefthook.json", "host.hook-managers"),
        ("mise/config.toml", "host.tool-files"),
        (".vim/coc-settings.json", "host.editor-files"),
        ("AGENTS.override.md", "host.agent-files"),
        ("opencode.jsonc", "host.agent-files"),
        (".pi/commands/x.md", "host.agent-files"),
        (".github/workflows/ci.yml", "host.ci-files"),
        (".pdbrc", "host.tool-files"),
        (".irbrc", "host.tool-files"),
        (".perldb", "host.tool-files"),
        (".RData", "host.tool-files"),
        ("rust-toolchain.toml", "host.tool-files"),
        ("sub/rust-toolchain", "host.tool-files"),
        (".cargo/config.toml", "host.tool-files"),
        (".direnv/flake-profile-0123.rc", "host.tool-files"),
        (".repo/repo/main.py", "host.tool-files"),
        (".mvn/jvm.config", "host.tool-files"),
        (".yarn/releases/yarn-4.0.0.cjs", "host.tool-files"),
        (".trae/mcp.json", "host.agent-files"),
        ("crush.json", "host.agent-files"),
        (".gitpod.yml", "host.ci-files"),
        (".Rprofile", "host.tool-files"),
        (".git/lazygit.yml", "host.tool-files"),
        (".lazygit.yml", "host.tool-files"),
        (".git/sl/config", "host.tool-files"),
        (".sl/config", "host.tool-files"),
        ("_darcs/prefs/defaults", "host.tool-files"),
        (".hg/sharedpath", "host.tool-files"),
        (".dir-locals-2.el", "host.editor-files"),
        ("AGENT.md", "host.agent-files"),
        (".qwen/settings.json", "host.agent-files"),
        (".github/chatmodes/x.md", "host.agent-files"),
        (".builds/x.yml", "host.ci-files"),
        (".gitlab-ci.yml", "host.ci-files"),
    ];
    for (path, rule) in ask {
        for change in [Change::Write, Change::Install, Change::Symlink] {
            check(&place(), change, &[(path, &format!("ask {rule}"))]);
        }
    }
    let free = [
        "package.json",
        "Makefile",
        "Cargo.toml",
        "Gemfile",
        ".yarn/cache/x.zip",
        "build.rs",
        ".github/CODEOWNERS",
        "node_modules/.bin/x",
        "node_modules/pkg/.npmrc",
        "web/node_modules/@a/b/AGENTS.md",
        ".venv/bin/activate",
        "bashrc",
        "x.vscode/y",
        "docs/.bashrc.md",
    ];
    for path in free {
        check(&place(), Change::Write, &[(path, "free")]);
    }
    // Free below the root, where there is no project, and where they existed before.
    let new = [
        ".cargo/registry/x",
        ".bundle/config",
        ".python-version",
        ".mvn/wrapper/maven-wrapper.properties",
        ".env",
        ".pi/notes.md",
        ".pi",
    ];
    for path in new {
        check(&place(), Change::Write, &[(path, "ask host.new-dot-files"), (&format!("a/{path}"), "free")]);
        check(&TestTree::with(&[path.to_owned()]), Change::Write, &[(path, "free")]);
    }
    check(&place(), Change::Install, &[("node_modules/x/.git/config", "Config")]);
    for path in [
        "node_modules/x/.pi/extensions/y",
        ".pi/extensions/evil.ts",
        "sub/.pi/sandbox.json",
        ".pi/settings.json",
        ".PI/Settings.json",
    ] {
        check(&place(), Change::Write, &[(path, "deny host.project-agent-settings")]);
    }
    check(
        &place(),
        Change::MakeDirectory,
        &[(".vscode", "free"), (".github/workflows", "free"), (".pi", "free")],
    );
}

#[test]
fn a_workspace_may_lie_below_such_a_name() {
    use std::path::{Path, PathBuf};
    let roots = [PathBuf::from("/home/u/.cursor/worktrees/p"), PathBuf::from("/home/u")];
    let site = portcullis_exec_surface::Site::without_files(&roots[0], &roots);
    let class = |path: &str| portcullis_exec_surface::class(Path::new(path), Change::Write, &site);
    assert_eq!(class("/home/u/.cursor/worktrees/p/src/a.rs"), Class::Free);
    assert_eq!(word(&class("/home/u/.cursor/worktrees/p/.vscode/x")), "ask host.editor-files");
    assert_eq!(word(&class("/home/u/.cursor/mcp.json")), "ask host.agent-files");
    assert_eq!(word(&class("/elsewhere/.cursor/mcp.json")), "ask host.agent-files");
}

#[test]
fn a_rule_that_does_not_hold_hides_no_other() {
    use std::path::{Path, PathBuf};
    let roots = [PathBuf::from("/w")];
    let site = portcullis_exec_surface::Site::without_files(&roots[0], &roots);
    let without = |ids: &[&str], path: &str, change| {
        word(&portcullis_exec_surface::class_under(Path::new(path), change, &site, &|rule| {
            !ids.contains(&rule.id)
        }))
    };
    let inside = "/w/.vscode/.git/config";
    assert_eq!(without(&[], inside, Change::Install), "ask host.editor-files");
    assert_eq!(without(&["host.editor-files"], inside, Change::Install), "Config");
    assert_eq!(without(&["host.editor-files", "host.git-config"], inside, Change::Install), "free");
    let hook = "/w/.claude/x/.git/hooks/pre-push";
    assert_eq!(without(&["host.git-hooks"], hook, Change::Write), "ask host.agent-files");
    assert_eq!(without(&["host.git-hooks", "host.agent-files"], hook, Change::Write), "free");
    let both = "/w/.vscode/AGENTS.md";
    assert_eq!(without(&["host.editor-files"], both, Change::Write), "ask host.agent-files");
}

#[test]
fn only_what_git_takes_no_commands_from_may_be_written_unseen() {
    let all = [
        Content::Config,
        Content::Modules,
        Content::GitFile,
        Content::CommonDirectory,
        Content::WayBack,
        Content::RebaseTodo,
        Content::Attributes,
    ];
    let unseen: Vec<_> = all.into_iter().filter(|content| content.may_be_unseen()).collect();
    assert_eq!(unseen, [Content::Modules]);
}

/// Links that git creates in a new repository, and none that lead elsewhere.
#[test]
fn git_makes_links_of_its_own() {
    let check = |path: &str, target: &str, expected: bool| {
        let is_own = portcullis_exec_surface::is_link_of_git(std::path::Path::new(path), target.as_bytes());
        assert_eq!(is_own, expected, "{path} -> {target}");
    };
    check("/w/.git/tA1b2C3", "testing", true);
    check("/w/.git/modules/sub/tA1b2C3", "testing", true);
    check("/w/.git/HEAD", "refs/heads/main", true);
    for (path, target) in [
        ("/w/.git/modules/sub/tA1b2C3", "../testing"),
        ("/w/.git/modules/sub/tA1b2C3", "/w/testing"),
        ("/w/.git/modules/sub/hooks", "testing"),
        ("/w/.git/modules/sub/xA1b2C3", "testing"),
        ("/w/.git/modules/sub/tA1b2C", "testing"),
        ("/w/.git/HEAD", "refs/heads/../../../.zshenv"),
        ("/w/.git/HEAD", "/home/u/.zshenv"),
        ("/w/.git/ORIG_HEAD", "refs/heads/main"),
    ] {
        check(path, target, false);
    }
}
