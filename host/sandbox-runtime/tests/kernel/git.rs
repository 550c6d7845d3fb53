//! Git works in the sandbox, and leaves no file that makes the user's git run a program.

use std::fs;

use portcullis_sandbox_runtime::Exit;

use crate::held::asked;
use crate::kit::Session;
use crate::{Test, cannot_run, exists};

pub(crate) const TESTS: &[Test] = &[
    ("git::what_git_writes_itself_passes", what_git_writes_itself_passes),
    ("git::programs_are_not_named", programs_are_not_named),
    (
        "git::repositories_of_the_commands_own_are_no_exception",
        repositories_of_the_commands_own_are_no_exception,
    ),
    ("git::what_was_judged_is_what_is_there", what_was_judged_is_what_is_there),
    (
        "git::a_directory_that_becomes_a_repository_is_looked_at",
        a_directory_that_becomes_a_repository_is_looked_at,
    ),
    ("git::other_repositories_stay_outside", other_repositories_stay_outside),
    ("git::what_moves_is_judged_where_it_comes_to_lie", what_moves_is_judged_where_it_comes_to_lie),
    ("git::nothing_is_fetched_by_itself", nothing_is_fetched_by_itself),
    ("git::trees_of_commands_lie_in_the_workspace", trees_of_commands_lie_in_the_workspace),
    ("git::what_has_stopped_writes_nothing_elsewhere", what_has_stopped_writes_nothing_elsewhere),
    ("git::resolved_conflicts_are_those_of_the_project", resolved_conflicts_are_those_of_the_project),
    ("git::what_is_lost_is_found_in_the_repository", what_is_lost_is_found_in_the_repository),
    (
        "git::what_completes_a_repository_is_not_all_that_is_judged",
        what_completes_a_repository_is_not_all_that_is_judged,
    ),
];

/// Environment without user settings, and with a name for commits.
const SET_UP: &str = "exec 2>&1; export HOME=/tmp GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a \
    GIT_COMMITTER_EMAIL=a@b GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null;";

fn git() -> bool {
    let found = exists("/usr/bin/git");
    if !found {
        cannot_run("git");
    }
    found
}

/// A session with a repository in its workspace that the host has created, with a worktree and a submodule.
fn with_repository() -> Session {
    let session = Session::new();
    let made = session.control(&format!(
        "{SET_UP} set -e; git init -q -b main other; git -C other commit -q --allow-empty -m o; \
         git init -q -b main repo; cd repo; echo 1 > f; git add f; git commit -q -m 1; git branch side; \
         git worktree add -q ../tree side; git -c protocol.file.allow=always submodule --quiet add ../other sub; \
         git commit -q -m sub"
    ));
    assert!(made, "git works outside");
    session
}

fn what_git_writes_itself_passes() {
    if !git() {
        return;
    }
    let session = with_repository();
    for script in [
        "git init new && cd new && git commit --allow-empty -m n && git remote add origin https://example.com/x && \
         git config user.name me && git config core.autocrlf input && git remote -v | grep -q example",
        "git clone -q repo copy && cd copy && git checkout -q --track origin/side && git config branch.side.merge && \
         git checkout -q main && git branch -D side && git pull -q --rebase && git remote set-url origin ../repo && \
         git remote rename origin up && git remote remove up",
        "git clone -q --bare repo bare.git && git -C bare.git config core.bare && git init -q --bare b2 && \
         git clone -q --mirror repo mirror",
        "cd repo && git worktree add -q ../tree2 -b two && git -C ../tree2 commit -q --allow-empty -m w && \
         git worktree move ../tree2 ../tree3 && git -C ../tree3 status && git worktree remove ../tree3 && \
         git branch -D two && git worktree prune",
        "cd repo && git -c protocol.file.allow=always submodule add ../other sub2 && git commit -q -m s2 && \
         git submodule update --init && git -C sub2 log -1 && git submodule deinit -f sub2 && git rm -qf sub2",
        "cd repo && git checkout -q -b topic && echo 2 >> f && git commit -qam 2 && echo 3 >> f && git commit -qam 3 && \
         GIT_SEQUENCE_EDITOR=true git rebase -q -i main && git checkout -q main && \
         git merge -q topic && git branch -d topic && git stash list && git gc -q && git fsck",
        "git clone -q repo gone && rm -rf gone/.git && cd gone && git init -q && git add -A && git commit -q -m all",
        "git clone -q repo mv1 && mv mv1 mv2 && git -C mv2 status && mv mv2/.git mv2/.g && mv mv2/.g mv2/.git && \
         git -C mv2 status && rm -rf mv2",
        // As libgit2, and so cargo, writes it.
        "git init -q lib && mv lib/.git/config lib/.git/config.lock && ln lib/.git/config.lock lib/.git/config && \
         rm lib/.git/config.lock && git -C lib config core.bare && git -C lib commit -q --allow-empty -m l",
    ] {
        let script = format!("{SET_UP} set -e; {script}");
        let outcome = session.sh(&script);
        assert_eq!(outcome.exit, Exit::Code(0), "{script}: {}", outcome.output);
    }
}

