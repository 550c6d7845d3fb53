//! Answers that outlive the session, written to the user's settings.

use std::sync::{Mutex, PoisonError};

use portcullis_config::{AllowLists, Found, Places, RealDisk, Seed, Shelf, Store, keep, shelves};
use portcullis_decision::{Grant, GrantScope};
use portcullis_session::{Keeper, Place};

use crate::wire::Ground;

/// What the id of an entry of `projects.json` begins with; its key follows.
const ENTRY: &str = "entry:";

/// Writes to the files that `Places` names.
#[derive(Debug)]
pub(crate) struct FileKeeper {
    places: Places,
    store: Store,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    shelves: Vec<Shelf>,
    lists: AllowLists,
}

impl FileKeeper {
    pub(crate) fn new(ground: &Ground) -> Self {
        let state =
            State { shelves: found_shelves(&ground.found, &ground.places), lists: AllowLists::Unheard };
        Self { places: ground.places.clone(), store: Store::new(&ground.places), state: Mutex::new(state) }
    }

    /// The policies of the chain have been loaded.
    pub(crate) fn learn(&self, lists: AllowLists) {
        self.lock().lists = lists;
    }

    /// The settings have been read again.
    pub(crate) fn refresh(&self, found: &Found, lists: AllowLists) {
        *self.lock() = State { shelves: found_shelves(found, &self.places), lists };
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Keeper for FileKeeper {
    fn places(&self) -> Vec<Place> {
        self.lock().shelves.iter().filter_map(place).collect()
    }

    fn keep(&self, place: &str, grant: &Grant) -> Result<(), String> {
        let shelf = match place.strip_prefix(ENTRY) {
            // Written into where it has been made since, and made where it has not.
            Some(key) => Shelf::Entry { key: key.to_owned(), exact: true },
            None => Shelf::Default,
        };
        let lists = self.lock().lists;
        keep(&self.store, &self.places, &shelf, grant, lists)
            .map_err(|error| format!("{:#}", anyhow::Error::new(error)))
    }
}

/// Without a place to keep them answers last as long as the session.
fn found_shelves(found: &Found, places: &Places) -> Vec<Shelf> {
    shelves(found, places, &RealDisk).unwrap_or_default()
}

/// The words of the first seed.
fn place(shelf: &Shelf) -> Option<Place> {
    let (key, scope, label, id, target) = match shelf {
        Shelf::Entry { key, exact } => {
            let label = match exact {
                true => "Allow for this project".to_owned(),
                false => format!("Allow for this project (parent: {key})"),
            };
            ('P', GrantScope::Project, label, format!("{ENTRY}{key}"), format!("projects.json[\"{key}\"]"))
        }
        Shelf::NewEntry { key, seed } => {
            let key = key.to_str()?;
            let (letter, label, from) = match seed {
                Seed::Parent => {
                    ('N', format!("Allow for this project (new config: {key})"), "copied from the parent")
                }
                Seed::Default => ('P', "Allow for this project".to_owned(), "seeded from default.json"),
            };
            let target = format!("projects.json[\"{key}\"], {from}");
            (letter, GrantScope::Project, label, format!("{ENTRY}{key}"), target)
        }
        Shelf::Default => {
            let label = "Allow for all projects".to_owned();
            ('A', GrantScope::User, label, "default".to_owned(), "default.json".to_owned())
        }
    };
    Some(Place { id, key, scope, label, target })
}
