//! `portcullis branch`: reviews, commits and drops branches.

mod running;
mod show;

use std::io::{BufRead as _, IsTerminal as _, stdin};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use portcullis_bootstrap::branches::{
    self, Committed, Judged, OpenBranch, Reviewed, StoredBranch, Wishes, commit, hosts, judge, named_paths,
    reason_to_leave, together,
};
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_changes::branch::{BranchChange, choose, review_id};
use serde_json::json;

use portcullis_command_line::args::branch::{self as args, Commit, Drop, List, Named, Show};
use portcullis_command_line::exit::{Exit, Outcome};
use portcullis_command_line::output::Page;
pub(crate) use running::Branch;
use running::recover;

/// Runs `branch`.
pub(crate) fn run(verb: args::Branch) -> Outcome {
    let around = ProcessEnv::read()?;
    around.ensure_outside()?;
    match verb {
        args::Branch::List(verb) => list(&around, &verb),
        args::Branch::Show(verb) => show(&around, &verb).map(|_id| Exit::Done),
        args::Branch::Commit(verb) => commit_chosen(&around, &verb, Seen::Nothing),
        args::Branch::Drop(verb) => drop_branch(&around, &verb),
    }
}

/// Returns the names of the branches of this project, for completion.
pub(crate) fn names(around: &ProcessEnv) -> anyhow::Result<Vec<String>> {
    let all = branches::stored(&around.state, Some(&project(around, None)))?;
    Ok(all.into_iter().map(|branch| branch.name).collect())
}

fn project(around: &ProcessEnv, given: Option<&Path>) -> PathBuf {
    let project = around.absolute(given.unwrap_or(&around.cwd));
    // The branches of a project that is gone can be used by its path.
    project.canonicalize().unwrap_or(project)
}

/// Returns the project of a call: the directory itself, or the one around it that has branches.
fn with_branches(around: &ProcessEnv, given: Option<&Path>) -> anyhow::Result<PathBuf> {
    let here = project(around, given);
    if given.is_none() {
        for above in here.ancestors() {
            if !branches::stored(&around.state, Some(above))?.is_empty() {
                return Ok(above.to_owned());
            }
        }
    }
    Ok(here)
}

fn named(around: &ProcessEnv, named: &Named) -> anyhow::Result<StoredBranch> {
    let project = with_branches(around, named.project.as_deref())?;
    recover(around, &project)?;
    branches::named(&around.state, &project, named.name.as_deref())
}

fn list(around: &ProcessEnv, list: &List) -> Outcome {
    let project = if list.everywhere { None } else { Some(with_branches(around, list.project.as_deref())?) };
    if let Some(project) = &project {
        recover(around, project)?;
    }
    let all = branches::stored(&around.state, project.as_deref())?;
    let mut page = Page::new(around);
    show::list(&mut page, &all, (list.everywhere, list.json));
    page.print()?;
    Ok(Exit::Done)
}

/// Shows the review of a branch, and returns its id.
fn show(around: &ProcessEnv, verb: &Show) -> anyhow::Result<String> {
    let branch = named(around, &verb.named)?;
    branch.require_project()?;
    let judge = judge(around, &branch.project)?;
    let reviewed = branches::review(&judge.session, &branch)?;
    let hosts = hosts(&around.state, &branch)?;
    let all: Vec<&Reviewed> = reviewed.iter().collect();
    let together = together(&judge.session, &branch, &all, &hosts)?;
    let mut page = Page::new(around);
    let id = show::review(&mut page, (&branch, &reviewed, &hosts, &together), (verb.diff, verb.named.json))?;
    page.print()?;
    Ok(id)
}

/// What the user has seen before the question about a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    Nothing,
    /// The review of the branch.
    Review,
}