/// Prints the state that must be unchanged after an attack.
const PROTECTED: &str = "cat repo/.git/config tree/.git repo/.git/worktrees/tree/commondir \
    repo/.git/worktrees/tree/gitdir repo/.git/modules/sub/config repo/sub/.git; \
    cat repo/.git/info/attributes repo/.git/commondir repo/.git/config.worktree; \
    find . -path '*hooks/*' ! -name '*.sample'; true";

/// Fails if a file below names a program for git.
const HARMLESS: &str =
    "! grep -rqs evil --include=config . && ! find . -path '*hooks/*' ! -name '*.sample' | grep .";

fn programs_are_not_named() {
    if !git() {
        return;
    }
    let session = with_repository();
    assert!(session.control("cp -a . \"$P/home/save\""));
    let state = |session: &Session| session.sh(PROTECTED).output;
    let before = state(&session);
    for script in [
        "git -C repo config core.fsmonitor ./evil",
        "git -C repo config core.hooksPath ../evil",
        "git -C repo config alias.st '!./evil'",
        "git -C repo config include.path ../evil",
        "git -C repo config filter.x.clean ./evil",
        "git -C repo config core.sshCommand ./evil",
        "git -C tree config core.fsmonitor ./evil",
        "git -C repo/sub config core.pager ./evil",
        "printf '[core]\\n\\tfsmonitor = ./evil\\n' >> repo/.git/config",
        "printf '[core]\\n\\tfsmonitor = ./evil\\n' > c && mv c repo/.git/config",
        "printf '[core]\\n\\tfsmonitor = ./evil\\n' > c && ln -f c repo/.git/config",
        "printf '[core]\\n\\tfsmonitor = ./evil\\n' > c && ln -sf ../../c repo/.git/config",
        "ln repo/.git/config c && printf '[core]\\n\\tfsmonitor = ./evil\\n' >> c",
        "cp repo/.git/config c && git config -f c core.fsmonitor x && perl -e 'my ($one, $two) = (\"c\", \
         \"repo/.git/config\"); exit syscall(316, -100, $one, -100, $two, 2) != 0'",
        "echo x > repo/.git/hooks/pre-commit",
        "ln -s ../../evil repo/.git/hooks/pre-commit",
        "cp repo/.git/hooks/pre-commit.sample repo/.git/hooks/pre-commit",
        "mv repo/.git/hooks/pre-commit.sample repo/.git/hooks/pre-commit",
        "mkdir h && echo x > h/pre-commit && rm -rf repo/.git/hooks && mv h repo/.git/hooks && echo > repo/.git/hooks/x",
        "echo x > repo/.git/modules/sub/hooks/post-checkout",
        "echo '* filter=x' > repo/.git/info/attributes",
        "mv repo/.git repo/.g && printf '[core]\\n\\tfsmonitor = ./evil\\n' >> repo/.g/config && mv repo/.g repo/.git",
    ] {
        let script = format!("{SET_UP} {script}");
        session.sh(&script).assert_fails();
        // A directory that was moved away in a failed attack is put back; that is harmless.
        assert!(session.control("test -d repo/.git || mv repo/.g repo/.git"));
        assert_eq!(state(&session), before, "{script}");
        assert!(session.control("find . -mindepth 1 -delete && cp -a \"$P/home/save/.\" ."));
    }
    // A file written in place is judged after the write, so the writer gets no error.
    for script in [
        "mkdir evil; echo ../../evil > repo/.git/commondir",
        "echo 'gitdir: ../evil' > tree/.git",
        "echo 'gitdir: ./evil' > repo/sub/.git",
        "echo ../../../../evil > repo/.git/worktrees/tree/commondir",
        "mkdir new; echo 'gitdir: ../evil' > new/.git",
    ] {
        session.sh(&format!("{script}; sleep 0.05"));
        assert!(session.control("test ! -e new/.git; rm -rf new evil"));
        assert_eq!(state(&session), before, "{script}");
    }
    assert!(
        session.control("git -C repo config core.fsmonitor ./evil && echo x > repo/.git/hooks/pre-commit")
    );
    assert_ne!(state(&session), before, "control");
}

