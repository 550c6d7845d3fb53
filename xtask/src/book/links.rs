//! Links, anchors and the table of contents of the pages: pure but for reading them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::project;

/// The front page, at the top of the clone.
const FIRST: &str = "README.md";
/// The table of contents.
const CONTENTS: &str = "SUMMARY.md";

/// Returns the names of the book's pages, as they are below `docs/`.
pub(crate) fn pages() -> Result<Vec<String>> {
    let docs = project::root().join("docs");
    let mut names = vec![FIRST.to_owned()];
    for folder in ["", "decisions"] {
        for entry in fs::read_dir(docs.join(folder)).context("listing `docs`")? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name.ends_with(".md") {
                names.push(Path::new(folder).join(name).display().to_string());
            }
        }
    }
    names.sort();
    Ok(names)
}

/// Returns the file of a page.
pub(crate) fn file_of(name: &str) -> PathBuf {
    let folder = if name == FIRST { "" } else { "docs" };
    project::root().join(folder).join(name)
}

/// Returns a line for each link that leads nowhere, and for each page that is in no chapter.
pub(crate) fn problems() -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for name in pages()? {
        let text = fs::read_to_string(file_of(&name)).with_context(|| format!("reading `{name}`"))?;
        texts.push((name, text));
    }
    let exists = |path: &Path| project::root().join(path).exists();
    Ok(problems_in(&texts, &exists))
}

fn problems_in(texts: &[(String, String)], exists: &dyn Fn(&Path) -> bool) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, text) in texts {
        for link in links(text) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let page = target(name, path);
            let found = texts.iter().find(|(other, _)| Path::new(other) == page);
            if found.is_none() && !exists(&in_clone(name, path)) {
                problems.push(format!("{name}: `{link}` leads nowhere"));
            }
            if let Some((other, text)) = found.filter(|_| !anchor.is_empty())
                && !anchors(text).contains(anchor)
            {
                problems.push(format!("{name}: {other} has no heading `#{anchor}`"));
            }
        }
    }
    let contents = texts.iter().find(|(name, _)| name == CONTENTS).map_or("", |(_, text)| text);
    let listed: BTreeSet<&str> = links(contents).into_iter().collect();
    let unlisted = texts.iter().filter(|(name, _)| name != CONTENTS && !listed.contains(name.as_str()));
    problems.extend(unlisted.map(|(name, _)| format!("{CONTENTS} does not list {name}")));
    problems
}

/// Returns a page's text with links that work in the book, where the front page is beside the others. Links to files
/// that are in no book become plain text; mdBook calls the first page `index.html`.
pub(crate) fn for_the_book(name: &str, text: &str) -> String {
    let text = if name == FIRST {
        text.replace("](docs/", "](").replace("src=\"docs/", "src=\"")
    } else {
        text.to_owned()
    };
    let text = text.replace("](../README.md", "](index.html");
    let mut made = String::new();
    let mut rest = text.as_str();
    while let Some((before, link)) = rest.split_once("](") {
        let Some((path, after)) = link.split_once(')') else { break };
        let is_outside = path.starts_with("../") || path.ends_with('/');
        match before.rsplit_once('[').filter(|_| is_outside) {
            Some((before, label)) => made.extend([before, label]),
            None => made.extend([before, "](", path, ")"]),
        }
        rest = after;
    }
    made + rest
}

/// Returns where the links of a page lead that are not addresses of the web; code is left out.
fn links(text: &str) -> Vec<&str> {
    let mut is_code = false;
    let mut found = Vec::new();
    for line in text.lines() {
        is_code ^= line.starts_with("```");
        let prose = line.split('`').step_by(2).filter(|_| !is_code);
        // A label may be code: what follows it begins with the end of the label.
        for part in prose {
            let targets = part.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
            found.extend(targets.map(|(target, _)| target).filter(|target| !target.contains("://")));
        }
    }
    found
}

