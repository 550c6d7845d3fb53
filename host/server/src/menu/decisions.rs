//! Recent decisions: their reasons, and rules that would change the next one.

use super::screen::{Event, Item, Line, Screen};
use super::transition::{Transition, View};
use super::world::{Decided, Explained, World};

pub(super) fn screen(world: &dyn World) -> Screen {
    let item = |decision: Decided| Item::valued(decision.label, decision.value).standing_for(decision.id);
    let items: Vec<Item> = world.decisions().into_iter().map(item).collect();
    let lines = if items.is_empty() { vec![Line::faint("nothing was decided yet")] } else { Vec::new() };
    Screen {
        title: "Recent decisions".to_owned(),
        lines,
        items,
        keys: vec![('b', "back")],
        ..Screen::default()
    }
}

pub(super) fn step(event: &Event, chosen: &Item) -> Transition {
    match event {
        Event::Back | Event::Key('b' | 'q', _) => Transition::Back,
        Event::Choose(_) if !chosen.id.is_empty() => {
            Transition::Deeper(View::Explained { id: chosen.id.clone() })
        }
        Event::Open | Event::Choose(_) | Event::Key(..) | Event::Text(_) => Transition::Stay,
    }
}

pub(super) fn explained_screen(world: &dyn World, id: &str) -> Screen {
    let Explained { lines, rules } = world
        .explain(id)
        .unwrap_or_else(|error| Explained { lines: vec![Line::bad(error)], rules: Vec::new() });
    Screen {
        title: format!("Decision {id}"),
        lines,
        items: rules.into_iter().map(Item::new).collect(),
        keys: vec![('b', "back")],
        ..Screen::default()
    }
}

pub(super) fn explained_step(world: &dyn World, id: &str, event: &Event, chosen: &Item) -> Transition {
    match event {
        Event::Back | Event::Key('b' | 'q', _) => Transition::Back,
        Event::Choose(_) if !chosen.label.is_empty() => match world.make_rule(id, &chosen.label) {
            Ok(done) => Transition::Said(Line::good(done)),
            Err(error) => Transition::Said(Line::bad(error)),
        },
        Event::Open | Event::Choose(_) | Event::Key(..) | Event::Text(_) => Transition::Stay,
    }
}