fn repositories_of_the_commands_own_are_no_exception() {
    if !git() {
        return;
    }
    let session = Session::new();
    session.allows(&format!("{SET_UP} git init -q own && ls own/.git/hooks/pre-commit.sample"));
    for script in [
        "git init -q own2 && echo x > own2/.git/hooks/pre-commit",
        "git init -q own2 && git -C own2 config core.fsmonitor ./evil",
        "git clone -q -c core.fsmonitor=./evil own own3",
        "git init -q --template= own4 && mkdir own4/.git/hooks && echo x > own4/.git/hooks/post-commit",
        "git init -q --bare own5 && echo x > own5/hooks/post-receive",
        "git init -q --bare own5 && git -C own5 config core.fsmonitor ./evil",
        "git init -q own5/.vscode && git -C own5/.vscode config core.fsmonitor ./evil",
    ] {
        let outcome = session.sh(&format!("{SET_UP} {script}"));
        assert!(session.control(HARMLESS), "{script}: {outcome:?}");
        assert!(session.control(&format!("{SET_UP} rm -rf own2 own3 own4 own5; {script}")));
        assert!(!session.control(HARMLESS), "control: {script}");
        assert!(session.control("rm -rf own2 own3 own4 own5"));
    }
}

fn what_was_judged_is_what_is_there() {
    if !git() {
        return;
    }
    let session = with_repository();
    let harmless = "printf '[core]\\n\\tbare = false\\n'";
    let evil = "printf '[core]\\n\\tfsmonitor = ./evil\\n'";
    let script = format!(
        "cd repo/.git; exec 3> config.lock; {harmless} >&3; mv config.lock config && {evil} >&3; cat config"
    );
    let outcome = session.sh(&script);
    assert_eq!(outcome.exit, Exit::Code(0), "{outcome:?}");
    assert!(!outcome.output.contains("fsmonitor"), "{outcome:?}");
    // The same with a hard link, and with a file that is written in place.
    session.sh(&format!("cd repo/.git; {harmless} > c; ln c d; mv c config; {evil} >> d"));
    let linked = format!("cd repo/.git; {harmless} > c; rm config; ln c config && {evil} >> c");
    assert_eq!(session.sh(&linked).exit, Exit::Code(0), "{linked}");
    session.sh("cd tree; exec 3> .git; cat ../tree-before >&3; exec 3>&-; sleep 0.05");
    let config = fs::read_to_string(session.path("work/repo/.git/config")).expect("read");
    assert!(!config.contains("fsmonitor"), "{config}");
    assert!(session.control(&script) && session.control("grep fsmonitor repo/.git/config"), "control");
}

