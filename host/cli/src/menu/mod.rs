//! `/sandbox`: which screen follows which. It knows no protocol and no disk; a [`World`] does.

mod decisions;
mod editor;
mod grants;
mod overview;
mod screen;

pub(crate) use screen::{Event, Line, Need, Screen, Tone};

use portcullis_config::{Draft, Shelf};

use editor::Editor;

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
    /// Takes an answer back.
    fn revoke(&self, id: &str) -> Result<(), String>;
    /// The last decisions of this session, the newest first.
    fn decisions(&self) -> Vec<Decided>;
    /// Why one of them was made.
    fn explain(&self, id: &str) -> Result<Explained, String>;
    /// Makes a rule of it.
    fn make_rule(&self, id: &str, rule: usize) -> Result<String, String>;
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
            *self = Self { views: vec![View::Overview], notice: None };
            return self.screen(world);
        }
        match self.step(world, event) {
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

    fn step(&mut self, world: &dyn World, event: &Event) -> Step {
        match self.views.last_mut() {
            None => Step::Needs(Need::Close),
            Some(View::Overview) => overview::step(world, event),
            Some(View::Editor(editor)) => editor.step(world, event),
            Some(View::Grants) => grants::step(world, event),
            Some(View::Decisions) => decisions::step(world, event),
            Some(View::Explained { id }) => decisions::explained_step(world, id, event),
        }
    }

    fn screen(&mut self, world: &dyn World) -> Screen {
        let mut screen = match self.views.last() {
            None => return Screen::needing(Need::Close),
            Some(View::Overview) => overview::screen(world),
            Some(View::Editor(editor)) => editor.screen(),
            Some(View::Grants) => grants::screen(world),
            Some(View::Decisions) => decisions::screen(world),
            Some(View::Explained { id }) => decisions::explained_screen(world, id),
        };
        if let Some(notice) = self.notice.take() {
            screen.lines.insert(0, notice);
        }
        screen
    }
}

#[cfg(test)]
mod tests;
