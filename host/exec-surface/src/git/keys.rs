//! The keys of git's configuration that name no program, no included file and no other directory to search. All other
//! keys require a question.
//!
//! A key is in the table if the worst value of its shape makes git do only its own work on the repository at hand. Left
//! out for a reason: `branch.*.mergeOptions` (options of git-merge), `remote.*.push` (deletes refs that are not named),
//! `rebase.instructionFormat` (could add lines to a rebase's list), `core.commentChar` (could turn a comment of that
//! list into a line), `commit.template`, `core.excludesFile` and `core.attributesFile` (paths),
//! `extensions.partialClone`, `remote.*.promisor` and `remote.*.partialCloneFilter` (every git command fetches missing
//! objects), `init.templateDir` (contains hooks), `gc.recentObjectsHook`, `receive.denyCurrentBranch = updateInstead`
//! (a push writes files and runs a hook), `pull.twohead` (names a strategy, which is a program), `help.autoCorrect`
//! (runs what was not typed), `protocol.*` except the version, and all of `http`, `credential` and `url`.

use super::value_shape::Shape::{
    self, Bool, InBare, Number, Off, On, OneOf, PathBelow, Paths, Reference, Refspec, Remote, Remotes, Text,
    Url, Words, Worktree,
};

/// Returns the required shape of the value of the key `name`; `None` if no value of it is known to be harmless.
///
/// `name` is in git's canonical form; in the table `*` stands for a subsection, and at the end for any key.
pub(crate) fn shape(name: &str) -> Option<Shape> {
    let (section, rest) = name.split_once('.')?;
    match rest.rsplit_once('.') {
        Some((subsection, key)) if is_subsection(section, subsection) => find(&format!("{section}.*.{key}")),
        Some(_) => None,
        None => find(name).or_else(|| find(&format!("{section}.*"))),
    }
}

fn find(pattern: &str) -> Option<Shape> {
    let index = KEYS.binary_search_by(|(known, _)| (*known).cmp(pattern)).ok()?;
    KEYS.get(index).map(|(_, shape)| *shape)
}

/// Returns true if a subsection is a name that git itself would give.
fn is_subsection(section: &str, subsection: &str) -> bool {
    match section {
        "branch" => super::value_shape::is_reference(subsection),
        "remote" => super::value_shape::is_remote_name(subsection),
        "submodule" => super::value_shape::is_submodule_name(subsection),
        "gc" => !subsection.chars().any(char::is_control),
        _ => {
            !subsection.is_empty()
                && subsection.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        }
    }
}

const WHEN: Shape = Words(&["auto", "always", "never"]);
const REBASE: Shape = Words(&["merges", "m", "interactive", "i"]);
const FAST_FORWARD: Shape = Words(&["only"]);
const SUBMODULES: Shape = Words(&["on-demand", "check", "only"]);