fn a_directory_that_becomes_a_repository_is_looked_at() {
    if !git() {
        return;
    }
    let session = Session::new();
    let evil = "printf '[core]\\n\\tfsmonitor = ./evil\\n' > bare/config";
    for script in [
        format!("mkdir -p bare/objects bare/refs && {evil} && echo 'ref: refs/heads/main' > bare/HEAD"),
        format!("mkdir -p bare/objects && echo 'ref: refs/heads/main' > bare/HEAD && {evil} && mkdir bare/refs"),
        format!("mkdir -p bare/refs o && echo 'ref: refs/heads/main' > bare/HEAD && {evil} && mv o bare/objects"),
        "mkdir -p bare/objects bare/hooks && echo x > bare/hooks/post-receive && mkdir bare/refs && \
         echo 'ref: refs/heads/main' > bare/HEAD"
            .to_owned(),
        format!("mkdir bare && {evil} && mv bare .git"),
        "mkdir -p bare/hooks && echo x > bare/hooks/post-checkout && mv bare .git".to_owned(),
        "git init -q bare; cd bare/.git; mkdir -p modules/m/hooks && echo x > modules/m/hooks/post-checkout && \
         mkdir modules/m/objects modules/m/refs && echo ref: refs/heads/m > modules/m/HEAD"
            .to_owned(),
    ] {
        let outcome = session.sh(&script);
        // Settings that are written in place, in a directory of the command's own, do not get their name.
        let is_without_settings = script.contains(evil) && session.control("! grep -s fsmonitor bare/config .git/config");
        assert!(outcome.exit != Exit::Code(0) || is_without_settings, "{script}: {outcome:?}");
        assert!(session.control(&format!("rm -rf bare o .git; ({script}) && rm -rf bare o .git")), "control: {script}");
    }
    // A process that still holds a file open holds the previous one.
    let script = "mkdir -p bare/objects && exec 3> bare/config && printf '[core]\\n\\tbare = true\\n' >&3 && \
         mkdir bare/refs && printf '\\tfsmonitor = ./evil\\n' >&3; cat bare/config";
    let outcome = session.sh(script);
    assert!(outcome.output.contains("bare = true") && !outcome.output.contains("fsmonitor"), "{outcome:?}");
}

/// The user's own fetch would copy a repository that commands cannot see into one that they can.
fn other_repositories_stay_outside() {
    if !git() {
        return;
    }
    let session = with_repository();
    let private = "\"$P/home/closed/private\"";
    assert!(session.control(&format!(
        "{SET_UP} set -e; git init -q -b main {private}; git -C {private} commit -q --allow-empty -m hunter2; \
         cp -r repo control; git -C control remote add x {private}; git -C control fetch -q x"
    )));
    let look = |place: &str| session.sh(&format!("{SET_UP} git -C {place} log --all | grep hunter2"));
    look("control").assert(0, "hunter2");
    for script in [
        "git remote add x PRIVATE",
        "git remote add x \"file://$P/home/closed/private\"",
        "git remote add x ../../home/closed/private",
        "git config branch.main.remote PRIVATE; git config branch.main.merge refs/heads/main",
        "echo PRIVATE/.git/objects > .git/objects/info/alternates",
        "echo PRIVATE/.git/objects > new; mv new .git/objects/info/alternates",
        "echo ../../../../home/closed/private/.git/objects > new; mv new .git/objects/info/alternates",
    ] {
        let script = script.replace("PRIVATE", private);
        let (_, output, questions) = asked(&session, &format!("{SET_UP} cd repo; {script}"), false);
        let in_place = script.contains("> .git");
        assert!(in_place || !questions.is_empty(), "{script}: {output}");
        session.control(&format!("{SET_UP} cd repo; git fetch -q --all; git pull -q; git fetch -q x"));
        look("repo").assert_fails();
        let clean = "cd repo; ! grep -q closed .git/config && ! grep -qs closed .git/objects/info/alternates";
        assert!(session.control(clean), "{script}: {output}");
    }
    let within = "cd repo; git remote add near ../other; git fetch -q near; cd ..; git clone -q --shared repo lent; \
        git -C lent log -1";
    let (exit, output, questions) = asked(&session, &format!("{SET_UP} set -e; {within}"), false);
    assert_eq!((exit, questions), (Exit::Code(0), vec![]), "{output}");
}

