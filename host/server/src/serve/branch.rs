//! The branch in which a session of pi works, its review, and its commit.

use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use portcullis_bootstrap::branches::{
    self, Committed, Judged, OpenBranch, Reviewed, StoredBranch, Wishes, finish_interrupted, hosts, judge,
    named_paths, reason_to_leave, together,
};
use portcullis_bootstrap::loaded_settings::LoadedSettings;
use portcullis_bootstrap::session::{self, OpenSession, open_in_branch};
use portcullis_bootstrap::streams::complain;
use portcullis_changes::branch::{BranchChange, Left, choose, diff, review_id};
use portcullis_changes::undo::Report;
use portcullis_decision::path_text;
use portcullis_rpc::{
    BranchCommitParams, BranchCommitResponse, BranchLine, BranchParams, BranchResponse, ErrorCode,
    ErrorObject, UndoLine,
};

use crate::serve::host::{Host, Stage, closed, off};
use crate::serve::settings_watch::Watch;

/// The changes of one answer.
const LINES: usize = 500;
/// The bytes of differences in one answer.
const DIFF_BYTES: usize = 128 << 10;
/// The time that running calls have to end before a commit.
const LAST_CALLS: Duration = Duration::from_secs(10);

impl Host {
    /// Opens a session: in the branch that the user wants, or in the project.
    pub(super) fn open_here(&self, watch: &Watch, loaded: LoadedSettings) -> anyhow::Result<OpenSession> {
        let around = watch.around();
        let Some(name) = &around.branch else {
            return session::open(around, watch.wanted(), loaded, self.asks_at());
        };
        let mut held = self.held();
        let branch = match held.take() {
            Some(branch) => branch,
            None => {
                let project = &loaded.resolved.workspace;
                let all = branches::stored(&around.state, Some(project))?;
                finish_interrupted(&around.state, &all)?;
                branches::begin(&around.state, project, Some(name))?
            }
        };
        let layer = branch.layer();
        let branch = held.insert(branch);
        let opened = open_in_branch(around, watch.wanted(), loaded, self.asks_at(), layer)?;
        if let Err(reason) = &opened.session.effective_policy().confinement {
            bail!("the branch `{name}` cannot be used here: {reason}");
        }
        branch.note_session(opened.session.id())?;
        Ok(opened)
    }

    /// Gives the branch up. One that was begun for nothing is removed.
    pub(super) fn leave_branch(&self) {
        let branch = self.held().take();
        if let Some(branch) = branch.filter(OpenBranch::is_new_and_empty)
            && let Err(error) = branch.remove()
        {
            complain(&error);
        }
    }

    fn held(&self) -> MutexGuard<'_, Option<OpenBranch>> {
        self.branch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the review of the branch.
    pub(super) fn branch(&self, params: &BranchParams) -> Result<BranchResponse, ErrorObject> {
        self.require_open()?;
        let stored = self.held().as_ref().map(|branch| branch.stored().clone());
        let Some(stored) = stored else {
            return Ok(BranchResponse {
                name: None,
                review: String::new(),
                lines: Vec::new(),
                more: 0,
                hosts: Vec::new(),
                together: String::new(),
                diff: String::new(),
            });
        };
        self.review(&stored, params.diff).map_err(|error| internal(&error))
    }

    fn review(&self, stored: &StoredBranch, with_diff: bool) -> anyhow::Result<BranchResponse> {
        let judge = judge(&self.around, &stored.project)?;
        let reviewed = branches::review(&judge.session, stored)?;
        let hosts = hosts(&self.around.state, stored)?;
        let all: Vec<&Reviewed> = reviewed.iter().collect();
        let together = together(&judge.session, stored, &all, &hosts)?;
        let changes: Vec<BranchChange> = reviewed.iter().map(|reviewed| reviewed.change.clone()).collect();
        let diff = if with_diff { diffs(stored, &changes)? } else { String::new() };
        let more = reviewed.len().saturating_sub(LINES);
        Ok(BranchResponse {
            name: Some(stored.name.clone()),
            review: review_id(&changes),
            lines: reviewed.iter().take(LINES).map(line).collect(),
            more: count(more),
            hosts,
            together: match together {
                Judged::Allowed => String::new(),
                Judged::Protected(why) => format!("a policy asks about this change: {why}"),
                Judged::Refused(why) => format!("a policy denies this change: {why}"),
            },
            diff,
        })
    }

    /// Ends the session's sandbox, commits, and opens the session again: in what is left of the branch, or in a new one
    /// of the same name. The kernel does not say what commands see while the project changes under their overlay.
    pub(super) fn branch_commit(
        &self,
        params: &BranchCommitParams,
    ) -> Result<BranchCommitResponse, ErrorObject> {
        self.require_open()?;
        let watch = self.watch.get().ok_or_else(|| closed("there was no `hello`"))?;
        if self.held().is_none() {
            return Err(ErrorObject::new(ErrorCode::InvalidRequest, "this session has no branch"));
        }
        let running = Arc::downgrade(&self.stage());
        self.cancel_all();
        self.handles.clear();
        self.enter(Stage::Closed("the branch is being committed".to_owned()));
        let end = Instant::now() + LAST_CALLS;
        while running.strong_count() > 0 && Instant::now() < end {
            thread::sleep(Duration::from_millis(2));
        }
        let done = match running.strong_count() {
            0 => self.commit_now(params),
            _ => Err(anyhow::anyhow!("a command of this session still runs; nothing was committed")),
        };
        let opened = self.open_session(watch);
        self.enter(opened.unwrap_or_else(|error| Stage::Closed(format!("{error:#}"))));
        self.tell_status();
        done.map_err(|error| internal(&error))
    }

