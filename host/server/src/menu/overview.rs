//! The first screen: the policy in force, the toggle, and links to the other screens.

use super::editor::Editor;
use super::policies::PolicyList;
use super::presets::PresetList;
use super::screen::{Event, Item, Line, Need, Screen};
use super::transition::{Transition, View};
use super::world::World;

const DISABLE: &str = "Disable sandbox";
const ENABLE: &str = "Enable sandbox";
const IN_FORCE: &str = "What is in force";
const PRESETS: &str = "Presets";
const POLICIES: &str = "Policies and packs";
const GRANTS: &str = "Kept answers";
const DECISIONS: &str = "Recent decisions";

pub(super) fn screen(world: &dyn World) -> Screen {
    let toggle = if world.is_on() { DISABLE } else { ENABLE };
    let mut items = vec![Item::valued(toggle, "for this session")];
    items.extend(world.scopes().into_iter().map(|scope| Item::new(scope.label)));
    items.push(Item::new(IN_FORCE));
    items.push(Item::valued(PRESETS, "hosts of package registries and the like"));
    items.push(Item::valued(POLICIES, "switch them on and off"));
    let grants = world.grants().len();
    items.push(Item::valued(GRANTS, grants.to_string()));
    items.push(Item::new(DECISIONS));
    Screen {
        title: "Sandbox".to_owned(),
        lines: world.short(),
        items,
        keys: vec![('q', "quit")],
        ..Screen::default()
    }
}

pub(super) fn step(world: &dyn World, event: &Event, chosen: &Item) -> Transition {
    match event {
        Event::Back | Event::Key('q', _) => return Transition::Needs(Need::Close),
        Event::Choose(_) => {}
        Event::Open | Event::Key(..) | Event::Text(_) => return Transition::Stay,
    }
    match chosen.label.as_str() {
        DISABLE => Transition::Needs(Need::Disable),
        ENABLE => Transition::Needs(Need::Enable),
        IN_FORCE => Transition::Deeper(View::InForce),
        PRESETS => Transition::Deeper(View::Presets(PresetList::default())),
        POLICIES => Transition::Deeper(View::Policies(PolicyList::default())),
        GRANTS => Transition::Deeper(View::Grants),
        DECISIONS => Transition::Deeper(View::Decisions),
        label => match world.scopes().into_iter().find(|scope| scope.label == label) {
            Some(scope) => match world.open(&scope.grant_file) {
                Ok(draft) => {
                    let file = world.path_in_words(draft.file());
                    Transition::Deeper(View::Editor(Box::new(Editor::new(scope.label, draft, file))))
                }
                Err(error) => Transition::Said(Line::bad(error)),
            },
            None => Transition::Stay,
        },
    }
}

/// The policy in force, in full.
pub(super) fn in_force_screen(world: &dyn World) -> Screen {
    Screen {
        title: IN_FORCE.to_owned(),
        lines: world.summary(),
        keys: vec![('b', "back")],
        ..Screen::default()
    }
}

pub(super) fn in_force_step(event: &Event) -> Transition {
    match event {
        Event::Back | Event::Key('b' | 'q', _) => Transition::Back,
        Event::Open | Event::Choose(_) | Event::Key(..) | Event::Text(_) => Transition::Stay,
    }
}