/// A relative path has another target from another depth: the user's fetch would copy repositories that commands cannot
/// see, and the user's checkout would write there.
fn what_moves_is_judged_where_it_comes_to_lie() {
    if !git() {
        return;
    }
    let session = with_repository();
    assert!(session.control(&format!(
        "{SET_UP} set -e; p=\"$P/home/closed/private\"; git init -q -b main \"$p\"; \
         git -C \"$p\" commit -q --allow-empty -m hunter2"
    )));
    let far = "../../home/closed/private";
    let remote = |url: &str| format!("git init -q a/b/r && git -C a/b/r remote add x {url}");
    let fetched = |place: &str| format!("git -C {place} fetch -q x; git -C {place} log --all | grep hunter2");
    let exchange = "mkdir r && perl -e 'my ($one, $two) = qw(r a/b/r); \
        exit syscall(316, -100, $one, -100, $two, 2) != 0'";
    let attacks = [
        (remote(far), "mv a/b/r r", fetched("r")),
        (remote(&format!("../{far}")), "mv a/b b", fetched("b/r")),
        (remote(far), exchange, fetched("r")),
        (
            format!("git init -q --bare a/b/r.git && git -C a/b/r.git remote add x {far}"),
            "mv a/b/r.git r.git",
            fetched("r.git"),
        ),
        (
            format!("git init -q --bare a/r.git && git -C a/r.git remote add x {far}"),
            "mkdir c && mv a/r.git c/.git",
            "git -C c fetch -q x; git -C c log --all | grep hunter2".to_owned(),
        ),
        (
            format!(
                "git init -q a/b/r && echo ../../{far}/.git/objects > t && mv t a/b/r/.git/objects/info/alternates"
            ),
            "mv a/b/r r",
            "git -C r cat-file --batch-all-objects --batch-check | grep commit".to_owned(),
        ),
        (
            "git init -q --bare repo/.git/modules/a/b/c && cd repo/.git/modules/a/b/c && \
             git config core.bare false && git config core.worktree ../../../../../home/closed"
                .to_owned(),
            "mv repo/.git/modules/a/b/c repo/.git/modules/m",
            "test \"$(git --git-dir=repo/.git/modules/m rev-parse --show-toplevel)\" = \"$P/home/closed\""
                .to_owned(),
        ),
    ];
    for (made, moved, harms) in attacks {
        let clean = "rm -rf a b c r r.git t repo/.git/modules/a repo/.git/modules/m; mkdir -p a/b";
        assert!(session.control(clean));
        session.allows(&format!("{SET_UP} {made}"));
        let (exit, output, questions) = asked(&session, &format!("{SET_UP} {moved}"), false);
        assert!(exit != Exit::Code(0) && questions.len() == 1, "{made}: {moved}: {output} {questions:?}");
        assert!(!session.control(&format!("{SET_UP} {harms}")), "{made}: {moved}");
        assert!(
            session.control(&format!("{SET_UP} {clean}; ({made}) && {moved}; {harms}")),
            "control: {made}"
        );
    }
    // The user's own, which leads out of the project: moving it asks once.
    let own = format!("rm -rf a r; mkdir -p a/b; {}", remote(&format!("../../{far}")));
    assert!(session.control(&format!("{SET_UP} {own}")));
    let (exit, output, questions) = asked(&session, "mv a/b/r r", true);
    assert_eq!((exit, questions.len()), (Exit::Code(0), 1), "{output}");
    // A link of the user's to hooks elsewhere must not lead to a directory that commands write.
    let linked = "git init -q s && rm -rf s/.git/hooks && ln -s ../../../hooks s/.git/hooks && mkdir -p a/b";
    assert!(session.control(&format!("{SET_UP} {linked}")));
    session.sh("mv s a/s").assert_fails();
    session.allows("rm s/.git/hooks && mv s a/s");
    // Links and repositories that keep their targets need no question.
    let plain = "mkdir -p a/other/.bin && ln -s ../../x a/other/.bin/x && mv a/other a/b && \
        git init -q a/b/n && git -C a/b/n remote add x ../../other && mv a/b/n a/n && mv a/n a/b/m && \
        git clone -q repo a/b/k && mv a/b/k k && git -C k fetch -q";
    let (exit, output, questions) = asked(&session, &format!("{SET_UP} {plain}"), false);
    assert_eq!((exit, questions), (Exit::Code(0), vec![]), "{output}");
}

