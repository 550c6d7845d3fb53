//! Writes entries for credentials to the user's settings, and removes them.

use anyhow::{Context as _, bail};
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_settings::{Draft, GrantFile, Places, Store};
use portcullis_settings_format::Change;
use portcullis_text::escape;
use serde_json::{Map, Value, json};

use crate::args::credentials::Add;
use crate::exit::Exit;
use crate::output::Page;

/// Where the entries are in the settings.
const ENTRIES: [&str; 2] = ["credentials", "brokered"];

/// Adds an entry.
pub(super) fn add(around: &ProcessEnv, add: &Add) -> crate::exit::Outcome {
    let (places, mut draft) = opened(around)?;
    if entries(&draft).iter().any(|entry| is_called(entry, &add.name)) {
        bail!(
            "there is a credential `{0}` already; remove it first: portcullis credentials remove {0}",
            escape(&add.name)
        );
    }
    let entry = entry(add);
    draft.change(&Change::Append(way(), entry.clone())).context("adding the entry")?;
    save(&places, &draft)?;
    let mut page = Page::new(around);
    if add.json {
        page.json(&json!({ "added": entry, "file": draft.file() }));
    } else {
        page.line(&format!(
            "added `{}` to `{}`; sessions that run take it over; undo: portcullis credentials remove {0}",
            escape(&add.name),
            escape(&draft.file().to_string_lossy())
        ));
    }
    page.print()?;
    Ok(Exit::Done)
}

/// Removes an entry.
pub(super) fn remove(around: &ProcessEnv, name: &str, as_json: bool) -> crate::exit::Outcome {
    let (places, mut draft) = opened(around)?;
    let entry = entries(&draft).into_iter().find(|entry| is_called(entry, name)).with_context(|| {
        format!("no credential is called `{}` in `{}`", escape(name), escape(&draft.file().to_string_lossy()))
    })?;
    draft.change(&Change::Drop(way(), entry.clone())).context("removing the entry")?;
    save(&places, &draft)?;
    let mut page = Page::new(around);
    if as_json {
        page.json(&json!({ "removed": entry, "file": draft.file() }));
    } else {
        page.line(&format!("removed `{}`; commands can no longer use it", escape(name)));
    }
    page.print()?;
    Ok(Exit::Done)
}

fn opened(around: &ProcessEnv) -> anyhow::Result<(Places, Draft)> {
    around.ensure_outside()?;
    let places = super::declared::loaded(around)?.places;
    let draft = Draft::open(&places, &GrantFile::Default)?;
    Ok((places, draft))
}

fn save(places: &Places, draft: &Draft) -> anyhow::Result<()> {
    if let Some(obstacle) = draft.obstacles().into_iter().next() {
        bail!("nothing was written: {}", obstacle.text);
    }
    Ok(draft.save(&Store::new(places))?)
}

fn way() -> Vec<String> {
    ENTRIES.iter().map(|key| (*key).to_owned()).collect()
}

fn entries(draft: &Draft) -> Vec<Value> {
    draft.value(&way()).as_array().cloned().unwrap_or_default()
}

fn is_called(entry: &Value, name: &str) -> bool {
    entry.get("name").and_then(Value::as_str) == Some(name)
}

fn entry(add: &Add) -> Value {
    let words = |text: &String| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let sources = [
        ("env", add.env.as_ref().map(|name| json!(name))),
        ("file", add.file.as_ref().map(|file| json!(file))),
        ("command", add.command.as_ref().map(|command| json!(words(command)))),
        ("pass", add.pass.as_ref().map(|entry| json!(entry))),
        ("secretTool", add.secret_tool.as_ref().map(|attributes| json!(words(attributes)))),
    ];
    let source: Map<String, Value> =
        sources.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect();
    let mut entry = json!({
        "name": add.name, "source": source, "host": add.host, "form": add.form.word(), "for": add.purpose,
    });
    if let Some(members) = entry.as_object_mut() {
        let optional = [
            ("user", add.user.as_ref().map(|user| json!(user))),
            ("header", add.header.as_ref().map(|header| json!(header))),
            ("variables", (!add.variables.is_empty()).then(|| json!(add.variables))),
            ("git", add.git.then(|| json!(true))),
        ];
        members.extend(optional.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
    }
    entry
}
