//! What a call of git does to history.

use portcullis_sdk::SimpleCommand;

use crate::arguments::Call;

/// What was found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    ForcePush,
    DeleteRemote,
    /// An ordinary push, with the branches that it names.
    Push(Vec<String>),
    /// History or work is rewritten or thrown away, by this.
    Rewrite(String),
    /// Git is made to run other programs, by this.
    Runs(String),
    /// A word that matters is not known.
    Unclear,
}

/// Settings that name a program which git runs.
const PROGRAMS: [&str; 22] = [
    "alias.",
    "core.sshcommand",
    "core.hookspath",
    "core.fsmonitor",
    "core.pager",
    "core.editor",
    "core.askpass",
    "core.gitproxy",
    "core.worktree",
    "sequence.editor",
    "credential.",
    "diff.external",
    "gpg.",
    "uploadpack.",
    "filter.",
    "merge.",
    "difftool.",
    "mergetool.",
    "include.path",
    "includeif.",
    "protocol.ext.",
    "remote.pushdefault.",
];

/// Says what a command does; none when it is not git or harmless.
pub(crate) fn finding(command: &SimpleCommand) -> Option<Finding> {
    let runs =
        |name: &str| name.starts_with("GIT_") && (name.ends_with("COMMAND") || name.ends_with("_EXEC_PATH"));
    let call = Call::of(command)?;
    if let Some((name, _)) = command.assignments.iter().find(|(name, _)| runs(name)) {
        return Some(Finding::Runs(format!("`{name}`")));
    }
    if let Some(setting) = call.settings.iter().find(|setting| names_program(setting)) {
        return Some(Finding::Runs(format!("`-c {setting}`")));
    }
    let rewrite = |what: &str| Some(Finding::Rewrite(format!("`git {what}`")));
    match call.verb.as_str() {
        "push" | "send-pack" => Some(push(&call)),
        "config" => config(&call),
        "rebase" => rewrite("rebase"),
        "filter-branch" | "filter-repo" | "replace" | "update-ref" | "fast-import" => rewrite(&call.verb),
        "commit" if call.has("--amend", None) => rewrite("commit --amend"),
        "reset" if call.has("--hard", None) || call.has("--merge", None) => rewrite("reset --hard"),
        "clean" if call.has("--force", Some('f')) => rewrite("clean --force"),
        "checkout" | "switch" if call.has("--force", Some('f')) || call.has("--discard-changes", None) => {
            rewrite(&format!("{} --force", call.verb))
        }
        "checkout" if call.has("-B", Some('B')) => rewrite("checkout -B"),
        "branch"
            if call.has("--delete", Some('d'))
                || call.has("--force", Some('f'))
                || call.has("-D", Some('D')) =>
        {
            rewrite("branch --delete")
        }
        "tag" if call.has("--delete", Some('d')) || call.has("--force", Some('f')) => rewrite("tag --delete"),
        "stash" if call.operands().next().is_some_and(|word| word == "drop" || word == "clear") => {
            rewrite("stash drop")
        }
        "reflog" if call.operands().next().is_some_and(|word| word == "expire" || word == "delete") => {
            rewrite("reflog expire")
        }
        "gc" if call.has("--prune", None) => rewrite("gc --prune"),
        "prune" => rewrite("prune"),
        "" if call.unclear => Some(Finding::Unclear),
        "reset" | "clean" | "checkout" | "branch" | "tag" | "commit" if call.unclear => {
            Some(Finding::Unclear)
        }
        _ => None,
    }
}

fn push(call: &Call) -> Finding {
    let forced = call.has("--force", Some('f'))
        || call.has("--force-with-lease", None)
        || call.has("--mirror", None)
        || call.operands().any(|word| word.starts_with('+'));
    let deletes = call.has("--delete", Some('d'))
        || call.has("--prune", None)
        || call.operands().skip(1).any(|word| word.starts_with(':'));
    if forced {
        return Finding::ForcePush;
    }
    if deletes {
        return Finding::DeleteRemote;
    }
    if call.has("--receive-pack", None) || call.has("--exec", None) {
        return Finding::Runs("`--receive-pack`".to_owned());
    }
    if call.unclear {
        return Finding::Unclear;
    }
    let target = |word: &str| {
        let target = word.rsplit(':').next().unwrap_or_default();
        target.strip_prefix("refs/heads/").unwrap_or(target).to_owned()
    };
    Finding::Push(call.operands().skip(1).map(target).collect())
}

/// Settings that are written and name a program.
fn config(call: &Call) -> Option<Finding> {
    if call.has("--edit", Some('e')) {
        return Some(Finding::Runs("`git config --edit`".to_owned()));
    }
    let reads = ["--get", "--list", "--get-all", "--get-regexp"].iter().any(|option| call.has(option, None));
    let mut operands = call.operands().filter(|word| !["set", "get", "list"].contains(word));
    let name = operands.next();
    if reads || call.has("-l", Some('l')) || operands.next().is_none() {
        return call.unclear.then_some(Finding::Unclear);
    }
    name.filter(|name| names_program(name)).map(|name| Finding::Runs(format!("`git config {name}`")))
}

fn names_program(setting: &str) -> bool {
    let name = setting.split('=').next().unwrap_or_default().to_ascii_lowercase();
    PROGRAMS.iter().any(|known| name.starts_with(known))
        || name.ends_with(".receivepack")
        || name.ends_with(".uploadpack")
}
