//! The finished site: its pages, and whether their links lead to files.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use crate::run::say;

/// Checks that each link of a page to another page leads to a file.
pub(super) fn check(site: &Path) -> Result<()> {
    let mut broken = Vec::new();
    for page in pages(site)? {
        let text = fs::read_to_string(&page)?;
        let folder = page.parent().unwrap_or(site);
        let links = text.split("href=\"").skip(1).filter_map(|rest| rest.split(['"', '#']).next());
        let missing = links.filter(|link| link.ends_with(".html") && !link.contains("://"));
        let name = page.strip_prefix(site).unwrap_or(&page).display();
        broken.extend(
            missing
                .filter(|link| !folder.join(link).exists())
                .map(|link| format!("{name}: no file for `{link}`")),
        );
    }
    broken.iter().for_each(say);
    ensure!(broken.is_empty(), "{} links of the site lead nowhere", broken.len());
    Ok(())
}

/// Returns the pages that people read.
pub(super) fn pages(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            all.extend(pages(&path)?);
        } else if path.extension().is_some_and(|kind| kind == "html") && !is_frame(&path) {
            all.push(path);
        }
    }
    all.sort();
    Ok(all)
}

/// Returns true for pages of mdBook's own.
fn is_frame(path: &Path) -> bool {
    ["toc.html", "print.html", "404.html"].iter().any(|name| path.ends_with(name))
}