    fn commit_now(&self, params: &BranchCommitParams) -> anyhow::Result<BranchCommitResponse> {
        let mut held = self.held();
        let branch = held.as_mut().context("this session has no branch")?;
        let judge = judge(&self.around, &branch.stored().project)?;
        let reviewed = branches::review(&judge.session, branch.stored())?;
        let changes: Vec<BranchChange> = reviewed.iter().map(|reviewed| reviewed.change.clone()).collect();
        ensure!(
            review_id(&changes) == params.review.as_str(),
            "the branch or the project has changed since this review; look at `/branch` again"
        );
        let given = params.paths.iter().map(|path| {
            path_text::decode(path.as_str()).with_context(|| format!("`{}` is no path", path.as_str()))
        });
        let given = given.collect::<anyhow::Result<Vec<PathBuf>>>()?;
        let project = branch.stored().project.clone();
        let paths = named_paths(branch.stored(), &changes, &given, |path| project.join(path))?;
        let wishes = Wishes { protected: params.protected, overwrite: false, paths: &paths };
        let left = choose(&changes, &paths, |change| reason_to_leave(&reviewed, change, wishes));
        let is_chosen = |change: &BranchChange| !left.contains_key(&change.path);
        let of_chosen: Vec<&Reviewed> =
            reviewed.iter().filter(|reviewed| is_chosen(&reviewed.change)).collect();
        let chosen: Vec<&BranchChange> = of_chosen.iter().map(|reviewed| &reviewed.change).collect();
        let missed = left.iter().filter(|(_, left)| **left != Left::NotNamed);
        let mut lines: Vec<UndoLine> =
            missed.map(|(path, why)| told("left", path, why.to_string())).collect();
        if chosen.is_empty() {
            return Ok(BranchCommitResponse { committed: 0, lines, question: String::new() });
        }
        let hosts = hosts(&self.around.state, branch.stored())?;
        match together(&judge.session, branch.stored(), &of_chosen, &hosts)? {
            Judged::Refused(why) => bail!("nothing is committed, because a policy denies this change: {why}"),
            Judged::Protected(question) if !params.protected && !params.approved => {
                return Ok(BranchCommitResponse { committed: 0, lines, question });
            }
            Judged::Protected(_) | Judged::Allowed => {}
        }
        let committed = branches::commit(&self.around.state, judge.session.settings().undo, branch, &chosen)?;
        let number = match committed {
            Committed::Whole(number) => number,
            Committed::Nothing(report) | Committed::Unfinished(report) => {
                lines.extend(stopped(&report));
                0
            }
        };
        if number > 0
            && left.is_empty()
            && let Some(branch) = held.take()
        {
            branch.remove()?;
        }
        Ok(BranchCommitResponse { committed: count(number), lines, question: String::new() })
    }

    fn require_open(&self) -> Result<(), ErrorObject> {
        match self.stage().as_ref() {
            Stage::Open(_) => Ok(()),
            Stage::Closed(why) => Err(closed(why)),
            Stage::Off => Err(off()),
        }
    }
}

fn diffs(stored: &StoredBranch, changes: &[BranchChange]) -> anyhow::Result<String> {
    let mut all = String::new();
    for change in changes {
        let shown = change.path.display();
        let Some(text) = diff(stored.layers(), change).with_context(|| format!("comparing `{shown}`"))?
        else {
            continue;
        };
        if all.len() + text.len() > DIFF_BYTES {
            all.push_str("… `portcullis branch show --diff` shows the rest\n");
            break;
        }
        all.push_str(&format!("{}\n", portcullis_text::escape(&shown.to_string())));
        // The first two lines would name the texts.
        for line in text.lines().skip(2) {
            all.push_str(&format!("{}\n", portcullis_text::escape(line)));
        }
    }
    Ok(all)
}

fn line(Reviewed { change, judged, secrets }: &Reviewed) -> BranchLine {
    let mut notes: Vec<String> = change.obstacle.iter().map(ToString::to_string).collect();
    match judged {
        Judged::Allowed => {}
        Judged::Protected(reason) => notes.push(format!("protected: {reason}")),
        Judged::Refused(reason) => notes.push(format!("refused: {reason}")),
    }
    match secrets {
        0 => {}
        1 => notes.push("1 line looks like a secret".to_owned()),
        lines => notes.push(format!("{lines} lines look like secrets")),
    }
    notes.extend(change.notes.iter().map(ToString::to_string));
    BranchLine {
        what: change.word().to_owned(),
        name: path_text::encode(&change.path),
        note: notes.join("; "),
        protected: matches!(judged, Judged::Protected(_)),
        blocked: change.obstacle.is_some() || matches!(judged, Judged::Refused(_)),
    }
}

fn stopped(report: &Report) -> Vec<UndoLine> {
    let left = report.left.iter().map(|(path, why, _)| told("stopped", path, why.to_string()));
    let failed = report.failed.iter().map(|(path, error)| told("failed", path, error.to_string()));
    left.chain(failed).collect()
}

fn told(what: &str, path: &Path, note: String) -> UndoLine {
    UndoLine { what: what.to_owned(), name: path.to_string_lossy().into_owned(), note }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn internal(error: &anyhow::Error) -> ErrorObject {
    ErrorObject::new(ErrorCode::Internal, portcullis_text::escape(&format!("{error:#}")))
}