/// If a remote is a promisor, every `git status` fetches missing objects, from an address that can respond with
/// anything.
fn nothing_is_fetched_by_itself() {
    if !git() {
        return;
    }
    let session = with_repository();
    let settings =
        "git config core.repositoryformatversion 1; git config remote.o.url http://127.0.0.1:9/hunter2";
    let lends = [
        "git config remote.o.promisor true",
        "git config remote.o.partialclonefilter blob:none",
        "git config extensions.partialclone o",
    ];
    let remove = "tree=$(git rev-parse 'HEAD^{tree}'); rm -f .git/objects/$(echo $tree | cut -c1-2)/$(echo $tree | cut -c3-)";
    let is_fetched = |place: &str| {
        session
            .control(&format!("{SET_UP} cd {place}; GIT_TRACE=1 git status 2>&1 | grep -q 'git.*fetch.*o'"))
    };
    assert!(
        session
            .control(&format!("cp -r repo control; cd control; {settings}; {}; {remove}", lends.join("; ")))
    );
    assert!(is_fetched("control"), "the attack works outside");
    for lend in lends {
        assert!(session.control("rm -rf copy; cp -r repo copy"));
        let script = format!("{SET_UP} cd copy; {settings}; {lend}; {remove}");
        let (_, output, questions) = asked(&session, &script, false);
        assert!(questions.len() == 1 && !is_fetched("copy"), "{lend}: {output}");
    }
    // The user's own remote is pointed elsewhere.
    assert!(session.control("rm -rf copy; cp -r control copy"));
    let (exit, output, questions) =
        asked(&session, "cd copy; git config remote.o.url http://127.0.0.1:9/other", false);
    assert!(exit != Exit::Code(0) && questions.len() == 1, "{output}");
}

/// The user's own git writes files where a repository says that its working tree is.
fn trees_of_commands_lie_in_the_workspace() {
    if !git() {
        return;
    }
    let tree = "mkdir -p .git/worktrees/x; echo ref: refs/heads/main > .git/worktrees/x/HEAD; \
        echo ../.. > .git/worktrees/x/commondir; echo \"$P/home/loot/.git\" > .git/worktrees/x/gitdir; sleep 0.05";
    let renamed = tree.replace("> .git/worktrees/x/gitdir", "> new; mv new .git/worktrees/x/gitdir");
    let pushed = "git init -q up; cd up; git symbolic-ref HEAD refs/heads/x; \
        git config receive.denyCurrentBranch updateInstead";
    let linked = "ln -s \"$P/home/loot\" node; G='git --git-dir=.git/modules/sub'; \
        b=$(echo x | $G hash-object -w --stdin); t=$(printf '100644 blob %s\\tloot\\n' $b | $G mktree); \
        $G update-ref refs/heads/x $($G commit-tree -m x $t); \
        git config -f .git/modules/sub/config core.worktree ../../../node";
    for (attack, then) in [
        (tree.to_owned(), "git worktree repair"),
        (renamed, "git worktree repair"),
        (format!("{pushed}; {tree}"), "git push -q ./up main"),
        (linked.to_owned(), "cd sub; git checkout -q x"),
    ] {
        for outside in [true, false] {
            let session = with_repository();
            assert!(session.control("mkdir \"$P/home/loot\""));
            let attack = format!("{SET_UP} cd repo; {attack}");
            let told = if outside {
                format!("{}", session.control(&attack))
            } else {
                asked(&session, &attack, false).1
            };
            session.control(&format!("{SET_UP} cd repo; {then}"));
            let is_written = session.control("test -n \"$(ls -A \"$P/home/loot\")\"");
            assert_eq!(is_written, outside, "{then} after {attack}: {told}");
        }
    }
}

