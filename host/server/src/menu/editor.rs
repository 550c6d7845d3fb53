//! The field editor and the list editor, as in `@oddsjam/pi-sandbox`.

use portcullis_settings::Draft;
use portcullis_settings_format::{Change, FIELDS, Field, Shape, Status};
use serde_json::{Value, json};

use super::editor_items::{addition, is_list, items, removal, typed};
use super::screen::{Event, Item, Line, Screen, SettingsStep};
use super::world::World;

/// Fields that are shown by default; `?` shows the others.
const USUAL: &[&str] = &[
    "enabled",
    "network.allowedDomains",
    "network.deniedDomains",
    "filesystem.denyRead",
    "filesystem.allowRead",
    "filesystem.allowWrite",
    "filesystem.denyWrite",
];

/// Settings in the editor.
#[derive(Debug)]
pub(super) struct Editor {
    title: String,
    file: String,
    draft: Draft,
    advanced: bool,
    place: EditedPart,
    /// The selected row of the previous screen.
    selected: usize,
    problem: Option<String>,
    /// The field whose meaning is shown.
    explained: Option<&'static str>,
    /// Whether the user was told that leaving loses changes.
    is_warned: bool,
}

/// The part of the settings on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
enum EditedPart {
    Fields,
    List(&'static str),
    /// Text input for a field, or for a list item that replaces another.
    Input {
        field: &'static str,
        item: Option<Value>,
        typed: String,
    },
}

impl Editor {
    /// `file` is the path of the draft, as people write it.
    pub(super) fn new(title: String, draft: Draft, file: String) -> Self {
        Self {
            title,
            file,
            draft,
            advanced: false,
            place: EditedPart::Fields,
            selected: 0,
            problem: None,
            explained: None,
            is_warned: false,
        }
    }

    pub(super) fn step(&mut self, world: &dyn World, event: &Event) -> SettingsStep {
        match self.place.clone() {
            EditedPart::Fields => self.on_fields(world, event),
            EditedPart::List(field) => self.on_list(field, event),
            EditedPart::Input { field, item, .. } => self.on_input(field, item.as_ref(), event),
        }
    }

    fn on_fields(&mut self, world: &dyn World, event: &Event) -> SettingsStep {
        self.problem = None;
        let explained = self.explained.take();
        let was_warned = std::mem::take(&mut self.is_warned);
        match event {
            Event::Back | Event::Key('q', _) if self.draft.is_changed() && !was_warned => {
                self.is_warned = true;
                return SettingsStep::Said(Line::bad(
                    "Not saved yet: s saves, Esc again leaves without saving.",
                ));
            }
            Event::Back | Event::Key('q', _) => return SettingsStep::Back,
            Event::Key('i', index) => {
                self.selected = *index;
                let field = self.fields().get(*index).map(|field| field.name);
                self.explained = field.filter(|name| explained != Some(name));
            }
            Event::Key('?', index) => {
                self.selected = *index;
                self.advanced = !self.advanced;
            }
            Event::Key('s', _) => {
                return match world.save(&self.draft) {
                    Ok(done) => self.saved(world, &done),
                    Err(error) => SettingsStep::Said(Line::bad(error)),
                };
            }
            Event::Choose(index) => {
                self.selected = *index;
                if let Some(field) = self.fields().get(*index).copied() {
                    self.enter(field);
                }
            }
            Event::Open | Event::Key(..) | Event::Text(_) => {}
        }
        SettingsStep::Stay
    }

    /// Open the saved file again; otherwise the next save would find that the file has changed.
    fn saved(&mut self, world: &dyn World, done: &str) -> SettingsStep {
        let grant_file = self.draft.grant_file().clone();
        match world.open(&grant_file) {
            Ok(draft) => self.draft = draft,
            Err(error) => return SettingsStep::Said(Line::bad(error)),
        }
        SettingsStep::Said(Line::good(done))
    }

    fn enter(&mut self, field: &'static Field) {
        let value = self.draft.value(&way(field.name));
        match field.shape {
            Shape::Bool => {
                let now = value.as_bool().unwrap_or(field.name == "enabled");
                self.change(&Change::Set(way(field.name), json!(!now)));
            }
            Shape::OneOf(words) => {
                let now = words.iter().position(|word| value.as_str() == Some(word));
                let next = now.map_or(0, |now| (now + 1) % words.len());
                if let Some(word) = words.get(next) {
                    self.change(&Change::Set(way(field.name), json!(word)));
                }
            }
            Shape::List(_) | Shape::Map(_) | Shape::Objects => {
                self.selected = 0;
                self.place = EditedPart::List(field.name);
            }
            Shape::Text
            | Shape::AbsolutePath
            | Shape::Integer(..)
            | Shape::Path
            | Shape::AllowedDomain
            | Shape::DeniedDomain
            | Shape::Address
            | Shape::VariableName
            | Shape::VariableGlob => self.ask(field.name, None, plain(&value)),
            Shape::Object | Shape::AnyObject | Shape::PortRange => {}
        }
    }

