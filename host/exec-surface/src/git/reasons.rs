//! Reasons why keys of git's configuration require a question.

use super::url;

/// The reason for a promisor remote, and for its address.
pub(crate) const FETCHES_BY_ITSELF: &str =
    "makes every git command fetch missing objects, from an address of its own";

fn is_local(value: Option<&[u8]>) -> bool {
    let value = value.and_then(|value| std::str::from_utf8(value).ok());
    value.is_some_and(|value| url::is_harmless(value) && url::local(value).is_some())
}

/// Returns what the key `name` does with `value`, as the end of a sentence that begins with the key.
pub(crate) fn reason(name: &str, value: Option<&[u8]>) -> &'static str {
    let section = name.split('.').next().unwrap_or_default();
    let key = name.rsplit('.').next().unwrap_or_default();
    let begins = |start: &[u8]| value.is_some_and(|value| value.starts_with(start));
    match (section, key) {
        ("include" | "includeif", _) => "includes another settings file",
        ("alias", _) => "makes a command of its own, which may be any program",
        ("core", "hookspath") | ("init", "templatedir") => "chooses the directory of hooks, which git runs",
        ("core", "worktree") => "makes git use another directory as the working tree",
        ("core", "attributesfile" | "excludesfile") | ("commit", "template") => "makes git read another file",
        ("url", _) => "makes git connect to another address than the written one",
        ("http" | "https", _) | ("remote", "proxy" | "proxyauthmethod") => {
            "changes how git connects and which servers it trusts"
        }
        ("credential", _) => "decides which programs get your passwords",
        ("protocol", _) => "lets addresses run programs",
        (_, "url" | "pushurl" | "remote" | "pushremote") if is_local(value) => {
            "makes git take a repository from outside of the project"
        }
        ("remote", "url" | "pushurl") | ("submodule", "url") | ("branch", "remote" | "pushremote") => {
            "is an address that git hands to a program, or that passes options to one"
        }
        ("submodule", "update") if begins(b"!") => "names a program that git runs",
        ("extensions", "partialclone") | ("remote", "promisor" | "partialclonefilter") => FETCHES_BY_ITSELF,
        ("remote", "mirror" | "push") => "decides what a push overwrites and deletes",
        ("commit" | "tag", "gpgsign") | ("transfer" | "fetch" | "receive", "fsckobjects") => {
            "switches off one of your protections"
        }
        _ if is_program(section, key) => "names a program that git runs",
        _ => "is not in the list of harmless git settings",
    }
}

fn is_program(section: &str, key: &str) -> bool {
    let whole_section = [
        "alias",
        "browser",
        "difftool",
        "filter",
        "guitool",
        "hook",
        "man",
        "mergetool",
        "pager",
        "sendemail",
        "trailer",
    ];
    let keys = [
        "askpass",
        "alternaterefscommand",
        "clean",
        "cmd",
        "command",
        "defaultkeycommand",
        "driver",
        "difffilter",
        "editor",
        "external",
        "fsmonitor",
        "gitproxy",
        "helper",
        "packobjectshook",
        "pager",
        "path",
        "process",
        "program",
        "receivepack",
        "recentobjectshook",
        "smudge",
        "sshcommand",
        "textconv",
        "tool",
        "uploadpack",
        "vcs",
    ];
    whole_section.contains(&section) || keys.contains(&key)
}