/// Interrupted patches or picks continue with options of programs, and some of these make git write any file.
fn what_has_stopped_writes_nothing_elsewhere() {
    if !git() {
        return;
    }
    let session = Session::new();
    let stop = |how: &str| {
        session.control(&format!(
            "{SET_UP} rm -rf repo control \"$P/home/loot\"; set -e; git init -q -b main repo; cd repo; \
             echo 1 > f; echo 1 > g; git add f g; git commit -q -m 1; git checkout -q -b side; \
             echo 2 > f; git commit -q -a -m 2; echo 2 > g; git commit -q -a -m 3; git format-patch -q main; \
             git checkout -q main; echo 3 > f; git commit -q -a -m 4; \
             if {how}; then exit 1; fi; echo 5 > f; git add f; cp -r . ../control"
        ))
    };
    let is_written = || session.control("test -e \"$P/home/loot\"");
    let patches = ("git am -q 000*", "am", "rebase-apply/apply-opt", " '--build-fake-ancestor=$P/home/loot'");
    let picks = "[options]\n\tstrategy = resolve\n\tstrategy-option = index-output=$P/home/loot";
    let picks = ("git cherry-pick main..side", "cherry-pick", "sequencer/opts", picks);
    for (how, what, noted, text) in [patches, picks] {
        let note = |file: &str| format!("printf '%s\\n' \"{text}\" > {file}");
        let noted = format!(".git/{noted}");
        let goes_on = format!("{SET_UP} GIT_EDITOR=true git {what} --continue");
        assert!(stop(how), "git stops: {how}");
        session.control(&format!("cd control; {}; {goes_on}", note(&noted)));
        assert!(is_written(), "the attack works outside: {what}");
        for way in [note(&noted), format!("{}; mv new {noted}", note("new"))] {
            assert!(stop(how), "git stops: {how}");
            let (_, output, questions) = asked(&session, &format!("cd repo; {way}"), false);
            assert!(!questions.is_empty(), "{way}: {output}");
            session.control(&format!("cd repo; {goes_on}"));
            assert!(!is_written(), "{way}: {output}");
        }
    }
}

/// Recorded conflict resolutions copy the files of a list into the repository, also through links.
fn resolved_conflicts_are_those_of_the_project() {
    if !git() {
        return;
    }
    let session = Session::new();
    let id = "0123456789abcdef0123456789abcdef01234567";
    assert!(session.control("echo hunter2 > \"$P/home/closed/key\""));
    let again = format!(
        "{SET_UP} rm -rf repo; git init -q repo; cd repo; echo 1 > f; git add f; git commit -qm 1; \
         mkdir -p .git/rr-cache/{id}; echo 2 > f"
    );
    let record = |place: &str, path: &str| {
        format!("cd repo; ln -s \"$P/home/closed\" l; printf '{id}\\t%s\\0' \"{path}\" > {place}")
    };
    let commit = format!("{SET_UP} cd repo; git commit -qam 2");
    let is_copied = || session.control("grep -qs hunter2 repo/.git/rr-cache/*/postimage");
    for path in ["$P/home/closed/key", "l/key"] {
        assert!(session.control(&again));
        session.control(&format!("{}; {commit}", record(".git/MERGE_RR", path)));
        assert!(is_copied(), "the attack works outside: {path}");
        for (place, then) in [(".git/MERGE_RR", ""), ("new", "; mv new .git/MERGE_RR")] {
            assert!(session.control(&again));
            let (_, output, questions) = asked(&session, &format!("{}{then}", record(place, path)), false);
            assert!(!questions.is_empty(), "{path}: {output}");
            session.control(&commit);
            assert!(!is_copied(), "{path}: {output}");
        }
    }
    // If no resolution is recorded, or none is new, git continues by itself.
    assert!(session.control(&again));
    let (exit, output, questions) = asked(&session, &format!("{SET_UP} cd repo; git commit -qam 2"), false);
    assert_eq!((exit, questions), (Exit::Code(0), vec![]), "{output}");
}

