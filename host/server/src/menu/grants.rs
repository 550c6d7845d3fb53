//! Answers in force, and revoking them.

use super::screen::{Event, Item, Line, Screen};
use super::transition::Transition;
use super::world::{Held, World};

pub(super) fn screen(world: &dyn World) -> Screen {
    let item = |grant: Held| Item::valued(grant.label, grant.origin).standing_for(grant.id);
    let items: Vec<Item> = world.grants().into_iter().map(item).collect();
    let lines = if items.is_empty() { vec![Line::faint("none")] } else { Vec::new() };
    Screen {
        title: "Kept answers".to_owned(),
        lines,
        items,
        keys: vec![('d', "take back"), ('b', "back")],
        ..Screen::default()
    }
}

pub(super) fn step(world: &dyn World, event: &Event, chosen: &Item) -> Transition {
    match event {
        Event::Back | Event::Key('b' | 'q', _) => Transition::Back,
        Event::Key('d', _) if !chosen.id.is_empty() => match world.revoke(&chosen.id) {
            Ok(still) => Transition::Said(Line::good(format!("taken back: {}{still}", chosen.label))),
            Err(error) => Transition::Said(Line::bad(error)),
        },
        Event::Open | Event::Choose(_) | Event::Key(..) | Event::Text(_) => Transition::Stay,
    }
}
