//! What the lists of presets and of policies share: entries of one settings file that are on or off.

use portcullis_settings::Draft;

use super::screen::{Event, Item, Line, SettingsStep};
use super::world::{Scope, World};

/// A list of switches for one of the settings files.
#[derive(Debug)]
pub(super) struct Switches {
    /// Place of the edited settings among the scopes.
    scope: usize,
    /// Returns true for settings that can hold the entries.
    can_hold: fn(&Draft) -> bool,
}

impl Default for Switches {
    fn default() -> Self {
        Self::new(|_| true)
    }
}

impl Switches {
    /// Makes a list for settings that `can_hold` its entries.
    pub(super) fn new(can_hold: fn(&Draft) -> bool) -> Self {
        Self { scope: 0, can_hold }
    }

    /// Opens the settings that are edited: those of the chosen scope, or the next that can hold the entries.
    pub(super) fn open(&self, world: &dyn World) -> Result<(Scope, Draft), String> {
        let mut scopes = world.scopes();
        let chosen = self.scope.min(scopes.len());
        scopes.rotate_left(chosen);
        let mut first = None;
        for scope in scopes {
            let draft = world.open(&scope.grant_file)?;
            if (self.can_hold)(&draft) {
                return Ok((scope, draft));
            }
            first.get_or_insert((scope, draft));
        }
        first.ok_or_else(|| "there are no settings to edit".to_owned())
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
        Ok(format!("{name} is {} for {}", if is_on { "on" } else { "off" }, scope.projects))
    }
}

/// Returns the item of an entry.
pub(super) fn item(name: String, title: &str, is_on: bool) -> Item {
    let state = if is_on { "on" } else { "off" };
    Item::valued(name, format!("{state:3}  {title}"))
}
