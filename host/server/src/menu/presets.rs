//! Presets, and switching them on and off.

use portcullis_settings::Draft;
use portcullis_settings_format::Change;
use serde_json::{Value, json};

use super::screen::{Event, Item, Line, Screen, SettingsStep};
use super::switches::{self, Switches};
use super::world::{Offered, World};

/// The field of the settings that names presets.
const FIELD: &str = "presets";

/// The list of presets.
#[derive(Debug, Default)]
pub(super) struct PresetList {
    switches: Switches,
    /// The preset whose hosts are shown.
    explained: Option<String>,
}

impl PresetList {
    pub(super) fn screen(&self, world: &dyn World) -> Screen {
        let keys = vec![('i', "its hosts"), ('t', "other file"), ('b', "back")];
        let screen = Screen { title: "Presets".to_owned(), keys, ..Screen::default() };
        let (scope, draft) = match self.switches.open(world) {
            Ok(opened) => opened,
            Err(error) => return Screen { lines: vec![Line::bad(error)], ..screen },
        };
        let mut lines = vec![
            Line::plain(format!("For {}", scope.projects)),
            Line::faint("A preset that is on lets commands reach its hosts without a question."),
        ];
        let presets = world.presets();
        if let Some(preset) = presets.iter().find(|preset| Some(&preset.name) == self.explained.as_ref()) {
            lines.push(Line::faint(format!("{}: {}", preset.name, preset.hosts.join(", "))));
        }
        let on = on(&draft);
        let item =
            |Offered { name, title, .. }: &Offered| switches::item(name.clone(), title, on.contains(name));
        Screen { lines, items: presets.iter().map(item).collect(), ..screen }
    }

    pub(super) fn step(&mut self, world: &dyn World, event: &Event, chosen: &Item) -> SettingsStep {
        if let Event::Key('i', _) = event {
            let is_shown = self.explained.as_ref() == Some(&chosen.label);
            self.explained = (!is_shown).then(|| chosen.label.clone());
        }
        self.switches.step(world, event, chosen, switch)
    }
}

/// Switches a preset, and returns whether it is on now.
fn switch(draft: &mut Draft, name: &str) -> Result<bool, String> {
    let way = vec![FIELD.to_owned()];
    let was_on = on(draft).iter().any(|known| known == name);
    let change = if was_on { Change::Drop(way, json!(name)) } else { Change::Append(way, json!(name)) };
    draft.change(&change).map_err(|error| error.to_string())?;
    Ok(!was_on)
}

/// Returns the names of the presets that are on.
fn on(draft: &Draft) -> Vec<String> {
    let Value::Array(names) = draft.value(&[FIELD.to_owned()]) else { return Vec::new() };
    names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect()
}