    fn ask(&mut self, field: &'static str, item: Option<Value>, typed: String) {
        self.place = EditedPart::Input { field, item, typed };
    }

    fn on_list(&mut self, field: &'static str, event: &Event) -> SettingsStep {
        self.problem = None;
        let items = self.items(field);
        match event {
            Event::Back | Event::Key('b' | 'q', _) => {
                self.selected = self.fields().iter().position(|known| known.name == field).unwrap_or(0);
                self.place = EditedPart::Fields;
            }
            Event::Key('a', index) => {
                self.selected = *index;
                self.ask(field, None, String::new());
            }
            Event::Key('d', index) => {
                if let Some(item) = items.get(*index) {
                    self.selected = index.saturating_sub(usize::from(index + 1 == items.len()));
                    self.change(&removal(shape(field), way(field), item));
                }
            }
            Event::Choose(index) => {
                if let Some(item) = items.get(*index) {
                    self.selected = *index;
                    let text = typed(shape(field), item).unwrap_or_else(|| plain(item));
                    self.ask(field, Some(item.clone()), text);
                }
            }
            Event::Open | Event::Key(..) | Event::Text(_) => {}
        }
        SettingsStep::Stay
    }

    fn on_input(&mut self, field: &'static str, item: Option<&Value>, event: &Event) -> SettingsStep {
        let is_list = is_list(shape(field));
        let text = match event {
            Event::Text(text) if !text.trim().is_empty() => text.trim(),
            Event::Text(_) if !is_list => {
                self.change(&Change::Remove(way(field)));
                self.place = EditedPart::Fields;
                return SettingsStep::Stay;
            }
            Event::Open | Event::Choose(_) | Event::Key(..) | Event::Text(_) | Event::Back => {
                self.problem = None;
                self.place = if is_list { EditedPart::List(field) } else { EditedPart::Fields };
                return SettingsStep::Stay;
            }
        };
        let before = self.draft.clone();
        match self.added(field, item, text, is_list) {
            Ok(changes) => changes.iter().for_each(|change| self.change(change)),
            Err(problem) => {
                self.problem = Some(problem);
                self.ask(field, item.cloned(), text.to_owned());
                return SettingsStep::Stay;
            }
        }
        // A new mistake is shown at once, and the text stays in the input line.
        let known = before.obstacles();
        if let Some(obstacle) = self.draft.obstacles().into_iter().find(|found| !known.contains(found)) {
            self.draft = before;
            self.problem = Some(obstacle.text);
            self.ask(field, item.cloned(), text.to_owned());
            return SettingsStep::Stay;
        }
        self.problem = None;
        self.place = if is_list { EditedPart::List(field) } else { EditedPart::Fields };
        SettingsStep::Stay
    }

    /// Returns the changes that put what was typed in the place of an item, or of the value.
    fn added(
        &self,
        field: &'static str,
        item: Option<&Value>,
        text: &str,
        is_list: bool,
    ) -> Result<Vec<Change>, String> {
        if !is_list {
            return Ok(vec![Change::Set(way(field), typed_value(field, text))]);
        }
        let removed = item.map(|item| removal(shape(field), way(field), item));
        let added = match item.filter(|item| shape(field) != Shape::Objects && is_literal(item)) {
            // A literal entry must not become a glob because the user edited it.
            Some(_) => Change::Append(way(field), json!({ "path": text, "literal": true })),
            None => addition(shape(field), way(field), text)?,
        };
        Ok(removed.into_iter().chain([added]).collect())
    }

    fn change(&mut self, change: &Change) {
        if let Err(error) = self.draft.change(change) {
            self.problem = Some(error.to_string());
        }
    }

    fn items(&self, field: &str) -> Vec<Value> {
        items(&self.draft.value(&way(field)))
    }

    fn fields(&self) -> Vec<&'static Field> {
        let usual = USUAL.iter().filter_map(|name| portcullis_settings_format::field(name));
        let is_more = |field: &&Field| {
            self.advanced
                // These two exclude all other fields of a file.
                && !["layout", "extends"].contains(&field.name)
                && !USUAL.contains(&field.name)
                && !field.name.contains("[]")
                && !matches!(field.status, Status::Refused(_))
                && is_plain(field.shape)
        };
        usual.chain(FIELDS.iter().filter(is_more)).collect()
    }

