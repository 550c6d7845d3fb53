//! State of the commands' connections: answers, the identity of commands, and notes for the model.

use std::collections::{HashMap, HashSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use portcullis_decision::GrantScope;
use portcullis_decision::request::{Endpoint, NetworkAccess};
use portcullis_network_gate::Running;

use crate::cancel::Cancel;

/// Maximum number of notes per command; more do not help the model.
const NOTES_MAX: usize = 20;
/// How long to wait for the identity of a command, which may connect before it is registered.
const INTRODUCTION: Duration = Duration::from_millis(300);

/// A host and a port.
pub type HostAndPort = (Endpoint, u16);

/// Answers and facts about the connections of a session's commands.
#[derive(Debug, Default)]
pub struct Connections {
    table: Mutex<Table>,
    introduced: Condvar,
}

#[derive(Debug, Default)]
struct Table {
    /// Number of changes to the answers.
    revision: u64,
    commands: HashMap<u32, Command>,
    /// Commands that have ended, until their numbers are used again.
    ended: HashSet<u32>,
    /// Notices that the user has seen.
    told: HashSet<String>,
    /// The open questions.
    rounds: HashMap<u64, Cancel>,
}

/// State of one command, identified by the pid of its init process.
#[derive(Debug, Default)]
struct Command {
    identity: Option<Identity>,
    allowed: HashSet<HostAndPort>,
    refused: HashSet<HostAndPort>,
    /// Places refused to a connection of an unknown command while this command ran.
    refused_to_unknown: HashSet<HostAndPort>,
    notes: Vec<String>,
    /// Total time its connections have waited for the user, without the current wait.
    waited: Duration,
    waits_since: Option<Instant>,
}

/// The identity of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// The id of its request.
    pub request: String,
    /// The client's call.
    pub call: Option<String>,
}

/// Returns the host and port of a connection.
#[must_use]
pub fn place(access: &NetworkAccess) -> HostAndPort {
    (access.target.clone(), access.port)
}

impl Connections {
    /// Registers the identity of a command.
    pub fn introduce(&self, command: u32, request: &str, call: Option<&str>) {
        if command == 0 {
            return;
        }
        let identity = Identity { request: request.to_owned(), call: call.map(str::to_owned) };
        let mut table = self.table();
        table.ended.remove(&command);
        table.commands.entry(command).or_default().identity = Some(identity);
        drop(table);
        self.introduced.notify_all();
    }

    /// Removes a command that has ended, and returns the notes for the model.
    pub fn dismiss(&self, command: u32) -> Vec<String> {
        let mut table = self.table();
        table.ended.insert(command);
        table.commands.remove(&command).map(|command| command.notes).unwrap_or_default()
    }

    /// Returns true if the command has been dismissed, and no other has its number.
    pub fn has_ended(&self, command: u32) -> bool {
        self.table().ended.contains(&command)
    }

    /// Returns the identity of a command; waits briefly for one that has just started.
    #[must_use]
    pub fn identity(&self, command: u32) -> Option<Identity> {
        if command == 0 {
            return None;
        }
        let is_unknown =
            |table: &mut Table| table.commands.get(&command).is_none_or(|command| command.identity.is_none());
        let waited = self.introduced.wait_timeout_while(self.table(), INTRODUCTION, is_unknown);
        let (table, _) = waited.unwrap_or_else(PoisonError::into_inner);
        table.commands.get(&command).and_then(|command| command.identity.clone())
    }

    /// Returns which commands run.
    pub fn running(&self) -> Running {
        let table = self.table();
        let mut running = table.commands.iter().filter(|(_, command)| command.identity.is_some());
        match (running.next(), running.next()) {
            (None, _) => Running::None,
            (Some((&command, _)), None) => Running::One(command),
            (Some(_), Some(_)) => Running::Several,
        }
    }

    /// Returns true if the text is new, and remembers it.
    #[must_use]
    pub fn is_news(&self, text: &str) -> bool {
        self.table().told.insert(text.to_owned())
    }

