//! Answers that hold, and taking them back.

use super::screen::{Event, Item, Line, Screen};
use super::{Step, World};

pub(super) fn screen(world: &dyn World) -> Screen {
    let items: Vec<Item> =
        world.grants().into_iter().map(|grant| Item::valued(grant.label, grant.origin)).collect();
    let lines = if items.is_empty() { vec![Line::faint("none")] } else { Vec::new() };
    Screen {
        title: "Answers that hold".to_owned(),
        lines,
        items,
        keys: vec![('d', "take back"), ('b', "back")],
        ..Screen::default()
    }
}

pub(super) fn step(world: &dyn World, event: &Event) -> Step {
    match event {
        Event::Back | Event::Key('b' | 'q', _) => Step::Back,
        Event::Key('d', index) => match world.grants().get(*index) {
            None => Step::Stay,
            Some(grant) => match world.revoke(&grant.id) {
                Ok(()) => Step::Said(Line::good(format!("taken back: {}", grant.label))),
                Err(error) => Step::Said(Line::bad(error)),
            },
        },
        Event::Open | Event::Choose(_) | Event::Key(..) | Event::Text(_) => Step::Stay,
    }
}
