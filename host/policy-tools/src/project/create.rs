//! Creates the folder of a new policy with a working example.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};
use portcullis_packs::{Language, Manifest};

use super::templates;

/// A policy that was created.
#[derive(Debug)]
pub struct Created {
    /// Its id.
    pub id: String,
    /// The name of its language, as in the manifest.
    pub language: &'static str,
}

/// Creates a policy in an empty or missing folder; without an id it is named after the folder.
///
/// # Errors
/// If the name is no name of a policy, or the folder is in use or cannot be written.
pub fn create(to: &Path, id: Option<&str>, language: Language) -> anyhow::Result<Created> {
    let name = to.file_name().and_then(|name| name.to_str()).context("the folder has no name")?;
    let id = id.map_or_else(|| format!("local:{name}"), str::to_owned);
    let files = templates::files(language);
    let language = match language {
        Language::Rust => "rust",
        Language::Js => "js",
        Language::Python => "python",
        Language::C => "c",
        Language::Go => "go",
        Language::None => "none",
    };
    let fill =
        |text: &str| text.replace("__ID__", &id).replace("__NAME__", name).replace("__LANGUAGE__", language);
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
    let has_something = to.is_dir() && fs::read_dir(to)?.next().is_some();
    if to.exists() && (!to.is_dir() || has_something) {
        bail!("`{}` is already there", to.display());
    }
    for (path, text) in files {
        let file = to.join(path);
        let folder = file.parent().context("a file has a folder")?;
        fs::create_dir_all(folder).with_context(|| format!("making `{}`", folder.display()))?;
        fs::write(&file, fill(text)).with_context(|| format!("writing `{}`", file.display()))?;
    }
    Ok(Created { id, language })
}