/// Returns the page that a link of `name` means, as a name below `docs/`.
fn target(name: &str, path: &str) -> PathBuf {
    if path.is_empty() {
        return PathBuf::from(name);
    }
    if path == FIRST && name != CONTENTS {
        // There is none beside the other pages; the table of contents names it as the book has it.
        return Path::new("docs").join(path);
    }
    let path = if name == FIRST { path.strip_prefix("docs/").unwrap_or(path) } else { path };
    let from = Path::new(name).parent().unwrap_or(Path::new(""));
    normal(&from.join(path))
}

/// Returns the place in the clone that a link means.
fn in_clone(name: &str, path: &str) -> PathBuf {
    let folder = if name == FIRST { "" } else { "docs" };
    let from = Path::new(folder).join(Path::new(name).parent().unwrap_or(Path::new("")));
    normal(&from.join(path))
}

fn normal(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut made, part| {
        if part == Component::ParentDir {
            made.pop();
        } else {
            made.push(part);
        }
        made
    })
}

/// Returns the anchors of a page's headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut is_code = false;
    let mut all = BTreeSet::new();
    for line in text.lines() {
        is_code ^= line.starts_with("```");
        let Some((marks, title)) = line.split_once(' ') else { continue };
        if is_code || marks.is_empty() || !marks.bytes().all(|byte| byte == b'#') {
            continue;
        }
        let kept = title.trim().to_lowercase();
        let kept = kept.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
        let anchor = kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect::<String>();
        let again = (1..).map(|number| format!("{anchor}-{number}"));
        let free = std::iter::once(anchor.clone()).chain(again).find(|anchor| !all.contains(anchor));
        all.extend(free);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pages: &[(&str, &str)], wanted: &[&str]) {
        let texts: Vec<_> =
            pages.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        let exists = |path: &Path| path == Path::new("wit");
        assert_eq!(problems_in(&texts, &exists), wanted);
    }

    #[test]
    fn links_lead_to_pages_headings_and_files() {
        let contents = ("SUMMARY.md", "[a](a.md) [d](decisions/d.md)");
        let page =
            ("a.md", "# Read & write\n[d](decisions/d.md) [w](../wit) [s](#read--write)\n```\n[x](no)\n```");
        let decision = ("decisions/d.md", "[`a`](../a.md#read--write)");
        check(&[contents, page, decision], &[]);
        check(&[contents, page, ("decisions/d.md", "[a](a.md)")], &["decisions/d.md: `a.md` leads nowhere"]);
        check(
            &[contents, page, ("decisions/d.md", "[a](../a.md#read)")],
            &["decisions/d.md: a.md has no heading `#read`"],
        );
        let readme = ("README.md", "[a](docs/a.md)");
        let contents_too = ("SUMMARY.md", "[r](README.md) [a](a.md)");
        check(&[contents_too, readme, ("a.md", "[r](../README.md)")], &[]);
        check(&[contents_too, readme, ("a.md", "[r](README.md)")], &["a.md: `README.md` leads nowhere"]);
        check(&[contents, page, decision, ("b.md", "")], &["SUMMARY.md does not list b.md"]);
    }

    #[test]
    fn two_headings_with_one_title_have_two_anchors() {
        let all = anchors("# A `b` c\n## A b c\n#no heading\n");
        assert_eq!(all.into_iter().collect::<Vec<_>>(), ["a-b-c", "a-b-c-1"]);
    }

    #[test]
    fn the_book_has_links_to_its_pages_only() {
        let readme = for_the_book("README.md", "[a](docs/a.md#b) [d](docs/decisions/) [x](https://x)");
        assert_eq!(readme, "[a](a.md#b) d [x](https://x)");
        assert_eq!(for_the_book("a.md", "[top](../README.md#x)"), "[top](index.html#x)");
        assert_eq!(for_the_book("a.md", "see [`wit`](../wit) and [b](b.md)"), "see `wit` and [b](b.md)");
    }
}
