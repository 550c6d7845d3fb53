//! Contents that make git run a program, or use other directories: rows 31 to 39 of the attacks, and similar ones.

use portcullis_exec_surface::git::{Content, Judgement};

use crate::kit::judged;

/// Each line is a variable that must not pass.
const ASKING: &[&str] = &[
    "core.fsmonitor=cmd",
    "core.fsmonitor",
    "core.fsmonitor=true",
    "core.hooksPath=.evil",
    "core.sshCommand=evil",
    "core.editor=evil",
    "core.pager=evil",
    "core.askPass=evil",
    "core.gitProxy=evil",
    "core.alternateRefsCommand=evil",
    "core.attributesFile=.evil",
    "core.excludesFile=/etc/passwd",
    "core.worktree=/home/u",
    "core.commentChar=p",
    "receive.denyCurrentBranch=updateInstead",
    "core.sharedRepository=0777",
    "core.protectNTFS=false",
    "sequence.editor=evil",
    "pager.log=evil",
    "interactive.diffFilter=evil",
    "alias.st=!evil",
    "alias.st=status",
    "include.path=../evil",
    "includeIf.gitdir:/.path=../evil",
    "filter.x.clean=evil",
    "filter.x.smudge=evil",
    "filter.x.process=evil",
    "filter.x.required=true",
    "diff.external=evil",
    "diff.x.command=evil",
    "diff.x.textconv=evil",
    "diff.tool=x",
    "difftool.x.cmd=evil",
    "merge.x.driver=evil",
    "merge.tool=x",
    "mergetool.x.path=evil",
    "gpg.program=evil",
    "gpg.ssh.program=evil",
    "gpg.ssh.defaultKeyCommand=evil",
    "gpg.ssh.allowedSignersFile=evil",
    "commit.gpgSign=false",
    "commit.template=/etc/passwd",
    "credential.helper=!evil",
    "credential.helper=",
    "credential.https://host.test.helper=evil",
    "url.https://evil.test/.insteadOf=https://github.com/",
    "url.ext::sh.pushInsteadOf=x",
    "http.proxy=http://evil.test",
    "http.sslVerify=false",
    "http.https://host.test.extraHeader=x",
    "http.cookieFile=x",
    "protocol.ext.allow=always",
    "protocol.allow=always",
    "extensions.partialClone=origin",
    "remote.origin.promisor=true",
    "remote.origin.promisor",
    "remote.origin.partialCloneFilter=blob:none",
    "remote.origin.url=/home/u/private",
    "remote.origin.url=file:///home/u/private",
    "remote.origin.url=file:///w/%2e%2e/home/u/private",
    "remote.origin.url=file://w/x",
    "remote.origin.url=~/private",
    "remote.origin.url=~u/private",
    "branch.main.remote=~/private",
    "remote.origin.url=../../u/private",
    "remote.origin.url=sub/../../x",
    "branch.main.remote=/home/u/private",
    "submodule.x.url=/home/u/private",
    "remote.origin.url=ext::sh -c evil",
    "remote.origin.url=-u",
    "remote.origin.url",
    "remote.origin.pushurl=evil::x",
    "remote.origin.uploadpack=evil",
    "remote.origin.receivepack=evil",
    "remote.origin.vcs=evil",
    "remote.origin.push=:refs/heads/main",
    "remote.origin.mirror=true",
    "remote.origin.proxy=http://evil.test",
    "remote.--upload-pack.url=x",
    "remote.https://github.com/a.url=https://evil.test/a",
    "remotes.all=--upload-pack=evil",
    "branch.main.remote=ext::sh -c evil",
    "branch.main.remote=--upload-pack=evil",
    "branch.main.merge=-x",
    "branch.main.mergeOptions=--strategy=evil",
    "branch.main.pushRemote=evil::x",
    "submodule.x.update=!evil",
    "submodule.x.url=ext::sh",
    "submodule.../../x.url=https://a.test/b",
    "submodule.x.path=../x",
    "init.templateDir=/w/evil",
    "gc.recentObjectsHook=evil",
    "gc.repackFilterTo=/x",
    "rebase.instructionFormat=%s%nexec evil",
    "pull.twohead=evil",
    "uploadpack.packObjectsHook=evil",
    "receive.procReceiveRefs=x",
    "sendemail.smtpServer=evil",
    "sendemail.x.sendmailCmd=evil",
    "trailer.x.command=evil",
    "trailer.x.cmd=evil",
    "tar.x.command=evil",
    "browser.x.cmd=evil",
    "web.browser=evil",
    "man.x.cmd=evil",
    "help.autoCorrect=immediate",
    "hook.x.command=evil",
    "lfs.customtransfer.x.path=evil",
    "lfs.url=https://evil.test",
    "push.pushOption=x",
    "fetch.bundleURI=https://evil.test",
    "transfer.fsckObjects=false",
    "safe.directory=*",
    "trace2.eventTarget=/w/x",
    "extensions.objectFormat=sha256",
    "unknown.key=1",
];

