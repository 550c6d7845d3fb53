//! Plans how a range of entries is taken back: a function of the history and of what is on the disk.
//!
//! Entries are taken back from the newest to the oldest. Between two moves each name needs only the oldest state that
//! was recorded for it. What somebody else has changed since the session left it is not touched: texts are merged if
//! that is possible without a conflict, and otherwise the former version is put beside the present one.

mod by_file;
mod changed_since;
mod closed;
mod moves;
mod only_copies;
mod other_names;
mod packed_references;
mod recorded_move;
mod repositories;
mod status;
mod step;
mod stuck;
mod used_repository;
mod version;

pub(crate) use status::are_alike;
pub use step::{Act, Step, Why, World};

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::mem::discriminant;
use std::path::{Path, PathBuf};

use by_file::{by_file, not_kept};
use closed::Through;
use recorded_move::RecordedMove;
use status::with_later_status;
use stuck::{Names, StuckMoves};
use version::{
    Back, Origin, Pending, Present, Recorded, Version, beside, is_other_file, is_same_version, passed,
};

use crate::history::History;
use crate::paths::{is_below, renamed};
use crate::record::Record;
use crate::state::{Content, DirectoryState, FileId, FileState, Lost, State};
use crate::touched::fails;

/// The most lines of a text into which edits are merged. The time grows with the square of those that differ.
const MERGED_LINES: usize = 10_000;

/// Plans to take back all entries from `start` on.
///
/// # Errors
/// If something cannot be looked at.
pub fn plan(history: &History, start: usize, world: &dyn World) -> io::Result<Vec<Step>> {
    let mut planner = Planner {
        history,
        world: &Through { history, world },
        made: BTreeMap::new(),
        files: HashMap::new(),
        given_back: HashMap::new(),
        edited: HashSet::new(),
        not_kept: not_kept(history, start),
        back: Vec::new(),
        unmoved: HashSet::new(),
        stuck: StuckMoves::default(),
        steps: Vec::new(),
    };
    let mut pending = Pending::new();
    for (position, entry) in history.entries().iter().enumerate().skip(start).rev() {
        match entry {
            Record::Before { was, .. } if !history.is_untouched(position) => {
                let recorded = Recorded { position, was: &was.state };
                pending.entry(was.path.clone()).or_default().push(recorded);
            }
            Record::Moved { call, from, to, what, exchange } => {
                if fails(history.entries(), position, *call) {
                    continue;
                }
                planner.restore(std::mem::take(&mut pending))?;
                let ended = history.end_of(*call);
                let names = Names { from, to, exchange: *exchange };
                planner.move_back_or_leave(RecordedMove { names, what, ended })?;
            }
            Record::Before { .. }
            | Record::Turn { .. }
            | Record::NotMoved { .. }
            | Record::Left { .. }
            | Record::LeftSoFar { .. }
            | Record::Reaches { .. }
            | Record::Ended { .. }
            | Record::Undo { .. }
            | Record::Whole { .. }
            | Record::Undone { .. }
            | Record::NotMade { .. }
            | Record::Opens { .. }
            | Record::Closes { .. } => {}
        }
    }
    planner.restore(pending)?;
    let steps = std::mem::take(&mut planner.steps);
    Ok(planner.without_only_copies(planner.without_needed(steps, start)?))
}

/// The plan so far, and what the disk would look like after it.
struct Planner<'a> {
    history: &'a History,
    world: &'a dyn World,
    /// What the steps make.
    made: BTreeMap<PathBuf, Version>,
    /// The same by file, for those with several names.
    files: HashMap<FileId, Version>,
    /// The same for files of which only a name that is not there gets a version.
    given_back: HashMap<FileId, Version>,
    /// The files of which a name gets a version that the user has made.
    edited: HashSet<FileId>,
    /// The files with contents that calls found by these names, and could not keep.
    not_kept: HashMap<FileId, (Lost, &'a Path)>,
    /// Moves that are taken back: the name before that, the name after that, and whether the two change places.
    back: Vec<(PathBuf, PathBuf, bool)>,
    /// The files whose moves are not taken back.
    unmoved: HashSet<FileId>,
    /// Moves that are not taken back.
    stuck: StuckMoves,
    steps: Vec<Step>,
}

/// How far a name goes back.
struct Walk {
    /// The change that makes the oldest state that the name can be given again.
    act: Option<Act>,
    /// Why it goes no further, with the versions that are put beside it.
    conflict: Option<(Why, Vec<State>)>,
    /// That oldest state.
    reached: Version,
    /// Versions of the user between two directories, of which the older one need not be made again.
    passed_over: Vec<State>,
    /// Whether the user has made merged edits in another file, in the place of the recorded one.
    is_of_other_file: bool,
}

