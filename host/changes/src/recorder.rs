//! Records names before they are changed, and what a call has left at its end.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::{CStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::io::Errno;
use serde::Serialize;

use crate::contents::Outside;
use crate::disk::{self, Spot, Spots, look};
use crate::opened::{self, Access, Opened};
use crate::paths::{below, is_of_objects};
use crate::record::{CallKey, Named, Record};
use crate::spared::Spared;
use crate::state::{Attributes, Changed, Content, DirectoryState, FileId, FileState, Lost, State, UNREAD};
use crate::store::{Progress, Store};
use crate::touched::{left_by_steps, touched};

/// The text of a changed file is kept up to this length, to merge it with later edits.
const MERGED_BYTES: u64 = 1 << 20;
/// The bytes of the names in one record, and of the extended attributes of a file: half of the longest line.
const PART_BYTES: usize = 512 << 10;
/// The bytes that JSON makes of one, and the bytes of a state without texts: at most.
const ESCAPED_BYTES: usize = 6;
const PLAIN_BYTES: usize = 512;
/// Two changes this close to each other can have the same time.
const CLOCK_STEP: Duration = Duration::from_millis(40);

/// Records changes in a store.
#[derive(Debug)]
pub struct Recorder {
    store: Store,
    seen: Mutex<Seen>,
    /// Whether changes are no longer recorded once the journal is as long as it may be.
    is_bounded: bool,
}

/// The names that need no further record.
#[derive(Debug, Default)]
struct Seen {
    /// Of each running call.
    calls: HashMap<CallKey, BTreeMap<OsString, Noted>>,
    /// The number of moves so far.
    moves: u64,
    /// The number of undos so far.
    undos: u64,
    /// The calls with changes that the journal has no room for.
    full: HashSet<CallKey>,
}

/// What has been recorded of a name.
#[derive(Debug, Clone, Copy)]
struct Noted {
    /// The number of moves before.
    moves: u64,
    /// Whether the content was kept as well.
    is_whole: bool,
}

/// A name in an open directory.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a, D> {
    /// The directory.
    pub directory: D,
    /// The name in it.
    pub name: &'a CStr,
    /// The canonical path of the name.
    pub path: &'a Path,
}

/// What becomes of a file that is recorded.
#[derive(Clone, Copy)]
enum Fate<'a> {
    /// It may be written.
    Changes,
    /// It loses its name.
    LosesName(Outside<'a>),
}

impl Recorder {
    /// Records in this store, whatever the length of its journal.
    #[must_use]
    pub fn new(store: Store) -> Self {
        Self { store, seen: Mutex::default(), is_bounded: false }
    }

    /// Records in this store what commands and tools change, as long as its journal has room.
    #[must_use]
    pub fn bounded(store: Store) -> Self {
        Self { is_bounded: true, ..Self::new(store) }
    }

    /// Returns the store.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns a new key for a call of the host.
    #[must_use]
    pub fn own_call(&self) -> CallKey {
        self.store.own_call()
    }

    /// Records a name that `call` is about to change.
    ///
    /// # Errors
    /// If it cannot be recorded; then the change must not be made.
    pub fn before<D: AsFd>(&self, call: CallKey, place: Place<'_, D>) -> io::Result<()> {
        self.or_refusal(self.record(call, place, Fate::Changes).map(drop))
    }