/// Returns the text of a configuration file that sets one variable.
fn text(variable: &str) -> String {
    let (name, value) = match variable.split_once('=') {
        Some((name, value)) => (name, format!(" = {value}")),
        None => (variable, String::new()),
    };
    let (section, rest) = name.split_once('.').unwrap();
    match rest.rsplit_once('.') {
        Some((subsection, key)) => format!("[{section} \"{subsection}\"]\n\t{key}{value}\n"),
        None => format!("[{section}]\n\t{rest}{value}\n"),
    }
}

fn asks(judgement: &Judgement) -> bool {
    matches!(judgement, Judgement::Asks(findings) if !findings.is_empty())
}

#[test]
fn what_runs_a_program_or_leads_elsewhere_asks() {
    for variable in ASKING {
        let text = text(variable);
        let judgement = judged(Content::Config, ".git/config", None, &text);
        assert!(asks(&judgement), "{text} is {judgement:?}");
        let harmless = "[core]\n\tbare = false\n";
        let judgement = judged(Content::Config, ".git/config", Some(harmless), &format!("{harmless}{text}"));
        assert!(asks(&judgement), "{text} is {judgement:?}");
    }
}

#[test]
fn what_the_user_has_set_stays() {
    for variable in ASKING {
        let users = text(variable);
        let more = format!("{users}[branch \"x\"]\n\tremote = origin\n\tmerge = refs/heads/x\n");
        assert_eq!(
            judged(Content::Config, ".git/config", Some(&users), &more),
            Judgement::Harmless,
            "{users}"
        );
        assert_eq!(judged(Content::Config, ".git/config", Some(&users), ""), Judgement::Harmless, "{users}");
    }
}

#[test]
fn a_value_of_the_user_is_not_put_in_another_place() {
    let users = "[core]\n\tpager = one\n\tpager = two\n[alias]\n\tst = status\n";
    let changed = [
        "[core]\n\tpager = two\n\tpager = one\n",
        "[core]\n\tpager = one\n",
        "[core]\n\tpager = one\n\tpager = two\n\tpager = one\n",
        "[core]\n\teditor = one\n",
        "[alias]\n\tco = status\n",
    ];
    for text in changed {
        assert!(asks(&judged(Content::Config, ".git/config", Some(users), text)), "{text}");
    }
    let moved =
        "[alias]\n\tST = status\n[user]\n\tname = A\n[core]\n\tpager = \"one\"\n[core] pager = two ; x\n";
    assert_eq!(judged(Content::Config, ".git/config", Some(users), moved), Judgement::Harmless);
}

#[test]
fn spellings_do_not_help() {
    for text in [
        "[CORE]FSMONITOR=x",
        "[core]\r\n\tfsmonitor = x\r\n",
        "\u{feff}[core]\nfsmonitor = x\n",
        "[core]\nbare = false\\\n\nfsmonitor = x",
        "[core] # c\nfsmonitor = x",
        "[core]; [user]\nfsmonitor = x",
        "[user]\nname = \"a\"\n[core]fsmonitor=x",
        "[alias.x]\ny = z",
        "[core]\nfsmonitor = \"x\" ; false",
        "[core]\nfsmonitor = false\nfsmonitor = x",
        "[core]\nfsmonitor = fal\\\nsex",
    ] {
        assert!(asks(&judged(Content::Config, ".git/config", None, text)), "{text:?}");
    }
}

