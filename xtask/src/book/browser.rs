//! Looks at the pages of the site with a headless Chromium: none may be wider than a small telephone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use super::site::pages;
use crate::cache::Cache;
use crate::run::{find_program, quiet, say};
use crate::setup;

/// The width of a small telephone.
const NARROW: u32 = 400;
/// A script that reports the width of the page; it is added to a copy of each page.
const MEASURE: &str = "<script>addEventListener('load', () => { const page = document.documentElement; \
    const main = document.querySelector('main'); \
    const wide = [...document.querySelectorAll('main *')].filter((each) => \
      each.getBoundingClientRect().right > innerWidth + 1 && !each.closest('pre, .table-wrapper, table')); \
    page.dataset.measured = `${innerWidth} ${page.scrollWidth} ${main ? 1 : 0} ${wide.map((each) => \
      each.tagName).join(',')}`; });</script></body>";
/// Pages that are photographed, in both widths.
const SHOWN: [&str; 3] = ["index", "cookbook", "tutorial"];

/// Checks all pages, and leaves pictures of some.
pub(super) fn check(cache: &Cache, site: &Path, pictures: &Path) -> Result<()> {
    let browser = match find(cache) {
        Ok(browser) => browser,
        Err(error) if std::env::var_os("CI").is_none() => {
            say(format_args!("no headless Chromium, so the widths of pages are not checked: {error:#}"));
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    fs::create_dir_all(pictures)?;
    let mut wide = Vec::new();
    let mut count = 0;
    for page in pages(site)? {
        let text = fs::read_to_string(&page)?;
        let copy = page.with_extension("measured.html");
        fs::write(&copy, text.replace("</body>", MEASURE))?;
        let shown = look(&browser, &copy, NARROW, &["--virtual-time-budget=2000", "--dump-dom"]);
        fs::remove_file(&copy)?;
        let name = page.strip_prefix(site).unwrap_or(&page).display().to_string();
        let (inner, whole, which) = measured(&shown?).with_context(|| format!("measuring `{name}`"))?;
        count += 1;
        if whole > inner {
            wide.push(format!("{name} is {whole} wide in a window of {inner}: {which}"));
        }
    }
    for name in SHOWN {
        for width in [NARROW, 1100] {
            let file = pictures.join(format!("{name}-{width}.png"));
            let shot = format!("--screenshot={}", file.display());
            look(&browser, &site.join(name).with_extension("html"), width, &[&shot])?;
        }
    }
    say(format_args!("{count} pages looked at; pictures are in `{}`", pictures.display()));
    wide.iter().for_each(say);
    ensure!(wide.is_empty(), "{} pages are too wide", wide.len());
    Ok(())
}

/// Returns the browser of PATH, or the one in the cache, fetching it if it is missing.
fn find(cache: &Cache) -> Result<PathBuf> {
    let names = ["headless-shell", "chromium-headless-shell", "chromium"];
    if let Some(found) = names.into_iter().find_map(find_program) {
        return Ok(found);
    }
    let _lock = cache.lock()?;
    setup::browser(cache).context("fetching a headless Chromium")
}

fn look(browser: &Path, page: &Path, width: u32, more: &[&str]) -> Result<String> {
    let mut command = Command::new(browser);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]);
    command.arg(format!("--window-size={width},1600")).args(more);
    quiet(command.arg(format!("file://{}", page.display())))
}

/// Returns the widths of the window and of the page, and the elements that overflow it.
fn measured(shown: &str) -> Result<(u32, u32, String)> {
    let (_, rest) = shown.split_once("data-measured=\"").context("the page was not measured")?;
    let (text, _) = rest.split_once('"').context("an attribute ends")?;
    let words: Vec<&str> = text.split(' ').collect();
    let [inner, whole, main, which] = words.as_slice() else { bail!("`{text}` is no measurement") };
    ensure!(*main == "1", "the page has no text");
    Ok((inner.parse()?, whole.parse()?, (*which).to_owned()))
}
