//! The licence texts of everything that is linked.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use super::linked::Linked;
use crate::project;

/// Beginnings of the names of files with licences, in lower case.
const NAMES: [&str; 5] = ["license", "licence", "copying", "copyright", "notice"];
/// The standard texts, for crates that name a licence and contain no file with it.
const STANDARD: [(&str, &str); 2] = [("MIT", "LICENSE-MIT"), ("Apache-2.0", "LICENSE-APACHE")];
const HEADING: &str = "The programs contain the following crates. Each text is printed once, below the names of \
those that come under it.\n\
The C library in the static programs is musl, which is under the MIT licence (https://musl.libc.org, COPYRIGHT); \
Rust's standard library is under MIT or Apache-2.0.\n";

/// Returns all texts, each once, with the crates that they belong to.
pub(super) fn texts(crates: &[Linked]) -> Result<String> {
    let mut users: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for linked in crates.iter().filter(|linked| linked.sum.is_some()) {
        let name = format!("{} {} ({})", linked.name, linked.version, linked.licence);
        for text in of(linked)? {
            users.entry(text).or_default().push(name.clone());
        }
    }
    let mut groups: Vec<(Vec<String>, String)> =
        users.into_iter().map(|(text, users)| (users, text)).collect();
    groups.sort();
    let mut all = HEADING.to_owned();
    for (users, text) in groups {
        let rule = "=".repeat(80);
        writeln!(all, "\n{rule}\n{}\n{rule}\n\n{text}", users.join("\n")).context("writing licences")?;
    }
    Ok(all)
}

/// Returns the texts in a crate's folder, or the standard ones of the licences that it names.
fn of(linked: &Linked) -> Result<Vec<String>> {
    let mut texts = files(&linked.folder)?;
    if texts.is_empty() {
        let named = STANDARD.iter().filter(|(name, _)| linked.licence.contains(name));
        for (_, file) in named {
            texts.push(fs::read_to_string(project::root().join(file)).context("reading our own licence")?);
        }
    }
    if texts.is_empty() {
        bail!(
            "{} {} has no licence text, and `{}` is no standard one",
            linked.name,
            linked.version,
            linked.licence
        );
    }
    Ok(texts)
}

fn files(folder: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder).with_context(|| format!("listing `{}`", folder.display()))?;
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| {
        path.is_file() && path.file_name().is_some_and(|name| is_licence(&name.to_string_lossy()))
    });
    paths.sort();
    let read = |path: &std::path::PathBuf| {
        let bytes = fs::read(path).with_context(|| format!("reading `{}`", path.display()))?;
        Ok(String::from_utf8_lossy(&bytes).replace('\r', "").trim().to_owned())
    };
    paths.iter().map(read).collect()
}

fn is_licence(name: &str) -> bool {
    let name = name.to_lowercase();
    NAMES.iter().any(|start| name.starts_with(start)) && !name.ends_with(".rs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_licences_are_known_by_their_names() {
        for (name, expected) in [
            ("LICENSE-MIT", true),
            ("COPYING", true),
            ("license.md", true),
            ("NOTICE", true),
            ("license.rs", false),
            ("README.md", false),
        ] {
            assert_eq!(is_licence(name), expected, "{name}");
        }
    }

    #[test]
    fn a_text_of_several_crates_is_printed_once() {
        let folder = std::env::temp_dir().join(format!("xtask-licences-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("LICENSE"), "Do as you like.\r\n").unwrap();
        let linked = |name: &str| Linked {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            licence: "Own".to_owned(),
            sum: Some(String::new()),
            repository: None,
            folder: folder.clone(),
        };
        let all = texts(&[linked("a"), linked("b")]).unwrap();
        assert_eq!(all.matches("Do as you like.").count(), 1);
        assert!(all.contains("a 1.0.0 (Own)\nb 1.0.0 (Own)\n"), "{all}");
        fs::remove_file(folder.join("LICENSE")).unwrap();
        assert!(texts(&[linked("a")]).unwrap_err().to_string().contains("a 1.0.0 has no licence text"));
        fs::remove_dir_all(folder).unwrap();
    }
}
