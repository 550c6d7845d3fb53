//! Write-heavy commands: what they work on, and how they run with a sandbox and without.

#![expect(clippy::expect_used, reason = "a benchmark ends where it cannot measure")]

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command as Bare, Stdio};

use portcullis_decision::Base;
use portcullis_sandbox::{Access, Command, Limits, NameOrder, PathAccess, Profile, Terminal};
use portcullis_sandbox_runtime::{Confinement, Exit, Running};
use portcullis_session::plain_name_rules;

/// Makes `tree`, `tree.tar` and `repository` in a project. The tree has `files` in `directories`.
///
/// # Panics
/// If the programs for that fail.
pub fn make_tree(project: &Path, files: usize, directories: usize) {
    let script = format!(
        "mkdir tree && cd tree && for d in $(seq {directories}); do mkdir d$d; for f in $(seq {}); do \
         echo a $d $f > d$d/$f.txt; done; done; cd .. && tar cf tree.tar tree && git init -q repository && \
         cp -r tree repository && cd repository && git add . && \
         git -c user.name=a -c user.email=a@b commit -q -m a",
        files / directories
    );
    bare(project, &script);
}

/// Makes `app` in a project: a package of npm whose dependencies are `packages` archives of `files` files each.
///
/// # Panics
/// If the programs for that fail.
pub fn make_npm_package(project: &Path, packages: usize, files: usize) {
    let script = format!(
        "mkdir archives app && for p in $(seq {packages}); do mkdir package && \
         echo '{{\"name\":\"p'$p'\",\"version\":\"1.0.0\"}}' > package/package.json && \
         for f in $(seq {files}); do echo \"exports.value = $p * $f;\" > package/$f.js; done && \
         tar czf archives/p$p.tgz package && rm -r package || exit; done && \
         for p in $(seq {packages}); do echo '\"p'$p'\":\"file:../archives/p'$p'.tgz\"'; done | paste -sd, | \
         sed 's/.*/{{\"name\":\"app\",\"version\":\"1.0.0\",\"dependencies\":{{&}}}}/' > app/package.json && \
         cd app && npm install --package-lock-only --offline --no-audit --no-fund --silent --cache ../npm-cache"
    );
    bare(project, &script);
}

/// Runs a script without a sandbox.
///
/// # Panics
/// If it fails.
pub fn bare(project: &Path, script: &str) {
    let null = Stdio::null;
    let status = Bare::new("sh").args(["-c", script]).current_dir(project).stdin(null()).status();
    assert!(status.expect("sh runs").success(), "{script}");
}

/// Runs a script in a sandbox; returns its command, which has ended.
///
/// # Panics
/// If it fails.
pub fn inside(sandbox: &Confinement, project: &Path, script: &str) -> Running {
    let null =
        || -> OwnedFd { File::options().read(true).write(true).open("/dev/null").expect("/dev/null").into() };
    let command = Command {
        argv: ["sh", "-c", script].map(Into::into).to_vec(),
        env: ["PATH", "HOME"]
            .into_iter()
            .filter_map(|name| Some((name.into(), std::env::var_os(name)?)))
            .collect(),
        cwd: project.to_owned(),
        limits: Limits::default(),
        terminal: Terminal::None,
    };
    let running = sandbox.launch(command, [null(), null(), null()]).expect("a command");
    assert_eq!(running.wait(), Exit::Code(0), "{script}");
    running
}

/// Returns the profile of a session with only the base rules.
///
/// # Panics
/// If the rules cannot be passed on to the sandbox.
#[must_use]
pub fn profile(project: &Path, temp: PathBuf, order: NameOrder) -> Profile {
    let base = Base {
        workspace: vec![project.to_owned()],
        temp: "/tmp".into(),
        closed: vec!["/home".into()],
        ..Base::default()
    };
    Profile {
        acting: None,
        places: vec![PathAccess { path: project.to_owned(), access: Access::ReadWrite }],
        temp,
        own: Vec::new(),
        closed: Vec::new(),
        devices: Vec::new(),
        hostname: "sandbox".to_owned(),
        limits: Limits::default(),
        names: Some(plain_name_rules(base).expect("rules that can be passed on")),
        order: Some(order),
    }
}