#[test]
fn what_cannot_be_read_is_not_let_through() {
    for text in ["[core", "[core]\nx = \"", "[core]\nbare = true\0fsmonitor", "garbage!"] {
        assert!(
            matches!(judged(Content::Config, ".git/config", None, text), Judgement::Unreadable(_)),
            "{text:?}"
        );
    }
    let long = "#".repeat((1 << 20) + 1);
    for content in [Content::Config, Content::GitFile, Content::RebaseTodo, Content::Attributes] {
        assert!(matches!(judged(content, ".git/x", None, &long), Judgement::Unreadable(_)));
    }
}

#[test]
fn reasons_name_the_key_and_the_line() {
    let text = "[core]\n\tbare = false\n\tfsmonitor = x\n[alias]\n\ta = b\n\tc = d\n\te = f\n";
    let reason = judged(Content::Config, ".git/config", None, text).reason().unwrap();
    assert_eq!(
        reason,
        "`core.fsmonitor` on line 3 names a program that git runs; \
         `alias.a` on line 5 makes a command of its own, which may be any program; \
         `alias.c` on line 6 makes a command of its own, which may be any program; and 1 more"
    );
    let text = "[x \"\u{1b}[2J\"]\ny = z\n";
    let reason = judged(Content::Config, ".git/config", None, text).reason().unwrap();
    assert!(reason.starts_with(r"`x.\u{1b}[2J.y` on line 2"), "{reason}");
    let reason = judged(Content::Config, ".git/config", None, "[").reason().unwrap();
    assert_eq!(reason, "it cannot be judged: git cannot parse line 1");
}

#[test]
fn the_modules_file_is_read_for_submodules_only() {
    let check = |text: &str, expected: bool| {
        let judgement = judged(Content::Modules, ".gitmodules", None, text);
        assert_eq!(judgement == Judgement::Harmless, expected, "{text}: {judgement:?}");
    };
    check("[submodule \"a/b\"]\n\tpath = a/b\n\turl = ../b.git\n\tbranch = .\n", true);
    check("[submodule \"a/b\"]\n\tpath = a/b\n\turl = ../b.git\n\tbranch = main\n\tshallow = true\n", true);
    check("[alias]\n\tx = !evil\n", true);
    check("[submodule \"x\"]\n\tupdate = !evil\n", false);
    check("[submodule \"x\"]\n\turl = --upload-pack=evil\n", false);
    check("[submodule \"x\"]\n\tpath = -x\n", false);
    check("[submodule \"x\"]\n\tpath = a/.Git/hooks\n", false);
    check("[submodule \"../x\"]\n\tpath = x\n", false);
}

