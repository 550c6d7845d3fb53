//! Presets, and switching them on and off.

use portcullis_settings::Draft;
use portcullis_settings_format::Change;
use serde_json::{Value, json};

use super::screen::{Event, Item, Line, Screen, SettingsStep};
use super::world::{Offered, Scope, World};

/// The field of the settings that names presets.
const FIELD: &str = "presets";

/// The list of presets.
#[derive(Debug, Default)]
pub(super) struct PresetList {
    /// Place of the edited settings among the scopes.
    scope: usize,
    /// The preset whose hosts are shown.
    explained: Option<String>,
}

impl PresetList {
    pub(super) fn screen(&self, world: &dyn World) -> Screen {
        let keys = vec![('i', "its hosts"), ('t', "other file"), ('b', "back")];
        let screen = Screen { title: "Presets".to_owned(), keys, ..Screen::default() };
        let (scope, draft) = match self.open(world) {
            Ok(opened) => opened,
            Err(error) => return Screen { lines: vec![Line::bad(error)], ..screen },
        };
        let mut lines = vec![
            Line::plain(format!("In: {}", scope.label)),
            Line::faint("A preset that is on lets commands reach its hosts without a question."),
        ];
        let presets = world.presets();
        if let Some(preset) = presets.iter().find(|preset| Some(&preset.name) == self.explained.as_ref()) {
            lines.push(Line::faint(format!("{}: {}", preset.name, preset.hosts.join(", "))));
        }
        let on = on(&draft);
        let item = |Offered { name, title, .. }: &Offered| {
            let state = if on.contains(name) { "on" } else { "off" };
            Item::valued(name.clone(), format!("{state:3}  {title}"))
        };
        Screen { lines, items: presets.iter().map(item).collect(), ..screen }
    }

    pub(super) fn step(&mut self, world: &dyn World, event: &Event, chosen: &Item) -> SettingsStep {
        match event {
            Event::Back | Event::Key('b' | 'q', _) => return SettingsStep::Back,
            Event::Key('i', _) => {
                let is_shown = self.explained.as_ref() == Some(&chosen.label);
                self.explained = (!is_shown).then(|| chosen.label.clone());
            }
            Event::Key('t', _) => self.scope = (self.scope + 1) % world.scopes().len().max(1),
            Event::Choose(_) if !chosen.label.is_empty() => {
                return SettingsStep::Said(match self.switch(world, &chosen.label) {
                    Ok(done) => Line::good(done),
                    Err(error) => Line::bad(error),
                });
            }
            Event::Open | Event::Choose(_) | Event::Key(..) | Event::Text(_) => {}
        }
        SettingsStep::Stay
    }

    fn open(&self, world: &dyn World) -> Result<(Scope, Draft), String> {
        let scope = world.scopes().into_iter().nth(self.scope).ok_or("there are no settings to edit")?;
        let draft = world.open(&scope.grant_file)?;
        Ok((scope, draft))
    }

    /// Switches a preset on or off, and saves that.
    fn switch(&self, world: &dyn World, name: &str) -> Result<String, String> {
        let (scope, mut draft) = self.open(world)?;
        let way = vec![FIELD.to_owned()];
        let (change, state) = if on(&draft).iter().any(|known| known == name) {
            (Change::Drop(way, json!(name)), "off")
        } else {
            (Change::Append(way, json!(name)), "on")
        };
        draft.change(&change).map_err(|error| error.to_string())?;
        world.save(&draft)?;
        Ok(format!("{name} is {state} ({})", scope.label))
    }
}

/// Returns the names of the presets that are on.
fn on(draft: &Draft) -> Vec<String> {
    let Value::Array(names) = draft.value(&[FIELD.to_owned()]) else { return Vec::new() };
    names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect()
}
