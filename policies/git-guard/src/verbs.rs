//! The effect of a git call on history.

use crate::arguments::Call;

/// The effect of a call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    ForcePush,
    DeleteRemote,
    /// An ordinary push.
    Push(Targets),
    /// It rewrites or discards history or work, by this.
    Rewrite(String),
    /// It makes git run other programs, by this.
    Runs(String),
    /// A relevant word is uncertain.
    Unclear,
}

/// The targets of a push.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Targets {
    /// The branches that it names.
    pub(crate) branches: Vec<String>,
    /// Whether it pushes every branch, or all that match a pattern.
    pub(crate) many: bool,
    /// Whether it pushes the current branch, whatever that is.
    pub(crate) current: bool,
}

/// Settings that name a program for git to run.
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

/// Returns the effect of a call; `None` if it is harmless.
pub(crate) fn finding(call: &Call) -> Option<Finding> {
    if let Some(setting) = call.settings.iter().find(|setting| names_program(setting)) {
        return Some(Finding::Runs(format!("`-c {setting}`")));
    }
    let found = of_verb(call);
    match (&found, call.odd) {
        // A verb after an unknown option may not be the verb.
        (None | Some(Finding::Push(_) | Finding::Rewrite(_)), true) => Some(Finding::Unclear),
        _ => found,
    }
}

fn of_verb(call: &Call) -> Option<Finding> {
    let rewrite = |what: &str| Some(Finding::Rewrite(format!("`git {what}`")));
    match call.verb.as_str() {
        "push" | "send-pack" => Some(push(call)),
        "config" => config(call),
        "submodule" | "bisect" => inner(call),
        "rebase" => rewrite("rebase"),
        "filter-branch" | "filter-repo" | "replace" | "update-ref" | "fast-import" => rewrite(&call.verb),
        "commit" if call.has("--amend") => rewrite("commit --amend"),
        "reset" if call.has("--hard") || call.has("--merge") => rewrite("reset --hard"),
        "clean" if call.has("--force") => rewrite("clean --force"),
        "checkout" | "switch" if call.has("--force") || call.has("--discard-changes") => {
            rewrite(&format!("{} --force", call.verb))
        }
        "checkout" if call.has("-B") => rewrite("checkout -B"),
        "branch" if call.has("--delete") || call.has("--force") || call.has("-D") => {
            rewrite("branch --delete")
        }
        "tag" if call.has("--delete") || call.has("--force") => rewrite("tag --delete"),
        "stash" if call.operands().next().is_some_and(|word| word == "drop" || word == "clear") => {
            rewrite("stash drop")
        }
        "reflog" if call.operands().next().is_some_and(|word| word == "expire" || word == "delete") => {
            rewrite("reflog expire")
        }
        "gc" if call.has("--prune") => rewrite("gc --prune"),
        "prune" => rewrite("prune"),
        "" if call.unclear => Some(Finding::Unclear),
        "reset" | "clean" | "checkout" | "branch" | "tag" | "commit" if call.unclear => {
            Some(Finding::Unclear)
        }
        _ => None,
    }
}

fn push(call: &Call) -> Finding {
    let forced = call.has("--force")
        || call.has("--force-with-lease")
        || call.has("--mirror")
        || call.operands().any(|word| word.starts_with('+'));
    let deletes = call.has("--delete")
        || call.has("--prune")
        || call.operands().skip(1).any(|word| word.starts_with(':'));
    if forced {
        return Finding::ForcePush;
    }
    if deletes {
        return Finding::DeleteRemote;
    }
    if call.has("--receive-pack") || call.has("--exec") {
        return Finding::Runs("`--receive-pack`".to_owned());
    }
    if call.unclear {
        return Finding::Unclear;
    }
    let named: Vec<&str> = call.operands().skip(1).collect();
    let branches: Vec<String> = named.iter().map(|word| branch(word)).collect();
    let many =
        call.has("--all") || call.has("--branches") || branches.iter().any(|branch| branch.contains('*'));
    let current = !many && branches.iter().all(|branch| branch == "HEAD" || branch == "@");
    Finding::Push(Targets { branches, many, current })
}

/// Returns the remote branch of a refspec: `x`, `HEAD:x`, `x:refs/heads/x`, `HEAD:heads/x`.
fn branch(word: &str) -> String {
    let target = word.rsplit(':').next().unwrap_or_default();
    let target = target.strip_prefix("refs/").unwrap_or(target);
    target.strip_prefix("heads/").unwrap_or(target).to_owned()
}

/// Returns the effect of a command that git runs: in each submodule, or at each step of a bisection.
fn inner(call: &Call) -> Option<Finding> {
    let runs = if call.verb == "bisect" { "run" } else { "foreach" };
    let place = call.words.iter().position(|word| word == runs)?;
    let is_option = |word: &&String| word.starts_with('-');
    let words: Vec<String> = call.words.iter().skip(place + 1).skip_while(is_option).cloned().collect();
    if let Some(inner) = Call::of_words(&words) {
        return finding(&inner);
    }
    // A single word is a script of its own, which has not been analysed.
    (call.unclear || words.iter().any(|word| word.contains("git"))).then_some(Finding::Unclear)
}

/// Returns the effect of writing a setting that names a program.
fn config(call: &Call) -> Option<Finding> {
    if call.has("--edit") {
        return Some(Finding::Runs("`git config --edit`".to_owned()));
    }
    let reads = ["--get", "--list", "--get-all", "--get-regexp"].iter().any(|option| call.has(option));
    let mut operands = call.operands().filter(|word| !["set", "get", "list"].contains(word));
    let name = operands.next();
    if reads || call.has("-l") || operands.next().is_none() {
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