    /// Adds a note on a connection of a command, for the model.
    pub fn note(&self, command: u32, text: String) {
        if command == 0 {
            return;
        }
        let mut table = self.table();
        let notes = &mut table.commands.entry(command).or_default().notes;
        if notes.len() < NOTES_MAX && !notes.contains(&text) {
            notes.push(text);
        }
    }

    /// Adds a note to all running commands.
    pub fn note_to_all(&self, text: &str) {
        let commands: Vec<u32> = self.table().commands.keys().copied().collect();
        commands.into_iter().for_each(|command| self.note(command, text.to_owned()));
    }

    /// Remembers that the user allowed a place to a command for as long as it runs.
    ///
    /// An answer with a longer scope is a grant and ends with that.
    pub fn allow(&self, command: u32, place: HostAndPort, scope: GrantScope) {
        let mut table = self.table();
        table.revision += 1;
        if command != 0 && scope == GrantScope::Once {
            table.commands.entry(command).or_default().allowed.insert(place);
        }
    }

    /// Remembers a plain "no" to a place for as long as the command runs.
    ///
    /// So a program that retries does not ask again; other commands do. For an unknown command (0), the "no" applies to
    /// unknown commands while any of the current commands runs.
    pub fn refuse(&self, command: u32, place: HostAndPort) {
        let mut table = self.table();
        table.revision += 1;
        if command != 0 {
            table.commands.entry(command).or_default().refused.insert(place);
            return;
        }
        for command in table.commands.values_mut().filter(|command| command.identity.is_some()) {
            command.refused_to_unknown.insert(place.clone());
        }
    }

    /// Returns true if the user said a plain "no" to this place for this command.
    ///
    /// An unknown command (0) can be any running one, so a refusal for one of these applies.
    #[must_use]
    pub fn is_refused(&self, command: u32, place: &HostAndPort) -> bool {
        let table = self.table();
        if command != 0 {
            return table.commands.get(&command).is_some_and(|command| command.refused.contains(place));
        }
        table
            .commands
            .values()
            .any(|command| command.refused.contains(place) || command.refused_to_unknown.contains(place))
    }

    /// Removes places that were allowed to running commands, when the user revokes an answer.
    pub fn forget_allowed(&self, is_meant: impl Fn(&Endpoint, u16) -> bool) {
        let mut table = self.table();
        table.revision += 1;
        for command in table.commands.values_mut() {
            command.allowed.retain(|(target, port)| !is_meant(target, *port));
        }
    }

    /// Returns true if the user allowed a place to a command for as long as it runs.
    #[must_use]
    pub fn is_allowed(&self, command: u32, place: &HostAndPort) -> bool {
        self.table().commands.get(&command).is_some_and(|command| command.allowed.contains(place))
    }

    /// Records that a question is open and that its command waits.
    pub fn begin_round(&self, round: u64, command: u32, cancel: Cancel) {
        let mut table = self.table();
        table.rounds.insert(round, cancel);
        if command != 0 {
            table.commands.entry(command).or_default().waits_since = Some(Instant::now());
        }
    }

    /// Records that a question is no longer open.
    pub fn end_round(&self, round: u64, command: u32) {
        let mut table = self.table();
        table.rounds.remove(&round);
        if let Some(command) = table.commands.get_mut(&command) {
            command.waited += command.waits_since.take().map(|since| since.elapsed()).unwrap_or_default();
        }
    }

    /// Withdraws an open question.
    pub fn withdraw(&self, round: u64) {
        let cancel = self.table().rounds.get(&round).cloned();
        if let Some(cancel) = cancel {
            cancel.cancel();
        }
    }

    /// Returns the time that a command has waited for the user, which does not count as run time.
    #[must_use]
    pub fn waited(&self, command: u32) -> Duration {
        let table = self.table();
        let Some(command) = table.commands.get(&command) else { return Duration::ZERO };
        command.waited + command.waits_since.map(|since| since.elapsed()).unwrap_or_default()
    }