    pub(super) fn screen(&self) -> Screen {
        let mark = if self.draft.is_changed() { " (not saved)" } else { "" };
        let title = format!("{}{mark}", self.title);
        let problem = self.problem.iter().map(|problem| Line::bad(problem.clone()));
        let mut lines: Vec<Line> = vec![Line::faint(self.file.clone())];
        if self.draft.is_of_differences() {
            lines.push(Line::faint(
                "Lists the differences: its lists are added to those of your other settings.",
            ));
        }
        lines.extend(problem);
        match &self.place {
            EditedPart::Fields => {
                lines.extend(self.explained.iter().map(|field| Line::plain(*field)));
                lines.extend(self.explained.and_then(meaning).map(Line::faint));
                let obstacles = self.draft.obstacles();
                let item = |field: &&'static Field| {
                    let pointer = format!("/{}", field.name.replace('.', "/"));
                    let problem = obstacles
                        .iter()
                        .find(|found| found.pointer.starts_with(&pointer))
                        .map(|found| found.text.clone());
                    let value = shown(field, &self.draft.value(&way(field.name)));
                    Item { problem, ..Item::valued(field.name, value) }
                };
                let more = if self.advanced { "fewer" } else { "more" };
                Screen {
                    title,
                    lines,
                    items: self.fields().iter().map(item).collect(),
                    selected: self.selected,
                    keys: vec![('s', "save"), ('i', "explain"), ('?', more), ('q', "quit")],
                    ..Screen::default()
                }
            }
            EditedPart::List(field) => {
                lines.insert(0, Line::plain(*field));
                lines.extend(meaning(field).map(Line::faint));
                Screen {
                    title,
                    lines,
                    items: self.items(field).iter().map(|item| entry(shape(field), item)).collect(),
                    selected: self.selected,
                    keys: vec![('a', "add"), ('d', "delete"), ('b', "back")],
                    ..Screen::default()
                }
            }
            EditedPart::Input { field, typed, .. } => {
                lines.extend(meaning(field).map(Line::faint));
                Screen {
                    title,
                    lines,
                    input: Some(((*field).to_owned(), typed.clone())),
                    ..Screen::default()
                }
            }
        }
    }
}

fn meaning(field: &str) -> Option<String> {
    portcullis_settings_format::field(field)
        .map(|field| format!("{} ({})", field.meaning, field.shape.describe()))
}

fn shape(field: &str) -> Shape {
    portcullis_settings_format::field(field).map_or(Shape::AnyObject, |field| field.shape)
}

/// Returns true if a value of this shape can be edited as a line of text, a choice, or a list of lines.
fn is_plain(shape: Shape) -> bool {
    match shape {
        Shape::Bool
        | Shape::Text
        | Shape::AbsolutePath
        | Shape::Integer(..)
        | Shape::OneOf(_)
        | Shape::Path
        | Shape::AllowedDomain
        | Shape::DeniedDomain
        | Shape::Address
        | Shape::VariableName
        | Shape::VariableGlob => true,
        Shape::List(_) | Shape::Map(_) | Shape::Objects => is_list(shape),
        Shape::Object | Shape::AnyObject | Shape::PortRange => false,
    }
}

fn way(field: &str) -> Vec<String> {
    field.split('.').map(str::to_owned).collect()
}

/// Returns a number if the field needs one; the check reports text that is no number.
fn typed_value(field: &str, text: &str) -> Value {
    match (shape(field), text.parse::<u64>()) {
        (Shape::Integer(..), Ok(number)) => number.into(),
        _ => text.into(),
    }
}

/// Returns a list item for the screen, with a mark for a literal path.
fn entry(shape: Shape, item: &Value) -> Item {
    if let Some(text) = typed(shape, item) {
        return Item::new(text);
    }
    let value = is_literal(item).then(|| "literal".to_owned());
    Item { value, ..Item::new(plain(item)) }
}

fn is_literal(item: &Value) -> bool {
    item.get("literal") == Some(&Value::Bool(true))
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Object(members) => match members.get("path").and_then(Value::as_str) {
            Some(path) => path.to_owned(),
            None => value.to_string(),
        },
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => value.to_string(),
    }
}

fn shown(field: &Field, value: &Value) -> String {
    match value {
        Value::Null if field.name == "enabled" => "true".to_owned(),
        Value::Null => "not set".to_owned(),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Object(members) if members.is_empty() => "none".to_owned(),
        Value::Object(_) => items(value).iter().map(plain).collect::<Vec<_>>().join("; "),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => plain(value),
    }
}
