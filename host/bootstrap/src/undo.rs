//! Undoes the changes of a session: makes the plan and carries it out, under the lock on names.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use portcullis_changes::plan::{Act, Step, plan};
use portcullis_changes::undo::{self, Range, Report, carry_out, history, recover, settle};
use portcullis_changes::{Change, Disk, History, Recorder, State, Store, diff};
use portcullis_sandbox::NameOrder;

use crate::changes::StoredChanges;

/// The record of one session, opened for taking changes back.
#[derive(Debug)]
pub struct OpenedChanges {
    recorder: Recorder,
    project: PathBuf,
    order: NameOrder,
}

impl OpenedChanges {
    /// Opens a record.
    ///
    /// # Errors
    /// If it cannot be used.
    pub fn open(state: &Path, stored: &StoredChanges) -> anyhow::Result<Self> {
        let doing = || format!("opening the record of changes in `{}`", stored.store.display());
        let recorder = Recorder::new(Store::open(&stored.store).with_context(doing)?);
        let names = state.join("names");
        let order = NameOrder::open(&names)
            .with_context(|| format!("opening the order of changes of names in `{}`", names.display()))?;
        Ok(Self { recorder, project: stored.about.project.clone(), order })
    }

    /// Returns true if an undo was interrupted. [`Self::put_back`] comes before anything else is taken back.
    ///
    /// # Errors
    /// If the record cannot be read.
    pub fn is_interrupted(&self) -> anyhow::Result<bool> {
        Ok(self.history()?.unfinished().is_some())
    }

    /// Puts an undo that was interrupted back to where it began; returns whether there was one.
    ///
    /// # Errors
    /// If the record or the disk cannot be used.
    pub fn put_back(&self) -> anyhow::Result<Option<Report>> {
        if !undo::is_interrupted(&self.history()?) {
            return Ok(None);
        }
        let _alone = self.order.exclusive().context("waiting for the turn to write")?;
        recover(&self.recorder, &self.project)
            .context("putting back what an interrupted `portcullis undo` has done")
    }

    /// Returns what [`Self::put_back`] would do; `None` if no undo was interrupted.
    ///
    /// # Errors
    /// If the record cannot be read, or something cannot be looked at.
    pub fn plan_to_put_back(&self) -> anyhow::Result<Option<Vec<Step>>> {
        let unfinished = self.history()?.unfinished();
        unfinished.map(|(_, start)| self.plan(Range { start, redo: false })).transpose()
    }

    /// Returns the project.
    #[must_use]
    pub fn project(&self) -> &Path {
        &self.project
    }

    /// Reads the history.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn history(&self) -> anyhow::Result<History> {
        history(self.recorder.store()).context("reading the record of changes")
    }

    /// Returns what taking back a range means now.
    ///
    /// # Errors
    /// If something cannot be looked at.
    pub fn plan(&self, range: Range) -> anyhow::Result<Vec<Step>> {
        plan(&self.history()?, range.start, &Disk(self.recorder.store()))
            .context("comparing the files with the record of changes")
    }

    /// Takes back a range, as it is now, while no command and no tool changes a name.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub fn take_back(&self, range: Range) -> anyhow::Result<Report> {
        let _alone = self.order.exclusive().context("waiting for the turn to write")?;
        settle(self.recorder.store(), &self.history()?)
            .context("looking at what a program that was killed has left")?;
        let steps = self.plan(range)?;
        carry_out(&self.recorder, &steps, range, (&self.project, &self.history()?))
            .context("taking changes back; what was done so far is put back by the next `portcullis undo`")
    }

    /// Returns the difference that a change makes to a text.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn diff(&self, change: &Change) -> anyhow::Result<Option<String>> {
        diff(self.recorder.store(), change)
            .with_context(|| format!("comparing `{}` with the record of changes", change.path.display()))
    }
}

/// Returns a step as a row: its effect, the path in the project, and a note.
#[must_use]
pub fn told_step(project: &Path, step: &Step) -> [String; 3] {
    let (what, note) = match &step.act {
        Act::Restore(State::Absent) => ("remove", String::new()),
        Act::Restore(_) => ("give back", String::new()),
        Act::Merge { .. } => ("merge", "your later edits stay".to_owned()),
        Act::MoveBack { to, exchange: false } => ("move back", format!("to {}", short(project, to))),
        Act::MoveBack { to, exchange: true } => ("exchange", format!("with {}", short(project, to))),
        Act::Leave { why, beside: None } => ("leave", why.to_string()),
        Act::Leave { why, beside: Some(_) } => {
            ("leave", format!("{why}; the former version is put beside it"))
        }
    };
    [what.to_owned(), short(project, &step.path), note]
}

/// Returns the files that were merged, left alone, failed, or replaced without being kept as rows: the result, the path in the project, and a note.
#[must_use]
pub fn told_report(project: &Path, report: &Report) -> Vec<[String; 3]> {
    let merged = report.merged.iter().map(|path| ("merged", path, "your later edits stay".to_owned()));
    let left = report.left.iter().map(|(path, why, beside)| {
        let former =
            beside.as_ref().map(|beside| format!("; the former version is {}", short(project, beside)));
        ("left", path, format!("{why}{}", former.unwrap_or_default()))
    });
    let failed = report.failed.iter().map(|(path, error)| ("failed", path, error.to_string()));
    let lost = report
        .lost
        .iter()
        .map(|(path, why)| ("not kept", path, format!("`portcullis redo` cannot bring it back: {why}")));
    let all = merged.chain(left).chain(failed).chain(lost);
    all.map(|(what, path, note)| [what.to_owned(), short(project, path), note]).collect()
}

/// Returns a path as it is in the project.
#[must_use]
pub fn short(project: &Path, path: &Path) -> String {
    path.strip_prefix(project).unwrap_or(path).to_string_lossy().into_owned()
}