    /// Records a name that `call` is about to remove or to give to another file. If the result is there, it must be
    /// told whether that has happened.
    ///
    /// # Errors
    /// If it cannot be recorded; then the change must not be made.
    pub fn before_removal<D: AsFd>(
        &self,
        call: CallKey,
        place: Place<'_, D>,
        outside: Outside<'_>,
    ) -> io::Result<Option<Spared<'_>>> {
        self.or_refusal(self.record(call, place, Fate::LosesName(outside)))
    }

    /// Counts a change that is refused because the disk of the store is full.
    fn or_refusal<T>(&self, recorded: io::Result<T>) -> io::Result<T> {
        recorded.inspect_err(|error| {
            if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
                // Without it, the command is the only one that tells the user.
                let _counted = self.store.count_refusal();
            }
        })
    }

    fn record<D: AsFd>(
        &self,
        call: CallKey,
        place: Place<'_, D>,
        fate: Fate<'_>,
    ) -> io::Result<Option<Spared<'_>>> {
        let progress = self.progress()?;
        if self.is_seen(call, place.path) && !self.is_directory_before_a_move(call, &place)? {
            return Ok(None);
        }
        if self.is_full(progress, call, &place)? {
            return Ok(None);
        }
        let (state, spared) = self.full(&place, fate)?;
        let was = Named { path: place.path.to_owned(), state };
        let around =
            if is_of_objects(place.path) { disk::changed_at_of(&place.directory).ok() } else { None };
        self.store.append(&[Record::Before { call, was, around }])?;
        self.note(call, place.path, true);
        Ok(spared)
    }

    /// Records a file or directory whose mode or times `call` is about to change: of a file, everything but
    /// the content.
    ///
    /// # Errors
    /// If it cannot be recorded; then the change must not be made.
    pub fn before_status<D: AsFd>(&self, call: CallKey, place: Place<'_, D>) -> io::Result<()> {
        self.or_refusal(self.record_status(call, place))
    }

    /// Records a file or directory whose extended attributes `call` is about to change.
    ///
    /// # Errors
    /// If it cannot be recorded, or if its owner cannot read the attributes that it has; then the change must not be
    /// made.
    pub fn before_attributes<D: AsFd>(&self, call: CallKey, place: Place<'_, D>) -> io::Result<()> {
        let id = look(&place.directory, place.name)?.id();
        let attributes = id.and_then(|id| disk::attributes_at(&place.directory, place.name, id));
        if attributes.is_some_and(|all| all.iter().any(|(_, value)| value == UNREAD)) {
            return Err(Errno::ACCESS.into());
        }
        self.before_status(call, place)
    }

    fn record_status<D: AsFd>(&self, call: CallKey, place: Place<'_, D>) -> io::Result<()> {
        let mut state = look(&place.directory, place.name)?;
        let file = match &mut state {
            State::File(file) if file.links == 1 => file,
            // By another name, the content may change as well.
            State::File(_) | State::Directory(_) => return self.before(call, place),
            State::Absent | State::Link { .. } | State::Special { .. } => return Ok(()),
        };
        let progress = self.progress()?;
        if self.noted(call, place.path).is_some() || self.is_full(progress, call, &place)? {
            return Ok(());
        }
        if let Some(attributes) = disk::attributes_at(&place.directory, place.name, file.id) {
            match bounded(attributes) {
                Some(attributes) => file.attributes = Some(attributes),
                None => file.content = Content::Lost(Lost::Attributes),
            }
        }
        let was = Named { path: place.path.to_owned(), state };
        self.store.append(&[Record::Before { call, was, around: None }])?;
        self.note(call, place.path, false);
        Ok(())
    }

    /// Returns how far the journal is. After an undo, forgets the names recorded before it, so that a running call that
    /// changes them again is recorded.
    fn progress(&self) -> io::Result<Progress> {
        let progress = self.store.progress()?;
        let mut seen = self.lock();
        if seen.undos != progress.undos {
            seen.undos = progress.undos;
            seen.calls.values_mut().for_each(BTreeMap::clear);
        }
        drop(seen);
        Ok(progress)
    }

    /// Returns true if the journal has no room for a change. That is recorded at the first such change of a call.
    fn is_full<D: AsFd>(&self, progress: Progress, call: CallKey, place: &Place<'_, D>) -> io::Result<bool> {
        if !self.is_bounded || !self.store.is_full(progress) {
            return Ok(false);
        }
        if self.lock().full.insert(call) {
            let state = unrecorded(look(&place.directory, place.name)?);
            let was = Named { path: place.path.to_owned(), state };
            self.store.append(&[Record::Before { call, was, around: None }])?;
        }
        Ok(true)
    }

    fn note(&self, call: CallKey, path: &Path, is_whole: bool) {
        let mut seen = self.lock();
        let moves = seen.moves;
        seen.calls.entry(call).or_default().insert(path.into(), Noted { moves, is_whole });
    }

    fn noted(&self, call: CallKey, path: &Path) -> Option<Noted> {
        self.lock().calls.get(&call).and_then(|names| names.get(path.as_os_str())).copied()
    }

    /// Returns true for a directory that was recorded before a move: what was removed from it since is given back
    /// before the move is taken back, and needs it.
    fn is_directory_before_a_move<D: AsFd>(&self, call: CallKey, place: &Place<'_, D>) -> io::Result<bool> {
        let is_before = {
            let moves = self.lock().moves;
            self.noted(call, place.path).is_some_and(|noted| noted.moves < moves)
        };
        Ok(is_before && matches!(look(&place.directory, place.name)?, State::Directory(_)))
    }

    /// Records a name that is not there, and whose directory is not there either.
    pub(crate) fn absent(&self, call: CallKey, path: &Path) -> io::Result<()> {
        let was = Named { path: path.to_owned(), state: State::Absent };
        self.store.append(&[Record::Before { call, was, around: None }])
    }

    /// Records that `call` is about to give the file at `from` the name `to`, or to exchange the two. `outside` is of `to`.
    ///
    /// # Errors
    /// If it cannot be recorded; then the change must not be made.
    pub fn moving<D: AsFd>(
        &self,
        call: CallKey,
        (from, to): (Place<'_, D>, Place<'_, D>),
        exchange: bool,
        outside: Outside<'_>,
    ) -> io::Result<(Move, Option<Spared<'_>>)> {
        let progress = self.progress()?;
        let mut replaced = None;
        let what = look(&from.directory, from.name)?;
        let target = look(&to.directory, to.name)?;
        // Nothing happens if both are names of one file.
        if what.is_absent() || what.id().is_some() && what.id() == target.id() {
            return Ok((Move::Unrecorded, None));
        }
        if !exchange {
            replaced = self.before_removal(call, to_ref(&to), outside)?;
            // Undoing gives the former name back what was there before it was seen.
            if !matches!(what, State::Directory(_)) && self.is_seen(call, from.path) {
                return Ok((Move::Unrecorded, replaced));
            }
        }
        if self.is_full(progress, call, &from)? {
            return Ok((Move::Unrecorded, replaced));
        }
        let (from, to) = (from.path.to_owned(), to.path.to_owned());
        let record = Record::Moved { call, from: from.clone(), to: to.clone(), what, exchange };
        self.or_refusal(self.store.append(&[record]))?;
        // From now on these paths mean other files.
        let mut seen = self.lock();
        seen.moves += 1;
        for names in seen.calls.values_mut() {
            for top in [&from, &to] {
                for path in below(names, top) {
                    names.remove(&path);
                }
            }
        }
        Ok((Move::Recorded, replaced))
    }

    /// Records that the move that was announced last did not happen.
    pub fn not_moved(&self, call: CallKey, announced: Move) {
        if announced == Move::Recorded {
            // If the disk is full by now, undoing finds the file at its former name.
            let _written = self.store.append(&[Record::NotMoved { call }]);
        }
    }

    /// Forgets what calls have seen that no longer run.
    pub fn forget(&self, runs: impl Fn(CallKey) -> bool) {
        let mut seen = self.lock();
        seen.calls.retain(|call, _| runs(*call));
        seen.full.retain(|call| runs(*call));
    }

    /// Returns true if nothing has been recorded for a call here.
    pub fn is_new(&self, call: CallKey) -> bool {
        let seen = self.lock();
        !seen.calls.contains_key(&call) && !seen.full.contains(&call)
    }

    /// Records that a turn of the user begins.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn turn(&self, id: &str, label: &str) -> io::Result<()> {
        self.store.append(&[Record::Turn { id: id.to_owned(), label: label.to_owned(), at: now() }])
    }

    /// Records what a call has left, if it has changed anything since the journal had the length `start`.
    ///
    /// # Errors
    /// If the journal cannot be read or written; the call is then one that has not ended.
    pub fn finish(&self, call: CallKey, start: u64, id: Option<&str>, label: &str) -> io::Result<Changed> {
        if self.store.length()? == start {
            return Ok(Changed::default());
        }
        let (records, _) = self.store.records_from(start)?;
        let touched = touched(&records, call);
        let steps = left_by_steps(&records, call);
        if touched.names.is_empty() && !touched.has_moved {
            return Ok(Changed::default());
        }
        let mut lines = Vec::new();
        let (mut opened, mut spots) = (Opened::new(&self.store), Spots::default());
        let (mut names, mut bytes) = (Vec::new(), 0);
        for (path, was) in &touched.names {
            let path = Path::new(path);
            let mut left = match self.left(&mut spots, path, was) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    opened.open_the_way(path, &|_, _| true);
                    self.left(&mut Spots::default(), path, was)?
                }
                left => left?,
            };
            match steps.names.get(path) {
                Some(step) if !left.state.is_unchanged(step) => left.state = step.clone(),
                None if steps.not_made.contains(path) => continue,
                _ => {}
            }
            let length = longest(&left);
            if bytes + length > PART_BYTES && !names.is_empty() {
                lines.push(Record::Left { call, names: std::mem::take(&mut names) });
                bytes = 0;
            }
            bytes += length;
            names.push(left);
        }
        lines.extend((!names.is_empty()).then_some(Record::Left { call, names }));
        lines.push(Record::Ended { call, id: id.map(str::to_owned), label: label.to_owned(), at: now() });
        self.store.append(&lines)?;
        let mut seen = self.lock();
        seen.calls.remove(&call);
        seen.full.remove(&call);
        drop(seen);
        Ok(Changed { names: touched.names.len(), lost: touched.lost })
    }

    /// Returns the names that a call has recorded without their content since the journal had the length `start`.
    pub(crate) fn lost(&self, call: CallKey, start: u64) -> io::Result<Vec<(PathBuf, Lost)>> {
        Ok(touched(&self.store.records_from(start)?.0, call).lost)
    }

    /// Records that a step of an undo is about to change a name to this state. With `None`, its state does not matter
    /// if the undo is interrupted.
    pub(crate) fn reaches(&self, call: CallKey, path: &Path, to: Option<State>) -> io::Result<()> {
        self.store.append(&[Record::Reaches { call, path: path.to_owned(), to }])
    }

    /// Records that the step that was about to change a name was not made.
    pub(crate) fn not_made(&self, call: CallKey, path: &Path) -> io::Result<()> {
        self.store.append(&[Record::NotMade { call, path: path.to_owned() }])
    }

    /// Records the state of a name after a step of an undo, and returns it. `size` is the size that the step gave the file:
    /// it is recorded even if the file has another one by now, so that this counts as an edit of the user.
    pub(crate) fn left_so_far(&self, call: CallKey, path: &Path, size: Option<u64>) -> io::Result<State> {
        let mut left = self.left(&mut Spots::default(), path, &State::Absent)?;
        if let (State::File(file), Some(size)) = (&mut left.state, size)
            && file.size != size
        {
            (file.size, file.digest) = (size, None);
        }
        let state = left.state.clone();
        self.store.append(&[Record::LeftSoFar { call, left }])?;
        Ok(state)
    }

    /// Returns what is at a path now, after a call that found `was` there.
    fn left(&self, spots: &mut Spots, path: &Path, was: &State) -> io::Result<Named> {
        let named = |state| Ok(Named { path: path.to_owned(), state });
        let spot = match spots.spot(path) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return named(State::Absent),
            spot => spot?,
        };
        let mut state = look(&spot.directory, &spot.name)?;
        note_attributes(&mut state, &spot);
        match &mut state {
            State::File(file) => {
                let open = || disk::open_same(&spot.directory, &spot.name, file.id);
                if is_recent(file.modified)
                    && let Ok(open) = open()
                {
                    file.digest = disk::digest(open, file.size)?;
                }
                let was_text =
                    was.file().is_some_and(|was| was.size <= MERGED_BYTES && was.content != Content::Unread);
                if was_text
                    && file.size <= MERGED_BYTES
                    && let Ok(open) = open()
                {
                    file.content = self.store.keep(&open, file)?;
                }
            }
            State::Absent | State::Directory(_) | State::Link { .. } | State::Special { .. } => {}
        }
        named(state)
    }

    /// Returns the state of a name, with its content kept.
    fn full<D: AsFd>(&self, place: &Place<'_, D>, fate: Fate<'_>) -> io::Result<(State, Option<Spared<'_>>)> {
        let mut state = look(&place.directory, place.name)?;
        let mut spared = None;
        match &mut state {
            State::File(file) => match self.open(place, file) {
                Ok(open) => {
                    let attributes = match disk::attributes(&open) {
                        all if !self.is_bounded && all.iter().any(|(_, value)| value == UNREAD) => {
                            opened::attributes(&self.store, (&place.directory, place.name, place.path), file)?
                        }
                        all => all,
                    };
                    let Some(attributes) = bounded(attributes) else {
                        file.content = Content::Lost(Lost::Attributes);
                        return Ok((state, None));
                    };
                    file.attributes = Some(attributes);
                    let kept = match fate {
                        Fate::LosesName(outside) => self.store.spare(&open, (outside, place.name), file)?,
                        Fate::Changes => None,
                    };
                    (file.content, spared) = match kept {
                        Some((content, link)) => (content, Some(link)),
                        None => (self.store.keep(&open, file)?, None),
                    };
                }
                Err(_) => file.content = Content::Lost(Lost::Unreadable),
            },
            State::Directory(directory) => {
                if let Some(attributes) = disk::attributes_at(&place.directory, place.name, directory.id) {
                    // Undoing would remove attributes that are not in the record.
                    directory.attributes = Some(bounded(attributes).ok_or(io::ErrorKind::FileTooLarge)?);
                }
            }
            State::Absent | State::Link { .. } | State::Special { .. } => {}
        }
        Ok((state, spared))
    }

    /// Opens a file whose content is kept. Undo keeps also what its owner cannot read; commands run meanwhile otherwise,
    /// so that the mode of their files is not changed.
    fn open<D: AsFd>(&self, place: &Place<'_, D>, file: &FileState) -> io::Result<OwnedFd> {
        match self.is_bounded {
            true => Ok(disk::open_same(&place.directory, place.name, file.id)?),
            false => {
                opened::file(&self.store, (&place.directory, place.name, place.path), file, Access::Read)
            }
        }
    }

    fn is_seen(&self, call: CallKey, path: &Path) -> bool {
        self.noted(call, path).is_some_and(|noted| noted.is_whole)
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the state of a name that is changed without a record. It counts as a file that cannot be given back.
fn unrecorded(found: State) -> State {
    let content = Content::Lost(Lost::RecordFull);
    State::File(match found {
        State::File(file) => FileState { content, ..file },
        State::Absent | State::Directory(_) | State::Link { .. } | State::Special { .. } => FileState {
            id: FileId { device: (0, 0), inode: 0, born: (0, 0) },
            size: 0,
            modified: (0, 0),
            mode: 0,
            owner: (0, 0),
            links: 1,
            attributes: None,
            digest: None,
            content,
        },
    })
}

/// Returns extended attributes, if they are short enough for a record.
fn bounded(attributes: Attributes) -> Option<Attributes> {
    length_of(&attributes).is_ok_and(|bytes| bytes <= PART_BYTES).then_some(attributes)
}

/// Adds the attributes of a name that a call has left, if they are short enough for a record.
fn note_attributes(state: &mut State, spot: &Spot) {
    let of = |id| bounded(disk::attributes_at(&spot.directory, &spot.name, id)?);
    match state {
        State::File(file) => file.attributes = of(file.id),
        State::Directory(directory) => directory.attributes = of(directory.id),
        State::Absent | State::Link { .. } | State::Special { .. } => {}
    }
}

/// Returns how long a name and its state are in a record at most, in bytes.
fn longest(named: &Named) -> usize {
    let texts = match &named.state {
        State::File(FileState { attributes: Some(all), .. })
        | State::Directory(DirectoryState { attributes: Some(all), .. }) => {
            all.iter().map(|(name, value)| name.len() + value.len() + PLAIN_BYTES).sum()
        }
        State::Link { target, .. } => target.as_os_str().len(),
        State::File(_) | State::Directory(_) | State::Absent | State::Special { .. } => 0,
    };
    let content = match named.state.file().map(|file| &file.content) {
        Some(Content::Kept(name)) => name.len(),
        Some(Content::Unread | Content::Lost(_)) | None => 0,
    };
    let texts = texts + content;
    (named.path.as_os_str().len() + texts) * ESCAPED_BYTES + PLAIN_BYTES
}

/// Returns how long a value is in a record, in bytes.
fn length_of(value: &impl Serialize) -> io::Result<usize> {
    Ok(serde_json::to_vec(value).map_err(io::Error::other)?.len())
}

/// Whether a move has a record of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    /// It has.
    Recorded,
    /// The states of both names are enough.
    Unrecorded,
}

fn to_ref<'a, D: AsFd>(place: &'a Place<'_, D>) -> Place<'a, &'a D> {
    Place { directory: &place.directory, name: place.name, path: place.path }
}

/// Returns the time in milliseconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Returns true if a file that was changed at this time could be changed again without its time telling.
fn is_recent((seconds, nanoseconds): (i64, u32)) -> bool {
    let Ok(seconds) = u64::try_from(seconds) else { return true };
    let changed = UNIX_EPOCH + Duration::new(seconds, nanoseconds);
    // One in the future tells nothing either.
    changed.elapsed().map_or(true, |since| since < CLOCK_STEP)
}