fn commit_chosen(around: &ProcessEnv, verb: &Commit, seen: Seen) -> Outcome {
    let mut branch = named(around, &verb.named)?.lock()?;
    branch.stored().require_project()?;
    let judge = judge(around, &branch.stored().project)?;
    let reviewed = branches::review(&judge.session, branch.stored())?;
    let changes: Vec<BranchChange> = reviewed.iter().map(|reviewed| reviewed.change.clone()).collect();
    if let Some(id) = &verb.review {
        let now = review_id(&changes);
        ensure!(
            *id == now,
            "the branch or the project has changed since review `{id}`; look at `portcullis branch show` again \
             (review `{now}`)"
        );
    }
    let paths = named_paths(branch.stored(), &changes, &verb.paths, |path| around.absolute(path))?;
    let wishes = Wishes { protected: verb.protected, overwrite: verb.overwrite, paths: &paths };
    let left = choose(&changes, &paths, |change| reason_to_leave(&reviewed, change, wishes));
    let chosen: Vec<&BranchChange> =
        changes.iter().filter(|change| !left.contains_key(&change.path)).collect();
    let is_chosen = |reviewed: &&Reviewed| !left.contains_key(&reviewed.change.path);
    let of_chosen: Vec<&Reviewed> = reviewed.iter().filter(is_chosen).collect();
    let together = match chosen.is_empty() {
        true => Judged::Allowed,
        false => {
            let hosts = hosts(&around.state, branch.stored())?;
            together(&judge.session, branch.stored(), &of_chosen, &hosts)?
        }
    };
    match &together {
        Judged::Refused(why) => bail!("nothing is committed, because a policy denies this change: {why}"),
        Judged::Protected(why) if verb.yes && !verb.protected && !verb.dry_run => bail!(
            "nothing is committed, because a policy asks about this change: {why}; say `--protected`, or leave out \
             `--yes` to be asked"
        ),
        Judged::Protected(_) | Judged::Allowed => {}
    }
    let mut page = Page::new(around);
    if verb.dry_run || chosen.is_empty() {
        show::choice(&mut page, (&chosen, &left), (verb.dry_run, verb.named.json));
        page.print()?;
        return Ok(if verb.dry_run || !show::is_missed(&left) { Exit::Done } else { Exit::Bad });
    }
    if !verb.yes {
        if verb.named.json || !stdin().is_terminal() {
            bail!(
                "you cannot be asked here, because standard input is no terminal: look with `--dry-run`, then say `--yes`"
            );
        }
        show::choice(&mut page, (&chosen, &left), (seen == Seen::Nothing, false));
        if let Judged::Protected(why) = &together {
            page.line(&format!("a policy asks about this change: {why}"));
        }
        page.line(match seen {
            Seen::Nothing => "Do this? [y/N]",
            Seen::Review if left.is_empty() => "Commit all of it? [y/N]",
            Seen::Review => "Commit the rest of it? [y/N]",
        });
        page.print()?;
        if !is_yes()? {
            return Ok(Exit::Done);
        }
        page = Page::new(around);
    }
    let committed = commit(&around.state, judge.session.settings().undo, &mut branch, &chosen)?;
    let is_whole = matches!(committed, Committed::Whole(_));
    let name = branch.stored().name.clone();
    let is_removed = is_whole && left.is_empty();
    if is_removed {
        branch.remove()?;
    }
    show::committed(&mut page, (&name, &committed, &left), is_removed, verb.named.json);
    page.print()?;
    Ok(if is_whole && !show::is_missed(&left) { Exit::Done } else { Exit::Bad })
}

/// Returns the name of the branch for a session of pi: the given one, or that of a new branch.
pub(crate) fn reserve(around: &ProcessEnv, name: &str) -> anyhow::Result<String> {
    let project = project(around, None);
    recover(around, &project)?;
    let branch = branches::begin(&around.state, &project, Some(name).filter(|name| !name.is_empty()))?;
    Ok(branch.stored().name.clone())
}

/// Shows the branch of a session of pi that has ended, and commits all of it if the user wants that. One in which nothing
/// was changed is removed.
pub(crate) fn after_pi(around: &ProcessEnv, name: &str) -> anyhow::Result<()> {
    let project = project(around, None);
    let Ok(branch) = branches::named(&around.state, &project, Some(name)) else { return Ok(()) };
    let locked = branch.lock()?;
    if locked.is_empty() {
        return locked.remove();
    }
    drop(locked);
    let named = || Named { name: Some(name.to_owned()), project: Some(project.clone()), json: false };
    let review = show(around, &Show { named: named(), diff: false })?;
    let mut page = Page::new(around);
    if !stdin().is_terminal() {
        page.line(&format!("the project is unchanged; `portcullis branch commit {name}` changes it"));
        page.print()?;
        return Ok(());
    }
    page.line(&format!(
        "a part of it: `portcullis branch commit {name} PATH`; what is protected: `--protected`; nothing of it: \
         `portcullis branch drop {name}`"
    ));
    page.print()?;
    let all = Commit {
        named: named(),
        paths: Vec::new(),
        all: true,
        protected: false,
        overwrite: false,
        review: Some(review),
        dry_run: false,
        yes: false,
    };
    commit_chosen(around, &all, Seen::Review)?;
    Ok(())
}

fn drop_branch(around: &ProcessEnv, verb: &Drop) -> Outcome {
    let branch: OpenBranch = named(around, &verb.named)?.lock()?;
    let name = branch.stored().name.clone();
    let mut page = Page::new(around);
    if !verb.yes && !branch.is_new_and_empty() {
        if verb.named.json || !stdin().is_terminal() {
            bail!("you cannot be asked here, because standard input is no terminal: say `--yes`");
        }
        page.line(&format!("Remove branch `{name}`, with everything that was changed in it? [y/N]"));
        page.print()?;
        if !is_yes()? {
            return Ok(Exit::Done);
        }
        page = Page::new(around);
    }
    branch.remove()?;
    if verb.named.json {
        page.json(&json!({ "dropped": name }));
    } else {
        page.line(&format!("branch `{name}` is removed; the project is as it was"));
    }
    page.print()?;
    Ok(Exit::Done)
}

fn is_yes() -> anyhow::Result<bool> {
    let mut answer = String::new();
    stdin().lock().read_line(&mut answer).context("reading your answer")?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
