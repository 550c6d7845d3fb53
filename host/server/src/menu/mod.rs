//! `/sandbox`: the screens and the transitions between them.
//!
//! Independent of protocol and disk, which a [`World`] provides.

mod decisions;
mod editor;
mod editor_items;
mod grants;
mod overview;
mod policies;
mod presets;
mod screen;
mod switches;
mod transition;
mod world;

pub(crate) use screen::{Event, Line, Need, Screen, Tone};
pub(crate) use world::{Decided, Explained, Held, Offered, OfferedPolicy, Scope, World};

use screen::Item;
use transition::{Transition, View};

/// The stack of open screens.
#[derive(Debug, Default)]
pub(crate) struct Menu {
    views: Vec<View>,
    /// The marked item of each open screen.
    marks: Vec<usize>,
    /// The items of the last screen.
    shown: Vec<Item>,
    /// A message for the top of the next screen.
    notice: Option<Line>,
}

impl Menu {
    /// Handles an event and returns the next screen.
    pub(crate) fn handle(&mut self, world: &dyn World, event: &Event) -> Screen {
        if *event == Event::Open || self.views.is_empty() {
            *self = Self { views: vec![View::Overview], marks: vec![0], ..Self::default() };
            return self.screen(world);
        }
        if let (Event::Choose(index) | Event::Key(_, index), Some(mark)) = (event, self.marks.last_mut()) {
            *mark = *index;
        }
        match self.checked_step(world, event) {
            Transition::Stay => {}
            Transition::Deeper(view) => {
                self.views.push(view);
                self.marks.push(0);
            }
            Transition::Back => {
                self.views.pop();
                self.marks.pop();
            }
            Transition::Said(line) => self.notice = Some(line),
            Transition::Needs(need) => {
                self.views.clear();
                return Screen::needing(need);
            }
        }
        self.screen(world)
    }

    /// An index refers to the items as they were shown, since lists are rebuilt and can change meanwhile.
    fn checked_step(&mut self, world: &dyn World, event: &Event) -> Transition {
        let index = match event {
            Event::Choose(index) | Event::Key(_, index) => *index,
            Event::Open | Event::Back | Event::Text(_) => return self.step(world, event, &Item::default()),
        };
        let shown = std::mem::take(&mut self.shown).into_iter().nth(index);
        let is_about_it = matches!(event, Event::Choose(_) | Event::Key('d', _));
        if is_about_it && self.made(world).items.get(index) != shown.as_ref() {
            return Transition::Said(Line::bad("not done: this has changed meanwhile; look again"));
        }
        self.step(world, event, &shown.unwrap_or_default())
    }

    /// `chosen` is the item of the event, as shown.
    fn step(&mut self, world: &dyn World, event: &Event, chosen: &Item) -> Transition {
        match self.views.last_mut() {
            None => Transition::Needs(Need::Close),
            Some(View::Overview) => overview::step(world, event, chosen),
            Some(View::Editor(editor)) => editor.step(world, event).into(),
            Some(View::InForce) => overview::in_force_step(event),
            Some(View::Presets(list)) => list.step(world, event, chosen).into(),
            Some(View::Policies(list)) => list.step(world, event, chosen).into(),
            Some(View::Grants) => grants::step(world, event, chosen),
            Some(View::Decisions) => decisions::step(event, chosen),
            Some(View::Explained { id }) => decisions::explained_step(world, id, event, chosen),
        }
    }

    fn screen(&mut self, world: &dyn World) -> Screen {
        let mut screen = self.made(world);
        if let (Some(mark), false) = (self.marks.last(), matches!(self.views.last(), Some(View::Editor(_)))) {
            screen.selected = (*mark).min(screen.items.len().saturating_sub(1));
        }
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
            Some(View::InForce) => overview::in_force_screen(world),
            Some(View::Presets(list)) => list.screen(world),
            Some(View::Policies(list)) => list.screen(world),
            Some(View::Grants) => grants::screen(world),
            Some(View::Decisions) => decisions::screen(world),
            Some(View::Explained { id }) => decisions::explained_screen(world, id),
        }
    }
}

#[cfg(test)]
mod tests;
