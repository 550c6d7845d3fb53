//! `policy new`: creates a folder with a working example.

use std::fs;

use anyhow::{Context as _, bail};
use portcullis_packs::Manifest;
use serde_json::json;

use super::templates;
use crate::args::policy::{Language, New};
use crate::exit::{Exit, say};
use crate::output::Page;
use crate::process_env::ProcessEnv;

pub(super) fn run(new: &New) -> crate::Outcome {
    let name = new.folder.file_name().and_then(|name| name.to_str()).context("the folder has no name")?;
    let id = new.id.clone().unwrap_or_else(|| format!("local:{name}"));
    let language = match new.lang {
        Language::Rust => "rust",
        Language::Js => "js",
        Language::Python => "python",
        Language::C => "c",
    };
    let fill =
        |text: &str| text.replace("__ID__", &id).replace("__NAME__", name).replace("__LANGUAGE__", language);
    let files = templates::files(new.lang);
    // The name becomes that of a crate, a package and a file. Check it with the manifest's parser, so that it does not
    // fail later.
    let manifest = files.iter().find(|(path, _)| *path == "policy.toml").map(|(_, text)| fill(text));
    Manifest::parse(&manifest.unwrap_or_default())
        .context("choose another name, or give one with `--id namespace:name`")?;
    let word =
        |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-';
    if !name.starts_with(|first: char| first.is_ascii_lowercase()) || !name.chars().all(word) {
        bail!("`{name}` cannot be the name of a policy; use lower-case letters, digits and `-`");
    }
    let has_something = new.folder.is_dir() && fs::read_dir(&new.folder)?.next().is_some();
    if new.folder.exists() && (!new.folder.is_dir() || has_something) {
        bail!("`{}` is already there", new.folder.display());
    }
    for (path, text) in files {
        let file = new.folder.join(path);
        let folder = file.parent().context("a file has a folder")?;
        fs::create_dir_all(folder).with_context(|| format!("making `{}`", folder.display()))?;
        fs::write(&file, fill(text)).with_context(|| format!("writing `{}`", file.display()))?;
    }
    if new.json {
        let mut page = Page::new(&ProcessEnv::read()?);
        page.json(&json!({ "folder": new.folder, "id": id, "language": language }));
        page.print()?;
        return Ok(Exit::Done);
    }
    say(&format!("made the policy `{id}` in `{}`; next:", new.folder.display()));
    say(&format!("  portcullis policy build {0}\n  portcullis policy test {0}", new.folder.display()));
    Ok(Exit::Done)
}
