//! `book`: the pages of `docs/` and the README as a site of static files.

mod browser;
pub(crate) mod links;
mod site;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use clap::Args;

use crate::cache::Cache;
use crate::run::{find_program, quiet, say};
use crate::{project, run};

pub(crate) const EXAMPLES: &str = "\
Examples:
  cargo xtask book            leaves target/book/site/index.html
  cargo xtask book --check    finds broken links, pages that are in no chapter, and pages that are too wide

mdBook is installed into the development cache, if PATH has none. The check of widths needs a headless
Chromium: `headless-shell` or `chromium` on PATH, or one that is fetched from Debian into the cache. Where there
is none, that is said; where CI is set, it is a failure. `cargo xtask test` checks the links, and with --full all.";

/// The version that is installed.
const MDBOOK: &str = "0.5.4";
const SETTINGS: &str = r#"[book]
title = "Portcullis"
language = "en"
src = "src"

[build]
build-dir = "site"
create-missing = false

[output.html]
no-section-label = true
additional-css = ["narrow.css"]
"#;
/// Long words in tables and in running text are broken where the page is narrow.
const STYLE: &str = "main td code, main p code, main li code { overflow-wrap: anywhere; white-space: normal; }\n\
    main { overflow-wrap: anywhere; }\n\
    main th { overflow-wrap: normal; }\n";

/// Options of `book`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Checks links and widths
    #[arg(long)]
    check: bool,
}

pub(crate) fn task(options: &Options) -> Result<()> {
    if options.check {
        let problems = links::problems()?;
        problems.iter().for_each(say);
        if !problems.is_empty() {
            bail!("{} links or pages are wrong", problems.len());
        }
    }
    let cache = Cache::open()?;
    let folder = project::target_directory()?.join("book");
    write_sources(&folder)?;
    quiet(Command::new(mdbook(&cache)?).arg("build").arg(&folder)).context("building the book")?;
    let site = folder.join("site");
    if options.check {
        site::check(&site)?;
        browser::check(&cache, &site, &folder.join("pictures"))?;
    }
    run::answer(site.join("index.html").display());
    Ok(())
}

/// Builds the book and checks it, for the tests.
pub(crate) fn check() -> Result<()> {
    task(&Options { check: true })
}

/// Returns the program: that of PATH, or the one in the cache.
fn mdbook(cache: &Cache) -> Result<PathBuf> {
    if let Some(found) = find_program("mdbook") {
        return Ok(found);
    }
    let root = cache.directory(&format!("mdbook-{MDBOOK}"), |root| {
        let install = ["install", "mdbook", "--locked", "--no-default-features", "--features", "search"];
        let mut cargo = project::cargo();
        cargo.args(install).args(["--version", MDBOOK, "--root"]).arg(root).current_dir(root);
        quiet(cargo.env_remove("CARGO_TARGET_DIR")).map(drop)
    })?;
    Ok(root.join("bin/mdbook"))
}

/// Writes the pages with links that work in the book.
fn write_sources(folder: &Path) -> Result<()> {
    let source = folder.join("src");
    if source.exists() {
        fs::remove_dir_all(&source).context("removing the pages of an earlier book")?;
    }
    let docs = project::root().join("docs");
    for name in links::pages()? {
        let text = fs::read_to_string(links::file_of(&name)).with_context(|| format!("reading `{name}`"))?;
        let to = source.join(&name);
        fs::create_dir_all(to.parent().unwrap_or(&source))?;
        fs::write(&to, links::for_the_book(&name, &text)).with_context(|| format!("writing `{name}`"))?;
    }
    for entry in fs::read_dir(&docs).context("listing `docs`")? {
        let path = entry?.path();
        let is_asset =
            path.extension().is_some_and(|kind| ["svg", "json"].iter().any(|known| kind == *known));
        if is_asset {
            fs::copy(&path, source.join(path.file_name().unwrap_or_default()))?;
        }
    }
    fs::write(folder.join("narrow.css"), STYLE)?;
    fs::write(folder.join("book.toml"), SETTINGS).context("writing book.toml")
}