/// Git writes dangling objects to names that an attacker can predict.
fn what_is_lost_is_found_in_the_repository() {
    if !git() {
        return;
    }
    let session = Session::new();
    let make = "exec 2>&1; set -e; mkdir -p bare/FOUND bare/refs bare/new; printf 'x\\n' > c; \
         ln -s \"$P/home/loot\" bare/FOUND/$(git hash-object c); echo ref: refs/heads/m > bare/HEAD; \
         mv bare/new bare/objects; git --git-dir=bare hash-object -w c";
    let find = "git --git-dir=bare fsck --lost-found; test -e \"$P/home/loot\"";
    let lost = make.replace("FOUND", "lost-found/other");
    assert!(session.control(&format!("({lost}) && ({find})")), "the attack works outside");
    for directory in ["lost-found/other", "Lost-Found/other", "NOTES_MERGE_WORKTREE", "rr-cache/x", "svn/x"] {
        assert!(session.control("rm -rf bare c \"$P/home/loot\""));
        session.sh(&make.replace("FOUND", directory)).assert_fails();
        assert!(session.control("test ! -e bare/objects"), "{directory}");
    }
}

/// A permitted `commondir` turns a file that was free beside it into settings; so does a part that brings links along.
fn what_completes_a_repository_is_not_all_that_is_judged() {
    if !git() {
        return;
    }
    let session = Session::new();
    // A directory in `modules` without the shape of a repository has no meaning yet.
    let begin = "set -e; top=$PWD; y=o/.git/modules/m/worktrees/y; rm -rf o n p x.git ran; mkdir -p $y n; \
         echo ref: refs/heads/b > $y/HEAD; cd $y; echo ../.. > c;";
    let hostile = "printf '[core]\n\tfsmonitor = \"touch '$top'/ran; false\"\n' > config;";
    let go = "mkdir objects refs; rm commondir; cd $top; mv $y n/.git;";
    let user = "git -C n status; test -e ran";
    assert!(session.control(&format!("{begin} {hostile} mv c commondir; {go} {user}")), "it works outside");
    assert!(session.control("rm -rf o n ran"));
    for come in [
        format!("{hostile} mv c commondir"),
        format!("{hostile} echo ../.. > commondir"),
        format!(
            "exec 3> commondir; echo ../.. >&3; {hostile} exec 3>&-; i=0; \
             while [ $i -lt 40 ]; do i=$((i+1)); sleep .05; test ! -e commondir; done; exit 1"
        ),
    ] {
        session.sh(&format!("exec 2>&1; {begin} {come}")).assert_fails();
        assert!(session.control("test ! -e o/.git/modules/m/worktrees/y/commondir"), "{come}");
    }
    session.sh(&format!("{begin} printf '[core]\n\tbare = false\n' > config; mv c commondir")).assert(0, "");

    let part = "set -e; rm -rf p x.git; mkdir -p p/heads x.git/objects; echo ref: refs/heads/b > x.git/HEAD; \
         ln -s \"$P/home\" p/heads/f; mv p x.git/refs";
    let branch = "git init -q r; git -C r -c user.name=u -c user.email=u commit -q --allow-empty -m m; \
         cp -r r/.git/objects/. x.git/objects; git -C x.git branch f/x $(git -C r rev-parse HEAD); \
         test -e \"$P/home/x\"";
    assert!(session.control(&format!("{part}; {branch}")), "it works outside");
    assert!(session.control("rm -rf p x.git \"$P/home/x\""));
    session.sh(&format!("exec 2>&1; {part}")).assert_fails();
    assert!(session.control("test ! -e x.git/refs && test -d p"));
}
