//! `/sandbox`: the screens and the transitions between them.
//!
//! Independent of protocol and disk, which a [`World`] provides.

mod decisions;
mod editor;
mod grants;
mod overview;
mod screen;

pub(crate) use screen::{Event, Line, Need, Screen, Tone};

use portcullis_config::{Draft, GrantFile};

use editor::Editor;
use screen::Item;

/// The data of the screens.
pub(crate) trait World {
    /// Returns true if the sandbox is enabled.
    fn is_on(&self) -> bool;
    /// Returns the description of the policy in force.
    fn summary(&self) -> Vec<Line>;
    /// Returns the settings that can be edited.
    fn scopes(&self) -> Vec<Scope>;
    /// Opens settings in a draft; the error says why that failed.
    fn open(&self, grant_file: &GrantFile) -> Result<Draft, String>;
    /// Saves edited settings and puts them in force. Returns a description of the result.
    fn save(&self, draft: &Draft) -> Result<String, String>;
    /// Returns all answers in force.
    fn grants(&self) -> Vec<Held>;
    /// Revokes an answer. Returns which part of it other answers still allow, as the end of a sentence.
    fn revoke(&self, id: &str) -> Result<String, String>;
    /// Returns the last decisions of this session, the newest first.
    fn decisions(&self) -> Vec<Decided>;
    /// Explains a decision.
    fn explain(&self, id: &str) -> Result<Explained, String>;
    /// Creates one of the rules that [`World::explain`] returned.
    fn make_rule(&self, id: &str, rule: &str) -> Result<String, String>;
}

/// Settings that can be edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scope {
    /// Their label.
    pub(crate) label: String,
    /// Their file.
    pub(crate) grant_file: GrantFile,
}

/// An answer in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held {
    /// Its id, for revoking it.
    pub(crate) id: String,
    /// Its description.
    pub(crate) label: String,
    /// Where it is stored.
    pub(crate) origin: String,
}

/// A decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decided {
    /// Its id in the log.
    pub(crate) id: String,
    /// The action.
    pub(crate) label: String,
    /// Effect and rule.
    pub(crate) value: String,
}

/// The explanation of a decision, with rules that can be made of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Explained {
    /// The explanation.
    pub(crate) lines: Vec<Line>,
    /// Descriptions of rules that would have decided.
    pub(crate) rules: Vec<String>,
}

/// The stack of open screens.
#[derive(Debug, Default)]
pub(crate) struct Menu {
    views: Vec<View>,
    /// The items of the last screen.
    shown: Vec<Item>,
    /// A message for the top of the next screen.
    notice: Option<Line>,
}

#[derive(Debug)]
enum View {
    Overview,
    Editor(Box<Editor>),
    Grants,
    Decisions,
    Explained { id: String },
}

/// The transition after an event.
enum Step {
    Stay,
    Deeper(View),
    Back,
    Said(Line),
    Needs(Need),
}

impl Menu {
    /// Handles an event and returns the next screen.
    pub(crate) fn handle(&mut self, world: &dyn World, event: &Event) -> Screen {
        if *event == Event::Open || self.views.is_empty() {
            *self = Self { views: vec![View::Overview], ..Self::default() };
            return self.screen(world);
        }
        match self.checked_step(world, event) {
            Step::Stay => {}
            Step::Deeper(view) => self.views.push(view),
            Step::Back => drop(self.views.pop()),
            Step::Said(line) => self.notice = Some(line),
            Step::Needs(need) => {
                self.views.clear();
                return Screen::needing(need);
            }
        }
        self.screen(world)
    }

    /// An index refers to the items as they were shown, since lists are rebuilt and can change meanwhile.
    fn checked_step(&mut self, world: &dyn World, event: &Event) -> Step {
        let index = match event {
            Event::Choose(index) | Event::Key(_, index) => *index,
            Event::Open | Event::Back | Event::Text(_) => return self.step(world, event, &Item::default()),
        };
        let shown = std::mem::take(&mut self.shown).into_iter().nth(index);
        let is_about_it = matches!(event, Event::Choose(_) | Event::Key('d', _));
        if is_about_it && self.made(world).items.get(index) != shown.as_ref() {
            return Step::Said(Line::bad("nothing was done: this has changed meanwhile, look again"));
        }
        self.step(world, event, &shown.unwrap_or_default())
    }

    /// `chosen` is the item of the event, as shown.
    fn step(&mut self, world: &dyn World, event: &Event, chosen: &Item) -> Step {
        match self.views.last_mut() {
            None => Step::Needs(Need::Close),
            Some(View::Overview) => overview::step(world, event, chosen),
            Some(View::Editor(editor)) => editor.step(world, event),
            Some(View::Grants) => grants::step(world, event, chosen),
            Some(View::Decisions) => decisions::step(event, chosen),
            Some(View::Explained { id }) => decisions::explained_step(world, id, event, chosen),
        }
    }

    fn screen(&mut self, world: &dyn World) -> Screen {
        let mut screen = self.made(world);
        self.shown.clone_from(&screen.items);
        if let Some(notice) = self.notice.take() {
            screen.lines.insert(0, notice);
        }
        screen
    }

    fn made(&self, world: &dyn World) -> Screen {
        match self.views.last() {
            None => Screen::needing(Need::Close),
            Some(View::Overview) => overview::screen(world),
            Some(View::Editor(editor)) => editor.screen(),
            Some(View::Grants) => grants::screen(world),
            Some(View::Decisions) => decisions::screen(world),
            Some(View::Explained { id }) => decisions::explained_screen(world, id),
        }
    }
}

#[cfg(test)]
mod tests;
