//! What the lists of presets and of policies share: entries of one settings file that are on or off.

use portcullis_settings::Draft;

use super::screen::{Event, Item, Line, SettingsStep};
use super::world::{Scope, World};

/// A list of switches for one of the settings files.
#[derive(Debug, Default)]
pub(super) struct Switches {
    /// Place of the edited settings among the scopes.
    scope: usize,
}

impl Switches {
    /// Opens the settings that are edited.
    pub(super) fn open(&self, world: &dyn World) -> Result<(Scope, Draft), String> {
        let scope = world.scopes().into_iter().nth(self.scope).ok_or("there are no settings to edit")?;
        let draft = world.open(&scope.grant_file)?;
        Ok((scope, draft))
    }

    /// Reacts to `event`. `switch` switches an entry in the settings, and returns whether it is on now.
    pub(super) fn step(
        &mut self,
        world: &dyn World,
        event: &Event,
        chosen: &Item,
        switch: impl FnOnce(&mut Draft, &str) -> Result<bool, String>,
    ) -> SettingsStep {
        match event {
            Event::Back | Event::Key('b' | 'q', _) => return SettingsStep::Back,
            Event::Key('t', _) => self.scope = (self.scope + 1) % world.scopes().len().max(1),
            Event::Choose(_) if !chosen.label.is_empty() => {
                return SettingsStep::Said(match self.saved(world, &chosen.label, switch) {
                    Ok(done) => Line::good(done),
                    Err(error) => Line::bad(error),
                });
            }
            Event::Open | Event::Choose(_) | Event::Key(..) | Event::Text(_) => {}
        }
        SettingsStep::Stay
    }

    /// Switches an entry, and saves that.
    fn saved(
        &self,
        world: &dyn World,
        name: &str,
        switch: impl FnOnce(&mut Draft, &str) -> Result<bool, String>,
    ) -> Result<String, String> {
        let (scope, mut draft) = self.open(world)?;
        let is_on = switch(&mut draft, name)?;
        world.save(&draft)?;
        Ok(format!("{name} is {} ({})", if is_on { "on" } else { "off" }, scope.label))
    }
}

/// Returns the item of an entry.
pub(super) fn item(name: String, title: &str, is_on: bool) -> Item {
    let state = if is_on { "on" } else { "off" };
    Item::valued(name, format!("{state:3}  {title}"))
}
