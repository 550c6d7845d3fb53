//! What the session has changed, for `/undo`: the list of turns and calls, and taking back.

use std::path::Path;

use portcullis_bootstrap::undo::{OpenedChanges, short, told_report, told_step};
use portcullis_changes::undo::Range;
use portcullis_changes::{History, Point, PointKind};
use portcullis_rpc as rpc;
use portcullis_rpc::{
    ChangedPoint, ChangesResponse, Empty, ErrorCode, ErrorObject, TurnParams, UndoLine, UndoParams,
    UndoResponse,
};

use crate::serve::host::{Host, Stage, closed, off};

/// The names that are listed of one call.
const NAMES: usize = 20;
/// The lines of one answer.
const LINES: usize = 200;
/// The characters of a turn that are recorded.
const LABEL: usize = 200;

impl Host {
    pub(super) fn turn(&self, params: &TurnParams) -> Result<Empty, ErrorObject> {
        self.with_session(|session| {
            let label: String = params.label.as_str().chars().take(LABEL).collect();
            session.note_turn(params.id.as_str(), &label).map_err(|error| internal(&error.to_string()))?;
            Ok(Empty {})
        })
    }

    pub(super) fn changes(&self) -> Result<ChangesResponse, ErrorObject> {
        self.with_record(|opened| {
            let history = opened.history()?;
            let points = history.points().into_iter().map(|point| listed(&history, point, opened.project()));
            Ok(ChangesResponse { points: points.collect(), redoable: history.redoable().is_some() })
        })
        .map(|found| found.unwrap_or(ChangesResponse { points: Vec::new(), redoable: false }))
    }

    pub(super) fn undo(&self, params: &UndoParams) -> Result<UndoResponse, ErrorObject> {
        let none = || UndoResponse { done: 0, left: 0, lines: Vec::new(), more: 0 };
        let undone = self.with_record(|opened| {
            opened.put_back()?;
            let Some(range) = range(&opened.history()?, params)? else { return Ok(none()) };
            let project = opened.project().to_owned();
            if params.dry_run {
                let steps = opened.plan(range)?;
                let left = steps.iter().filter(|step| step.is_left()).count();
                let lines = steps.iter().map(|step| told_step(&project, step)).collect();
                return Ok(answer(steps.len() - left, left, lines));
            }
            let report = opened.take_back(range)?;
            let left = report.left.len() + report.failed.len();
            Ok(answer(report.done.len() + report.merged.len(), left, told_report(&project, &report)))
        })?;
        Ok(undone.unwrap_or_else(none))
    }

    /// Calls `act` with the record of the session, if it has one.
    fn with_record<T>(
        &self,
        act: impl FnOnce(&OpenedChanges) -> anyhow::Result<T>,
    ) -> Result<Option<T>, ErrorObject> {
        let opened = match self.stage().as_ref() {
            Stage::Open(open) => open.changes(&self.around.state),
            Stage::Closed(why) => return Err(closed(why)),
            Stage::Off => return Err(off()),
        };
        let done = opened.and_then(|opened| opened.as_ref().map(act).transpose());
        done.map_err(|error| internal(&format!("{error:#}")))
    }
}

/// Returns the range that is meant; `None` if there is nothing to take back.
fn range(history: &History, params: &UndoParams) -> anyhow::Result<Option<Range>> {
    let start = match (&params.point, params.redo) {
        (_, true) => history.redoable(),
        (None, false) => history.newest(),
        (Some(named), false) => {
            let start = history
                .start_of(named.as_str())
                .ok_or_else(|| anyhow::anyhow!("no turn and no call is called `{}`", named.as_str()))?;
            history.in_force_since(start)
        }
    };
    Ok(start.map(|start| Range { start, redo: params.redo }))
}

fn listed(history: &History, point: Point, project: &Path) -> ChangedPoint {
    let changes = history.changes(&point);
    let kind = match point.kind {
        PointKind::Turn => rpc::PointKind::Turn,
        PointKind::Call(_) => rpc::PointKind::Call,
    };
    ChangedPoint {
        name: point.name,
        kind,
        id: point.id,
        label: point.label,
        undone: point.undone,
        changed: count(changes.len()),
        names: changes.iter().take(NAMES).map(|change| short(project, &change.path)).collect(),
    }
}

fn answer(done: usize, left: usize, lines: Vec<[String; 3]>) -> UndoResponse {
    let more = count(lines.len().saturating_sub(LINES));
    let lines = lines.into_iter().take(LINES).map(|[what, name, note]| UndoLine { what, name, note });
    UndoResponse { done: count(done), left: count(left), lines: lines.collect(), more }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn internal(why: &str) -> ErrorObject {
    ErrorObject::new(ErrorCode::Internal, portcullis_text::escape(why))
}
