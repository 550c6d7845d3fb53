//! The first screen: what is in force, the toggle, and where one can go.

use super::editor::Editor;
use super::screen::{Event, Item, Line, Need, Screen};
use super::{Step, View, World};

pub(super) fn screen(world: &dyn World) -> Screen {
    let toggle = if world.is_on() { "Disable sandbox" } else { "Enable sandbox" };
    let mut items = vec![Item::valued(toggle, "for this session")];
    items.extend(world.scopes().into_iter().map(|scope| Item::new(scope.label)));
    let grants = world.grants().len();
    items.push(Item::valued("Answers that hold", grants.to_string()));
    items.push(Item::new("Recent decisions"));
    Screen {
        title: "Sandbox".to_owned(),
        lines: world.summary(),
        items,
        keys: vec![('q', "quit")],
        ..Screen::default()
    }
}

pub(super) fn step(world: &dyn World, event: &Event) -> Step {
    let index = match event {
        Event::Back | Event::Key('q', _) => return Step::Needs(Need::Close),
        Event::Choose(0) => {
            return Step::Needs(if world.is_on() { Need::Disable } else { Need::Enable });
        }
        Event::Choose(index) => *index,
        Event::Open | Event::Key(..) | Event::Text(_) => return Step::Stay,
    };
    let scopes = world.scopes();
    let after = index.checked_sub(1 + scopes.len());
    match (scopes.get(index.saturating_sub(1)), after) {
        (Some(scope), None) => match world.open(&scope.shelf) {
            Ok(draft) => Step::Deeper(View::Editor(Box::new(Editor::new(scope.label.clone(), draft)))),
            Err(error) => Step::Said(Line::bad(error)),
        },
        (_, Some(0)) => Step::Deeper(View::Grants),
        (_, Some(1)) => Step::Deeper(View::Decisions),
        _ => Step::Stay,
    }
}