    /// Returns a number that grows with each change to the answers.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.table().revision
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a_place() -> HostAndPort {
        (Endpoint::Domain("a.test".to_owned()), 443)
    }

    #[test]
    fn what_was_allowed_to_a_command_ends_with_it() {
        let memory = Connections::default();
        memory.allow(7, a_place(), GrantScope::Once);
        assert!(memory.is_allowed(7, &a_place()) && !memory.is_allowed(8, &a_place()));
        memory.note(7, "one".to_owned());
        memory.note(7, "one".to_owned());
        assert!(!memory.has_ended(7));
        assert_eq!(memory.dismiss(7), ["one"]);
        assert!(memory.has_ended(7) && !memory.has_ended(8));
        assert!(!memory.is_allowed(7, &a_place()), "the number may belong to another process next");
        memory.allow(0, a_place(), GrantScope::Once);
        assert!(!memory.is_allowed(0, &a_place()), "nobody is known by this number");
    }

    #[test]
    fn a_plain_no_is_for_the_command_that_asked() {
        let memory = Connections::default();
        memory.refuse(7, a_place());
        assert!(memory.is_refused(7, &a_place()) && !memory.is_refused(8, &a_place()));
        assert!(!memory.is_refused(7, &(a_place().0, 80)), "another port is another question");
        memory.dismiss(7);
        assert!(!memory.is_refused(7, &a_place()), "the number may belong to another process next");
        memory.introduce(7, "r2", None);
        assert!(!memory.has_ended(7), "now it does");
    }

    #[test]
    fn a_no_holds_for_unknown_commands_as_long_as_a_command_runs_that_ran_then() {
        let memory = Connections::default();
        assert_eq!(memory.running(), Running::None);
        memory.introduce(7, "r1", None);
        assert_eq!(memory.running(), Running::One(7));
        memory.introduce(8, "r2", None);
        assert_eq!(memory.running(), Running::Several);
        memory.refuse(7, a_place());
        assert!(memory.is_refused(0, &a_place()), "it may be this command");
        memory.dismiss(7);
        assert!(!memory.is_refused(0, &a_place()));
        memory.refuse(0, a_place());
        memory.introduce(9, "r3", None);
        assert!(memory.is_refused(0, &a_place()));
        assert!(!memory.is_refused(8, &a_place()), "a command that is known has its own answers");
        memory.dismiss(8);
        assert!(!memory.is_refused(0, &a_place()), "all that ran then have ended");
    }

    #[test]
    fn what_is_kept_for_longer_is_none_of_the_command() {
        let memory = Connections::default();
        for scope in [GrantScope::Session, GrantScope::Project, GrantScope::User] {
            memory.allow(7, a_place(), scope);
            assert!(!memory.is_allowed(7, &a_place()), "{scope:?}");
        }
        memory.allow(7, a_place(), GrantScope::Once);
        memory.forget_allowed(|_, port| port != a_place().1);
        assert!(memory.is_allowed(7, &a_place()), "another one was meant");
        memory.forget_allowed(|target, port| (target.clone(), port) == a_place());
        assert!(!memory.is_allowed(7, &a_place()));
    }

    #[test]
    fn waiting_for_the_user_is_counted() {
        let memory = Connections::default();
        memory.begin_round(1, 7, Cancel::default());
        std::thread::sleep(Duration::from_millis(5));
        let during = memory.waited(7);
        assert!(during >= Duration::from_millis(5));
        memory.end_round(1, 7);
        let after = memory.waited(7);
        assert!(after >= during);
        assert_eq!(memory.waited(7), after);
    }

    #[test]
    fn a_command_is_known_as_soon_as_it_is_introduced() {
        let memory = Connections::default();
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| memory.identity(7));
            memory.introduce(7, "r1", Some("c1"));
            let identity = asked.join().unwrap().unwrap();
            assert_eq!((identity.request.as_str(), identity.call.as_deref()), ("r1", Some("c1")));
        });
        assert_eq!(memory.identity(8), None);
    }
}
