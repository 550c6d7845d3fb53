//! Shipped policies and packs, and switching them on and off.

use portcullis_settings::Draft;
use portcullis_settings_format::Change;
use serde_json::{Value, json};

use super::screen::{Event, Item, Line, Screen, SettingsStep};
use super::switches::{self, Switches};
use super::world::{OfferedPolicy, World};

/// The field of the settings that lists policies, the member that names one, and the policy of settings without a list.
const FIELD: &str = "policies";
const USE: &str = "use";
const DEFAULT: &str = "workspace";
/// The field with an expression over all policies, which an added policy would have to join.
const COMBINE: &str = "combine";

/// The list of policies.
#[derive(Debug)]
pub(super) struct PolicyList {
    switches: Switches,
}

impl Default for PolicyList {
    fn default() -> Self {
        // A list of differences cannot replace the list of policies.
        Self { switches: Switches::new(|draft| !draft.is_of_differences()) }
    }
}

impl PolicyList {
    pub(super) fn screen(&self, world: &dyn World) -> Screen {
        let keys = vec![('t', "other file"), ('b', "back")];
        let screen = Screen { title: "Policies and packs".to_owned(), keys, ..Screen::default() };
        let (scope, draft) = match self.switches.open(world) {
            Ok(opened) => opened,
            Err(error) => return Screen { lines: vec![Line::bad(error)], ..screen },
        };
        let on = names(&entries(&draft));
        let item = |OfferedPolicy { name, title }: OfferedPolicy| {
            let is_on = on.contains(&name);
            switches::item(name, &title, is_on)
        };
        let lines = vec![
            Line::plain(format!("For {}", scope.projects)),
            Line::faint("The strictest policy that is on decides. `portcullis policy add` installs packs."),
        ];
        Screen { lines, items: world.policies().into_iter().map(item).collect(), ..screen }
    }

    pub(super) fn step(&mut self, world: &dyn World, event: &Event, chosen: &Item) -> SettingsStep {
        self.switches.step(world, event, chosen, switch)
    }
}

/// Switches a policy, and returns whether it is on now.
fn switch(draft: &mut Draft, name: &str) -> Result<bool, String> {
    if draft.is_of_differences() {
        return Err("these settings only list differences: switch policies in the default config".to_owned());
    }
    if !draft.value(&[COMBINE.to_owned()]).is_null() {
        return Err(
            "`combine` says how these policies act together: edit it with them in the file".to_owned()
        );
    }
    let mut listed = entries(draft);
    let was_on = names(&listed).iter().any(|known| known == name);
    if was_on {
        listed.retain(|entry| entry.get(USE) != Some(&json!(name)));
    } else {
        listed.push(json!({ USE: name }));
    }
    if listed.is_empty() {
        return Err(format!("{name} is the only policy: switch another one on first"));
    }
    draft
        .change(&Change::Set(vec![FIELD.to_owned()], Value::Array(listed)))
        .map_err(|error| error.to_string())?;
    Ok(!was_on)
}

/// Returns the policies of the settings, or the default one.
fn entries(draft: &Draft) -> Vec<Value> {
    if let Value::Array(listed) = draft.value(&[FIELD.to_owned()])
        && !listed.is_empty()
    {
        return listed;
    }
    vec![json!({ USE: DEFAULT })]
}

fn names(entries: &[Value]) -> Vec<String> {
    entries.iter().filter_map(|entry| Some(entry.get(USE)?.as_str()?.to_owned())).collect()
}