#[test]
fn pointers_are_judged_by_where_they_lead() {
    assert_eq!(judged(Content::GitFile, "s/.git", None, "gitdir: ../.git/modules/s\n"), Judgement::Harmless);
    assert!(asks(&judged(Content::GitFile, "s/.git", None, "gitdir: ./evil\n")));
    assert_eq!(
        judged(Content::GitFile, "s/.git", Some("gitdir: ./x\n"), "gitdir: ./x\n"),
        Judgement::Harmless
    );
    assert!(asks(&judged(Content::CommonDirectory, ".git/commondir", None, "../evil\n")));
    assert_eq!(
        judged(Content::CommonDirectory, ".git/worktrees/a/commondir", None, "../..\n"),
        Judgement::Harmless
    );
    assert!(asks(&judged(Content::WayBack, ".git/worktrees/a/gitdir", None, "/etc/passwd\n")));
    assert!(asks(&judged(Content::WayBack, ".git/worktrees/a/gitdir", None, "/home/u/.git\n")));
    let outside = Some("/home/u/tree/.git\n");
    let again = judged(Content::WayBack, ".git/worktrees/a/gitdir", outside, "/home/u/tree/.git\n");
    assert_eq!(again, Judgement::Harmless, "a worktree of the user's");
    assert!(asks(&judged(Content::RebaseTodo, "git-rebase-todo", None, "pick 1\nexec evil\n")));
    assert!(asks(&judged(Content::Strategy, ".git/rebase-merge/strategy", None, "../x\n")));
    assert!(asks(&judged(Content::Strategy, ".git/rebase-merge/strategy", Some("ort\n"), "x\n")));
    assert_eq!(judged(Content::Strategy, ".git/rebase-merge/strategy", None, "ort\n"), Judgement::Harmless);
    goes_on_with_known_options();
    let options = "[options]\n\tallow-ff = true\n\tstrategy-option = ours\n\tstrategy = ";
    let picks = |strategy: &str| {
        judged(Content::SequencerOptions, ".git/sequencer/opts", None, &format!("{options}{strategy}\n"))
    };
    assert!(asks(&picks("../x")) && asks(&picks("\"\"")));
    assert_eq!(picks("recursive"), Judgement::Harmless);
    assert!(asks(&judged(Content::Attributes, ".git/info/attributes", None, "* filter=x\n")));
}

fn goes_on_with_known_options() {
    let strategy = |text: &str| {
        judged(Content::StrategyOptions, ".git/rebase-merge/strategy_opts", None, &format!("{text}\n"))
    };
    for text in [
        "",
        "\"--ours\"",
        " '--subtree=lib'",
        "\"--find-renames=30%\" \"--diff-algorithm=histogram\"",
        "theirs",
    ] {
        assert_eq!(strategy(text), Judgement::Harmless, "{text}");
    }
    for text in [
        "\"--index-output=/home/u/.profile\"",
        " '--index-output=/home/u/.profile'",
        "--ours '--x",
        "--ours\\ --index-output=x",
        "'--ours'\"--x\"",
        "--subtree=../x",
        "--ours\n--index-output=x",
    ] {
        assert!(asks(&strategy(text)), "{text}");
    }
    let apply = |text: &str| judged(Content::ApplyOptions, ".git/rebase-apply/apply-opt", None, text);
    for text in ["", " '-p1' '-C5' '--whitespace=fix' '--reject'\n", " '--directory=lib/a' '--exclude=*.o'\n"]
    {
        assert_eq!(apply(text), Judgement::Harmless, "{text}");
    }
    for text in [
        " '--build-fake-ancestor=/home/u/.profile'\n",
        " '--directory=../x'",
        " '--directory=.git/hooks'",
        " '--unsafe-paths'",
        " '-p'\\''1'",
        "-px",
    ] {
        assert!(asks(&apply(text)), "{text}");
    }
    let picks = |entry: &str| {
        judged(Content::SequencerOptions, ".git/sequencer/opts", None, &format!("[options]\n\t{entry}\n"))
    };
    assert!(asks(&picks("strategy-option = index-output=/home/u/.profile")));
    assert!(asks(&picks("strategy-option")) && asks(&picks("new-key = x")));
    assert_eq!(picks("strategy-option = find-renames=20"), Judgement::Harmless);
    assert_eq!(picks("gpg-sign = ABCD\n\tmainline = 1\n\tno-commit = true"), Judgement::Harmless);
}

#[test]
fn a_repository_with_a_working_tree_is_not_bare() {
    let mirror = "[core]\n\tbare = true\n[remote \"o\"]\n\tmirror = true\n";
    assert_eq!(judged(Content::Config, "x.git/config", None, mirror), Judgement::Harmless);
    assert!(asks(&judged(Content::Config, ".git/config", None, mirror)));
    let second = format!("{mirror}[extensions]\n\tworktreeConfig = true\n");
    assert!(asks(&judged(Content::Config, "x.git/config", None, &second)));
}

