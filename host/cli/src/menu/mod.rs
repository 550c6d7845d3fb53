//! `/sandbox`: which screen follows which. It knows no protocol and no disk; a [`World`] does.

mod decisions;
mod editor;
mod grants;
mod overview;
mod screen;

pub(crate) use screen::{Event, Line, Need, Screen, Tone};

use portcullis_config::{Draft, Shelf};

use editor::Editor;
use screen::Item;

/// What the screens are about.
pub(crate) trait World {
    /// Whether the sandbox is on.
    fn is_on(&self) -> bool;
    /// What is in force.
    fn summary(&self) -> Vec<Line>;
    /// Where settings can be edited.
    fn scopes(&self) -> Vec<Scope>;
    /// Opens settings for editing; the text says why they cannot be.
    fn open(&self, shelf: &Shelf) -> Result<Draft, String>;
    /// Writes edited settings and puts them in force; returns what came of it.
    fn save(&self, draft: &Draft) -> Result<String, String>;
    /// Every answer that holds.
    fn grants(&self) -> Vec<Held>;
    /// Takes an answer back; returns what other answers still allow of it, as the end of a sentence.
    fn revoke(&self, id: &str) -> Result<String, String>;
    /// The last decisions of this session, the newest first.
    fn decisions(&self) -> Vec<Decided>;
    /// Why one of them was made.
    fn explain(&self, id: &str) -> Result<Explained, String>;
    /// Makes one of the rules of it that [`World::explain`] has told.
    fn make_rule(&self, id: &str, rule: &str) -> Result<String, String>;
}

/// Settings that can be edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scope {
    /// What it is called.
    pub(crate) label: String,
    /// Where they lie.
    pub(crate) shelf: Shelf,
}

/// An answer that holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held {
    /// By which it is taken back.
    pub(crate) id: String,
    /// What it says.
    pub(crate) label: String,
    /// Where it stands.
    pub(crate) origin: String,
}

/// A decision that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decided {
    /// Its place in the log.
    pub(crate) id: String,
    /// What was asked for.
    pub(crate) label: String,
    /// The answer and the rule.
    pub(crate) value: String,
}

/// Why a decision was made, and what can be made of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Explained {
    /// Why.
    pub(crate) lines: Vec<Line>,
    /// Rules that would have answered, in words.
    pub(crate) rules: Vec<String>,
}

/// The screens that are open, the newest last.
#[derive(Debug, Default)]
pub(crate) struct Menu {
    views: Vec<View>,
    /// What was there to choose on the last screen.
    shown: Vec<Item>,
    /// Said once, at the top of the next screen.
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

/// Where an event leads.
enum Step {
    Stay,
    Deeper(View),
    Back,
    Said(Line),
    Needs(Need),
}

impl Menu {
    /// Takes an event and makes the screen that follows.
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

    /// What is chosen by its place is what was shown there: lists are made anew, and change meanwhile.
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

    /// `chosen` is what the event is about, as it was shown.
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