impl Planner<'_> {
    fn restore(&mut self, pending: Pending<'_>) -> io::Result<()> {
        let is_removal = |states: &[Recorded<'_>]| states.last().is_some_and(|oldest| oldest.was.is_absent());
        let is_file =
            |states: &[Recorded<'_>]| states.last().is_some_and(|oldest| oldest.was.file().is_some());
        let by_file = by_file(&pending);
        // What is in a directory goes before the directory itself, and comes after it.
        for (path, states) in pending.iter().rev().filter(|(_, states)| is_removal(states)) {
            self.restore_one(path, &self.with_other_names(path, states, &by_file))?;
        }
        for (path, states) in pending.iter().filter(|(_, states)| !is_removal(states) && !is_file(states)) {
            self.restore_one(path, states)?;
        }
        // Of two names of one file, the older state counts, so it comes last.
        let mut files: Vec<_> = pending.iter().filter(|(_, states)| is_file(states)).collect();
        files.sort_by_key(|(_, states)| std::cmp::Reverse(states.last().map(|oldest| oldest.position)));
        for (path, states) in files {
            self.restore_one(path, &self.with_other_names(path, states, &by_file))?;
        }
        Ok(())
    }

    fn restore_one(&mut self, name: &Path, states: &[Recorded<'_>]) -> io::Result<()> {
        let present = self.stuck.present(name);
        // A call made a file under this name, and a move that stays has renamed it. Older states are of another file.
        if !present.is_replaced
            && present.path != self.stuck.slot(name).path
            && let Some(made) = states.iter().position(|recorded| recorded.was.is_absent())
            && let Some((of_it, older)) = states.split_at_checked(made + 1)
        {
            self.restore_or_leave(name, &present, of_it)?;
            self.stuck.forget(name);
            return if older.is_empty() { Ok(()) } else { self.restore_one(name, older) };
        }
        self.restore_or_leave(name, &present, states)
    }

    fn restore_or_leave(
        &mut self,
        name: &Path,
        present: &Present,
        states: &[Recorded<'_>],
    ) -> io::Result<()> {
        match self.restore_present(name, present, states) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.leave(&present.path, Why::Closed, Vec::new());
                Ok(())
            }
            restored => restored,
        }
    }

    fn restore_present(
        &mut self,
        name: &Path,
        Present { path, is_replaced }: &Present,
        states: &[Recorded<'_>],
    ) -> io::Result<()> {
        // What was moved there stays there.
        if *is_replaced {
            return self.leave_occupied(path, states);
        }
        let mut version = self.look(path)?;
        // What the user has written comes back by another name.
        if let Some(given_back) = self.given_back(&version)? {
            let Walk { act, conflict, .. } = self.walk_back(path, given_back.clone(), states)?;
            if conflict.is_some() || matches!(act, Some(Act::Merge { .. })) {
                version = given_back;
            }
        }
        // A file that a step gives back here, and whose former name is not free, has no other place.
        let is_unmoved = version.state.id().is_some_and(|id| self.unmoved.contains(&id));
        let is_to_go = states.last().is_some_and(|oldest| oldest.was.id() != version.state.id());
        if matches!(version.origin, Origin::Recorded(_)) && is_unmoved && is_to_go {
            return self.leave_occupied(&self.stuck.slot(name).path, states);
        }
        if self.is_edited_alone(path, &version, states)? {
            return Ok(());
        }
        let is_ours = version.origin != Origin::Disk;
        let on_disk = if is_ours { version.on_disk.clone() } else { Some(version.state.clone()) };
        let found = version.state.clone();
        let Walk { act, conflict, mut reached, passed_over, is_of_other_file } =
            self.walk_back(path, version, states)?;
        if !passed_over.is_empty() {
            self.leave(path, Why::Occupied, passed_over);
        }
        let act = match act {
            Some(act) if !self.is_same(&found, &reached, is_ours, path)? => Some(act),
            _ => None,
        };
        let has_step = act.is_some();
        let (mut is_replaced, mut is_separate) = (false, false);
        if let Some(act) = act {
            if let Some(why) = self.without_directory(path, &reached.state)? {
                // Merged edits are in no file of their own.
                let is_merged = reached.text.is_some();
                let formers = if is_merged {
                    self.formers(path, states)?
                } else {
                    beside(&reached.state).into_iter().collect()
                };
                self.leave(path, why, formers);
                if let Some((why, formers)) = conflict.filter(|_| !is_merged) {
                    self.leave(path, why, formers);
                }
                return Ok(());
            }
            // What an earlier step makes has other times than the recorded state.
            let now = on_disk.clone().or_else(|| found.is_absent().then_some(found.clone()));
            let is_linked_since = on_disk.as_ref().is_some_and(|now| self.is_linked_since(now));
            is_replaced = is_linked_since;
            is_separate = is_of_other_file || self.is_edited_by_another_name(&found, &reached.state);
            self.steps.push(Step { path: path.to_owned(), now, act, is_linked_since, is_separate });
        }
        if matches!(reached.origin, Origin::Recorded(_)) {
            reached.on_disk = on_disk.filter(|_| !has_step);
            if !is_replaced {
                self.note_version(&found, &mut reached, is_separate)?;
            }
            self.made.insert(path.to_owned(), reached);
        }
        if let Some((why, formers)) = conflict {
            self.leave(path, why, formers);
        }
        Ok(())
    }

    /// Returns true if only the user has changed a name: calls have left it as they had found it first.
    fn is_edited_alone(&self, path: &Path, now: &Version, states: &[Recorded<'_>]) -> io::Result<bool> {
        let is_there = now.origin == Origin::Disk && !now.state.is_absent();
        let Some(Some(left)) = self.changed_since(now)?.filter(|_| is_there) else { return Ok(false) };
        let Some(oldest) = states.last().filter(|oldest| oldest.was.is_still(left)) else { return Ok(false) };
        // What the user had in between is put beside.
        Ok(self.formers(path, states)?.len() <= usize::from(beside(oldest.was).is_some()))
    }

    /// Goes from a version of a name through recorded states, from the newest to the oldest, as far as possible.
    fn walk_back(&self, path: &Path, found: Version, states: &[Recorded<'_>]) -> io::Result<Walk> {
        // What the session had left here, if the user has removed it since.
        let removed = match self.changed_since(&found)? {
            Some(left) if found.state.is_absent() => left.cloned(),
            _ => None,
        };
        let mut next = passed(&found, states);
        let mut version = found.clone();
        // A file that the user removed is not made again.
        let mut walk = Walk {
            act: None,
            conflict: None,
            reached: found,
            passed_over: Vec::new(),
            is_of_other_file: false,
        };
        for (number, recorded) in states.iter().enumerate() {
            if number < next {
                continue;
            }
            let is_removed = |left: &State| is_same_version(left, recorded.was);
            if version.state.is_absent() && removed.as_ref().is_some_and(is_removed) {
                version = Version::removed(*recorded);
                walk.conflict = Some((Why::Removed, Vec::new()));
                continue;
            }
            match self.step_back(path, &version, *recorded, number == 0)? {
                Back::Same => version = Version::recorded(*recorded),
                Back::To => {
                    walk.act = Some(Act::Restore(recorded.was.clone()));
                    version = Version::recorded(*recorded);
                }
                Back::Merged(was, text) => {
                    walk.is_of_other_file |= version.state.id() != recorded.was.id();
                    walk.act = Some(Act::Merge { was: was.clone(), text: text.clone() });
                    let recorded = Version::recorded(*recorded);
                    version = Version { state: State::File(was), text: Some(text), ..recorded };
                }
                // The user removed this file, so no copy of it is made; an older state may be another file.
                Back::Stays(why @ Why::Removed) => {
                    version = Version::removed(*recorded);
                    walk.conflict = Some((why, Vec::new()));
                    continue;
                }
                // An older state may have been kept.
                Back::Stays(why @ Why::Lost(_)) => {
                    let formers = self.formers(path, states.get(number..).unwrap_or_default())?;
                    version = Version::recorded(*recorded);
                    walk.conflict = Some((why, formers));
                    continue;
                }
                Back::Stays(why) => {
                    let left = states.get(number..).unwrap_or_default();
                    // An older state of this path is a directory too, so it need not be removed: its files have steps of their own.
                    let again = left.iter().position(|older| matches!(older.was, State::Directory(_)));
                    if why == Why::NotEmpty
                        && let Some(again) = again
                        && self.changed_since(&version)?.is_none()
                    {
                        next = number + again;
                        let between = left.get(..=again).unwrap_or_default();
                        walk.passed_over.extend(self.formers(path, between)?);
                        continue;
                    }
                    walk.conflict = Some((why, self.formers(path, left)?));
                    break;
                }
            }
            walk.reached = version.clone();
            walk.conflict = None;
        }
        Ok(walk)
    }

    /// Leaves a name as it is, with former versions beside it.
    fn leave(&mut self, path: &Path, why: Why, formers: Vec<State>) {
        let besides = if formers.is_empty() { vec![None] } else { formers.into_iter().map(Some).collect() };
        for beside in besides {
            let act = Act::Leave { why, beside };
            self.steps.push(Step::new(path.to_owned(), None, act));
        }
    }

    /// Leaves a name to another file, with former versions beside it if there are any.
    fn leave_occupied(&mut self, path: &Path, states: &[Recorded<'_>]) -> io::Result<()> {
        let formers = self.formers(path, states)?;
        if !formers.is_empty() {
            self.leave(path, Why::Occupied, formers);
        }
        Ok(())
    }

    /// Returns the versions that are put beside a name which does not go back through `states`: the oldest one, and
    /// before it those that somebody else than the session made, the oldest first.
    fn formers(&self, path: &Path, states: &[Recorded<'_>]) -> io::Result<Vec<State>> {
        let mut found: Vec<State> = Vec::new();
        let mut states = states.iter();
        let Some(mut version) = states.next().copied().map(Version::recorded) else { return Ok(found) };
        for recorded in states {
            let back = self.step_back(path, &version, *recorded, false)?;
            if !matches!(back, Back::Same | Back::To) {
                found.extend(beside(&version.state));
            }
            version = Version::recorded(*recorded);
        }
        found.extend(beside(&version.state));
        found.reverse();
        Ok(found)
    }

    /// Returns why nothing can be made at a path, if its directory will not be there.
    fn without_directory(&self, path: &Path, wanted: &State) -> io::Result<Option<Why>> {
        let Some(directory) = path.parent().filter(|_| !wanted.is_absent()) else { return Ok(None) };
        // The root has no directory to be looked at in.
        if directory.parent().is_none() {
            return Ok(None);
        }
        Ok(match self.look(directory)?.state {
            State::Directory(_) => None,
            State::Absent => Some(Why::Removed),
            State::File(_) | State::Link { .. } | State::Special { .. } => Some(Why::Occupied),
        })
    }

    /// Goes one recorded state back from a version of a name.
    fn step_back(
        &self,
        path: &Path,
        version: &Version,
        recorded: Recorded<'_>,
        is_first: bool,
    ) -> io::Result<Back> {
        let was = recorded.was;
        if version.text.is_none()
            && self.is_same(&version.state, &Version::recorded(recorded), version.real.is_none(), path)?
        {
            return Ok(Back::Same);
        }
        let is_directory = |state: &State| matches!(state, State::Directory(_));
        // A directory that holds files is not replaced.
        let gives_way = is_first && is_directory(&version.state) && !is_directory(was);
        if gives_way && self.holds_something(path)? {
            return Ok(Back::Stays(Why::NotEmpty));
        }
        if let Some(left) = self.changed_since(version)? {
            return self.conflict(version, left, was);
        }
        // The last name of a file stays if its content cannot be given back by the former one.
        if let Some(last) = version.state.file().filter(|file| file.links == 1)
            && was.id() != Some(last.id)
            && let Some((lost, _)) = self.not_kept.get(&last.id).filter(|(_, name)| *name != path)
        {
            return Ok(Back::Stays(Why::Lost(*lost)));
        }
        Ok(was.lost().map_or(Back::To, |lost| Back::Stays(Why::Lost(lost))))
    }

    /// Returns true if nothing has to be done to make `wanted` of what was found.
    fn is_same(&self, found: &State, wanted: &Version, is_ours: bool, path: &Path) -> io::Result<bool> {
        match (found, &wanted.state) {
            (State::File(now), State::File(was)) => {
                let key = |file: &FileState| (file.id, file.size, file.modified, file.mode, file.owner);
                let are_alike = are_alike(now.attributes.as_ref(), was.attributes.as_ref());
                let real = self.real(path).filter(|_| !is_ours && wanted.text.is_none());
                let (true, Some(real)) = (key(now) == key(was) && are_alike, real) else { return Ok(false) };
                if was.content == Content::Unread {
                    return Ok(true);
                }
                // Two changes right after each other leave the same time.
                let (now, was) = (self.world.text(&real, now)?, self.world.kept(was)?);
                Ok(now == was)
            }
            (State::Directory(now), State::Directory(was)) => {
                let key = |directory: &DirectoryState| (directory.mode, directory.owner, directory.modified);
                Ok(key(now) == key(was) && are_alike(now.attributes.as_ref(), was.attributes.as_ref()))
            }
            (now, was) => Ok(now == was),
        }
    }

    /// Decides about a version that somebody else has made.
    fn conflict(&self, version: &Version, left: Option<&State>, was: &State) -> io::Result<Back> {
        // A record of a mode alone has no content, and the content is the same.
        let is_same_text = |was: &&FileState| {
            let key = |file: &FileState| (file.id, file.size, file.modified);
            (was.content == Content::Unread || version.text.is_some())
                && left.and_then(State::file).map(key) == Some(key(was))
        };
        let kept = was.file().filter(|was| matches!(was.content, Content::Kept(_)) || is_same_text(was));
        if version.state.is_absent() {
            // What was removed is not what was there before, so the name is free for that.
            let is_other =
                left.is_some_and(|left| discriminant(left) != discriminant(was) || is_other_file(left, was));
            let is_given_back = is_other && was.lost().is_none();
            return Ok(if is_given_back { Back::To } else { Back::Stays(Why::Removed) });
        }
        let merged = match (&version.state, kept, left.and_then(State::file)) {
            (State::File(now), Some(was), Some(left)) => {
                let text = match is_same_text(&was) {
                    true => self.text_of(version)?,
                    false => self.merged(version, left, was)?,
                };
                text.map(|text| Back::Merged(with_later_status(was, left, now), text))
            }
            _ => None,
        };
        let why = if was.is_absent() { Why::MadeAndChanged } else { Why::Changed };
        Ok(merged.unwrap_or(Back::Stays(why)))
    }

    /// Merges the later edits of a text into its former version; `None` if that is not possible.
    fn merged(&self, version: &Version, left: &FileState, was: &FileState) -> io::Result<Option<Vec<u8>>> {
        let (Some(left), Some(now), Some(was)) =
            (self.world.kept(left)?, self.text_of(version)?, self.world.kept(was)?)
        else {
            return Ok(None);
        };
        let is_short = |text: &String| text.lines().take(MERGED_LINES + 1).count() <= MERGED_LINES;
        let text = |bytes: Vec<u8>| {
            String::from_utf8(bytes).ok().filter(|text| !text.contains('\0') && is_short(text))
        };
        let (Some(left), Some(now), Some(was)) = (text(left), text(now), text(was)) else { return Ok(None) };
        Ok(diffy::merge(&left, &now, &was).ok().map(String::into_bytes))
    }

    /// Returns the content of a version, if it is short.
    fn text_of(&self, version: &Version) -> io::Result<Option<Vec<u8>>> {
        match (&version.text, version.state.file(), &version.real) {
            (Some(text), _, _) => Ok(Some(text.clone())),
            (None, Some(file), Some(real)) => self.world.text(real, file),
            (None, Some(file), None) => self.world.kept(file),
            (None, None, _) => Ok(None),
        }
    }

    /// Returns what will be at a path after the steps so far, and where that comes from.
    fn look(&self, path: &Path) -> io::Result<Version> {
        if let Some(made) = self.made.get(path) {
            return Ok(self.as_shared(made).clone());
        }
        let implied = Version::of(State::Absent, Origin::Implied);
        let Some(real) = self.real(path) else { return Ok(implied) };
        let found = self.world.look(&real)?;
        let around = path.ancestors().skip(1).find_map(|around| self.made.get(around));
        let is_cleared = around.is_some_and(|around| !matches!(around.state, State::Directory(_)));
        if is_cleared && !found.is_absent() {
            return Ok(implied);
        }
        if let Some(version) = found.file().and_then(|file| self.files.get(&file.id)) {
            return Ok(version.clone());
        }
        Ok(Version { real: Some(real), ..Version::of(found, Origin::Disk) })
    }

    /// Returns where the file of a path is now; `None` if it will have been moved away.
    fn real(&self, path: &Path) -> Option<PathBuf> {
        let mut path = path.to_owned();
        for (old, new, exchange) in self.back.iter().rev() {
            if let Some(before) = renamed(&path, new, old) {
                path = before;
            } else if is_below(&path, old) {
                if !*exchange {
                    return None;
                }
                path = renamed(&path, old, new)?;
            }
        }
        Some(path)
    }

    fn holds_something(&self, path: &Path) -> io::Result<bool> {
        let Some(real) = self.real(path) else { return Ok(false) };
        for name in self.world.names(&real)? {
            if !self.look(&path.join(name))?.state.is_absent() {
                return Ok(true);
            }
        }
        // Something may have been put into it by a step.
        let below = self.made.range(path.to_owned()..).take_while(|(made, _)| is_below(made, path));
        let mut inside = below.filter(|(made, _)| made.parent() == Some(path));
        Ok(inside.any(|(_, made)| !made.state.is_absent()))
    }
}
