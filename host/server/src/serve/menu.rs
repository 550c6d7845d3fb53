//! `/sandbox` for the client: converts the menu's screens to protocol messages.

use std::sync::PoisonError;

use portcullis_rpc::{
    ErrorObject, MenuEffect, MenuEvent, MenuInput, MenuItem, MenuKey, MenuLine, MenuParams, MenuScreen,
    Tone as WireTone,
};
use portcullis_text::{escape, escape_subject};

use crate::menu::{Event, Line, Need, Screen, Tone};
use crate::serve::contained;
use crate::serve::host::Host;

mod world;

use world::HostWorld;

impl Host {
    pub(super) fn menu(&self, params: MenuParams) -> Result<MenuScreen, ErrorObject> {
        let world = HostWorld::new(self)?;
        if self.contained.is_some() {
            return Ok(wire(contained::screen(&world, &event(params.event))));
        }
        let mut menu = self.menu.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(wire(menu.handle(&world, &event(params.event))))
    }
}

fn event(event: MenuEvent) -> Event {
    let place = |index| usize::try_from(index).unwrap_or(usize::MAX);
    match event {
        MenuEvent::Open {} => Event::Open,
        MenuEvent::Choose { index } => Event::Choose(place(index)),
        MenuEvent::Key { key, index } => match key.chars().next() {
            Some(key) => Event::Key(key, place(index)),
            None => Event::Back,
        },
        MenuEvent::Text { text } => Event::Text(text),
        MenuEvent::Back {} => Event::Back,
    }
}

/// Converts a screen and escapes all texts that the client shows.
pub(crate) fn wire(screen: Screen) -> MenuScreen {
    let label = |text: String| escape(&text);
    MenuScreen {
        title: label(screen.title),
        lines: screen.lines.into_iter().map(line).collect(),
        items: screen
            .items
            .into_iter()
            .map(|item| MenuItem {
                label: label(item.label),
                value: item.value.map(label),
                problem: item.problem.map(label),
            })
            .collect(),
        selected: u32::try_from(screen.selected).unwrap_or(0),
        keys: screen
            .keys
            .into_iter()
            .map(|(key, label)| MenuKey { key: key.to_string(), label: label.to_owned() })
            .collect(),
        // Editable text is returned unchanged, so it is not escaped; the client shows it in an input line.
        input: screen.input.map(|(label, value)| MenuInput { label, value }),
        effect: screen.need.map(|need| match need {
            Need::Enable => MenuEffect::Enable,
            Need::Disable => MenuEffect::Disable,
            Need::Close => MenuEffect::Close,
        }),
    }
}

fn line(line: Line) -> MenuLine {
    let tone = match line.tone {
        Tone::Plain => WireTone::Plain,
        Tone::Faint => WireTone::Faint,
        Tone::Good => WireTone::Good,
        Tone::Bad => WireTone::Bad,
    };
    // A sentence is not shortened.
    MenuLine { text: escape_subject(&line.text).0, tone }
}