#[test]
fn what_stood_there_is_judged_again_where_another_key_gives_it_a_meaning() {
    let module = ".git/modules/s/config";
    let then = |before: &str, now: &str| judged(Content::Config, module, Some(before), now);
    let mirror = "[core]\n\tbare = BARE\n[remote \"o\"]\n\tmirror = true\n";
    assert!(asks(&then(&mirror.replace("BARE", "true"), &mirror.replace("BARE", "false"))));
    let lender = "[remote \"o\"]\n\turl = https://a.test/\n";
    let promisor = format!("{lender}\tpromisor = true\n");
    assert!(asks(&then(lender, &promisor)));
    // A worktree of a submodule resolves it relative to its own settings.
    let tree = "[core]\n\tworktree = ../../../s\n";
    let shared = format!("{tree}[extensions]\n\tworktreeConfig = true\n");
    assert_eq!(judged(Content::Config, module, None, tree), Judgement::Harmless);
    assert!(asks(&judged(Content::Config, module, None, &shared)) && asks(&then(tree, &shared)));
    assert_eq!(then(&shared, &shared), Judgement::Harmless);
}

#[test]
fn addresses_of_a_submodule_do_not_lead_up() {
    let of = |path: &str, url: &str| {
        let text = format!("[remote \"o\"]\n\turl = {url}\n");
        asks(&judged(Content::Config, path, None, &text))
    };
    // Its working tree may be any directory of the project.
    assert!(of("n/.git/modules/s/config", "../x") && !of("n/.git/config", "../x"));
    assert!(!of("n/.git/modules/s/config", "https://a.test/") && !of("n/.git/modules/s/config", "/w/x"));
}

#[test]
fn objects_are_lent_from_the_workspace_only() {
    let lent =
        |line: &str| judged(Content::Alternates, ".git/objects/info/alternates", None, &format!("{line}\n"));
    assert_eq!(lent("../../up/.git/objects"), Judgement::Harmless);
    assert!(asks(&lent("/home/u/private/.git/objects")));
    assert!(asks(&lent("\"/home/u/private/.git/objects\"")), "git takes the quotes off");
}

#[test]
fn files_whose_conflicts_are_remembered_are_the_users() {
    let id = "0123456789abcdef0123456789abcdef01234567";
    let records = |paths: &[&str]| paths.iter().map(|path| format!("{id}\t{path}\0")).collect::<String>();
    let conflicts =
        |previous: Option<&str>, new: &str| judged(Content::Conflicts, ".git/MERGE_RR", previous, new);
    for path in ["/home/u/.ssh/id_rsa", "../../home/u/.ssh/id_rsa", ".git/config", "may-be-a-link/id_rsa"] {
        assert!(asks(&conflicts(None, &records(&[path]))), "{path}");
        assert!(asks(&conflicts(Some(&records(&["f"])), &records(&["f", path]))), "{path}");
    }
    assert!(asks(&conflicts(None, &records(&["\n/home/u/x"]))), "a line is not an entry");
    assert_eq!(conflicts(None, ""), Judgement::Harmless);
    assert_eq!(conflicts(Some(&records(&["f", "g"])), &records(&["g"])), Judgement::Harmless);
}

/// No judgement may take time quadratic in the text: commands wait for it.
#[test]
fn long_texts_are_judged_in_one_go() {
    let remotes: String = (0..40_000).map(|index| format!("[remote \"{index:x}\"]\npromisor\n")).collect();
    assert!(asks(&judged(Content::Config, ".git/config", None, &remotes)));
    // The names of these variables would exhaust the memory of a large machine.
    let long = format!("[remote \"{}\"]\n{}", "x".repeat(700_000), "a\n".repeat(90_000));
    assert!(matches!(judged(Content::Config, ".git/config", None, &long), Judgement::Unreadable(_)));
    let lenders =
        |from: usize| (from..from + 80_000).map(|index| format!("/a/{index}\n")).collect::<String>();
    let path = ".git/objects/info/alternates";
    assert!(asks(&judged(Content::Alternates, path, Some(&lenders(0)), &lenders(100_000))));
}