/// Sorted by name.
const KEYS: &[(&str, Shape)] = &[
    ("advice.*", Bool),
    ("am.keepcr", Bool),
    ("am.threeway", Bool),
    ("apply.ignorewhitespace", Words(&["change", "none", "never"])),
    ("apply.whitespace", Words(&["nowarn", "warn", "fix", "error", "error-all"])),
    ("author.email", Text),
    ("author.name", Text),
    ("blame.ignorerevsfile", PathBelow),
    ("branch.*.description", Text),
    ("branch.*.gh-merge-base", Reference),
    ("branch.*.merge", Reference),
    ("branch.*.pushremote", Remote),
    ("branch.*.rebase", REBASE),
    ("branch.*.remote", Remote),
    ("branch.*.vscode-merge-base", Reference),
    ("branch.autosetupmerge", Words(&["always", "inherit", "simple"])),
    ("branch.autosetuprebase", Words(&["never", "local", "remote", "always"])),
    ("branch.sort", Text),
    ("checkout.defaultremote", Remote),
    ("checkout.guess", Bool),
    ("checkout.workers", Number),
    ("clone.defaultremotename", Reference),
    ("clone.filtersubmodules", Bool),
    ("clone.rejectshallow", Bool),
    ("color.branch", WHEN),
    ("color.diff", WHEN),
    ("color.status", WHEN),
    ("color.ui", WHEN),
    ("commit.cleanup", Words(&["strip", "whitespace", "verbatim", "scissors", "default"])),
    ("commit.gpgsign", On),
    ("commit.status", Bool),
    ("commit.verbose", Bool),
    ("commitgraph.changedpathsversion", Number),
    ("commitgraph.generationversion", Number),
    ("commitgraph.readchangedpaths", Bool),
    ("committer.email", Text),
    ("committer.name", Text),
    ("core.abbrev", Words(&["auto", "no"])),
    ("core.autocrlf", Words(&["input"])),
    ("core.bare", Bool),
    ("core.bigfilethreshold", Number),
    ("core.checkstat", Words(&["default", "minimal"])),
    ("core.commitgraph", Bool),
    ("core.compression", Number),
    ("core.eol", Words(&["lf", "crlf", "native"])),
    ("core.filemode", Bool),
    ("core.fsmonitor", Off),
    ("core.hidedotfiles", Words(&["dotgitonly"])),
    ("core.ignorecase", Bool),
    ("core.logallrefupdates", Words(&["always"])),
    ("core.longpaths", Bool),
    ("core.loosecompression", Number),
    ("core.multipackindex", Bool),
    ("core.precomposeunicode", Bool),
    ("core.preloadindex", Bool),
    ("core.protecthfs", On),
    ("core.protectntfs", On),
    ("core.quotepath", Bool),
    ("core.repositoryformatversion", Number),
    ("core.safecrlf", Words(&["warn"])),
    ("core.sharedrepository", OneOf(&["0", "1", "false", "group", "true", "umask"])),
    ("core.sparsecheckout", Bool),
    ("core.sparsecheckoutcone", Bool),
    ("core.splitindex", Bool),
    ("core.symlinks", Bool),
    ("core.trustctime", Bool),
    ("core.untrackedcache", Words(&["keep"])),
    ("core.whitespace", Text),
    ("core.worktree", Worktree),
    ("diff.algorithm", Words(&["default", "myers", "minimal", "patience", "histogram"])),
    ("diff.colormoved", Words(&["no", "default", "plain", "blocks", "zebra", "dimmed-zebra"])),
    ("diff.context", Number),
    ("diff.ignoresubmodules", Words(&["all", "dirty", "untracked", "none"])),
    ("diff.interhunkcontext", Number),
    ("diff.mnemonicprefix", Bool),
    ("diff.noprefix", Bool),
    ("diff.renamelimit", Number),
    ("diff.renames", Words(&["copies", "copy"])),
    ("diff.submodule", Words(&["short", "log", "diff"])),
    ("extensions.compatobjectformat", Words(&["sha1", "sha256"])),
    ("extensions.noop", Text),
    ("extensions.noop-v1", Text),
    // The index of a repository with another hash function is not judged.
    ("extensions.objectformat", Words(&["sha1"])),
    ("extensions.preciousobjects", Bool),
    ("extensions.refstorage", Words(&["files", "reftable"])),
    ("extensions.relativeworktrees", Bool),
    ("extensions.worktreeconfig", Bool),
    ("feature.experimental", Bool),
    ("feature.manyfiles", Bool),
    ("fetch.all", Bool),
    ("fetch.fsckobjects", On),
    ("fetch.negotiationalgorithm", Words(&["consecutive", "skipping", "noop", "default"])),
    ("fetch.output", Words(&["full", "compact"])),
    ("fetch.parallel", Number),
    ("fetch.prune", Bool),
    ("fetch.prunetags", Bool),
    ("fetch.recursesubmodules", SUBMODULES),
    ("fetch.showforcedupdates", Bool),
    ("fetch.unpacklimit", Number),
    ("fetch.writecommitgraph", Bool),
    ("gc.*.reflogexpire", Text),
    ("gc.*.reflogexpireunreachable", Text),
    ("gc.aggressivedepth", Number),
    ("gc.aggressivewindow", Number),
    ("gc.auto", Number),
    ("gc.autodetach", Bool),
    ("gc.autopacklimit", Number),
    ("gc.bigpackthreshold", Number),
    ("gc.cruftpacks", Bool),
    ("gc.logexpiry", Text),
    ("gc.maxcruftsize", Number),
    ("gc.packrefs", Words(&["notbare"])),
    ("gc.pruneexpire", Text),
    ("gc.reflogexpire", Text),
    ("gc.reflogexpireunreachable", Text),
    ("gc.rerereresolved", Text),
    ("gc.rerereunresolved", Text),
    ("gc.worktreepruneexpire", Text),
    ("gc.writecommitgraph", Bool),
    ("gpg.format", Words(&["openpgp", "x509", "ssh"])),
    ("index.recordendofindexentries", Bool),
    ("index.recordoffsettable", Bool),
    ("index.skiphash", Bool),
    ("index.sparse", Bool),
    ("index.threads", Bool),
    ("index.version", Number),
    ("init.defaultbranch", Reference),
    ("init.defaultobjectformat", Words(&["sha1", "sha256"])),
    ("init.defaultrefformat", Words(&["files", "reftable"])),
    ("lfs.repositoryformatversion", Number),
    ("log.abbrevcommit", Bool),
    ("log.date", Text),
    ("log.decorate", Words(&["short", "full", "auto"])),
    ("log.follow", Bool),
    ("maintenance.*.enabled", Bool),
    ("maintenance.*.schedule", Words(&["hourly", "daily", "weekly"])),
    ("maintenance.auto", Bool),
    ("maintenance.autodetach", Bool),
    ("maintenance.strategy", Words(&["none", "incremental", "gc", "geometric"])),
    ("merge.autostash", Bool),
    ("merge.conflictstyle", Words(&["merge", "diff3", "zdiff3"])),
    ("merge.directoryrenames", Words(&["conflict"])),
    ("merge.ff", FAST_FORWARD),
    ("merge.log", Bool),
    ("merge.renamelimit", Number),
    ("merge.renames", Words(&["copies", "copy"])),
    ("merge.renormalize", Bool),
    ("merge.stat", Words(&["diffstat", "compact"])),
    ("merge.verifysignatures", On),
    ("pack.compression", Number),
    ("pack.depth", Number),
    ("pack.packsizelimit", Number),
    ("pack.threads", Number),
    ("pack.usebitmaps", Bool),
    ("pack.usesparse", Bool),
    ("pack.window", Number),
    ("pack.windowmemory", Number),
    ("pack.writebitmaphashcache", Bool),
    ("pack.writereverseindex", Bool),
    ("protocol.version", Number),
    ("pull.ff", FAST_FORWARD),
    ("pull.rebase", REBASE),
    ("push.autosetupremote", Bool),
    ("push.default", Words(&["nothing", "current", "upstream", "tracking", "simple", "matching"])),
    ("push.followtags", Bool),
    ("push.gpgsign", Words(&["if-asked"])),
    ("push.recursesubmodules", SUBMODULES),
    ("push.useforceifincludes", Bool),
    ("rebase.abbreviatecommands", Bool),
    ("rebase.autosquash", Bool),
    ("rebase.autostash", Bool),
    ("rebase.backend", Words(&["apply", "merge"])),
    ("rebase.forkpoint", Bool),
    ("rebase.missingcommitscheck", Words(&["ignore", "warn", "error"])),
    ("rebase.rebasemerges", Words(&["rebase-cousins", "no-rebase-cousins"])),
    ("rebase.reschedulefailedexec", Bool),
    ("rebase.stat", Bool),
    ("rebase.updaterefs", Bool),
    ("receive.denycurrentbranch", Words(&["refuse", "ignore", "warn"])),
    ("receive.denydeletecurrent", Words(&["refuse", "ignore", "warn"])),
    ("receive.denydeletes", Bool),
    ("receive.denynonfastforwards", Bool),
    ("receive.fsckobjects", On),
    ("remote.*.fetch", Refspec),
    ("remote.*.followremotehead", Words(&["create", "warn", "always", "never"])),
    ("remote.*.gh-resolved", OneOf(&["base"])),
    ("remote.*.mirror", InBare),
    ("remote.*.promisor", Off),
    ("remote.*.prune", Bool),
    ("remote.*.prunetags", Bool),
    ("remote.*.pushurl", Url),
    ("remote.*.skipdefaultupdate", Bool),
    ("remote.*.skipfetchall", Bool),
    ("remote.*.tagopt", Words(&["--tags", "--no-tags"])),
    ("remote.*.url", Url),
    ("remote.pushdefault", Remote),
    ("remotes.*", Remotes),
    ("rerere.autoupdate", Bool),
    ("rerere.enabled", Bool),
    ("stash.showincludeuntracked", Bool),
    ("stash.showpatch", Bool),
    ("stash.showstat", Bool),
    ("status.aheadbehind", Bool),
    ("status.branch", Bool),
    ("status.relativepaths", Bool),
    ("status.short", Bool),
    ("status.showstash", Bool),
    ("status.showuntrackedfiles", Words(&["no", "normal", "all"])),
    ("status.submodulesummary", Bool),
    ("submodule.*.active", Bool),
    ("submodule.*.branch", Reference),
    ("submodule.*.fetchrecursesubmodules", SUBMODULES),
    ("submodule.*.ignore", Words(&["all", "dirty", "untracked", "none"])),
    ("submodule.*.path", PathBelow),
    ("submodule.*.shallow", Bool),
    ("submodule.*.update", Words(&["checkout", "rebase", "merge", "none"])),
    ("submodule.*.url", Url),
    ("submodule.active", Paths),
    ("submodule.alternateerrorstrategy", Words(&["die", "info", "ignore"])),
    ("submodule.alternatelocation", Words(&["no", "superproject"])),
    ("submodule.fetchjobs", Number),
    ("submodule.propagatebranches", Bool),
    ("submodule.recurse", Bool),
    ("tag.forcesignannotated", Bool),
    ("tag.gpgsign", On),
    ("tag.sort", Text),
    ("transfer.fsckobjects", On),
    ("transfer.unpacklimit", Number),
    ("uploadpack.allowanysha1inwant", Bool),
    ("uploadpack.allowfilter", Bool),
    ("uploadpack.allowreachablesha1inwant", Bool),
    ("uploadpack.allowtipsha1inwant", Bool),
    ("user.email", Text),
    ("user.name", Text),
    ("user.signingkey", Text),
    ("user.useconfigonly", Bool),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_in_lower_case() {
        assert!(KEYS.is_sorted_by(|before, after| before.0 < after.0));
        assert!(KEYS.iter().all(|(name, _)| *name == name.to_ascii_lowercase()));
    }

    #[test]
    fn names_are_looked_up_with_their_subsection_left_out() {
        assert_eq!(shape("remote.origin.url"), Some(Url));
        assert_eq!(shape("remote.team/fork.v2.url"), Some(Url));
        assert_eq!(shape("branch.a.b.remote"), Some(Remote));
        assert_eq!(shape("core.bare"), Some(Bool));
        assert_eq!(shape("advice.detachedhead"), Some(Bool));
        assert_eq!(shape("remotes.all"), Some(Remotes));
        for name in
            ["remote.url", "remote.-x.url", "remote.a::b.url", "core.x.bare", "core.fsmonitorx", "bare", ""]
        {
            assert_eq!(shape(name), None, "{name}");
        }
        assert_eq!(shape("submodule.../../x.url"), None);
    }
}
