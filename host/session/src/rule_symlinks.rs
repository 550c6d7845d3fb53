//! Extends policy rules to the targets of symbolic links.

use std::path::{Path, PathBuf};

use portcullis_decision::pattern::{FilePattern, GlobText};
use portcullis_decision::profile::FileRule;
use portcullis_decision::{Effect, Profile};
use portcullis_settings::{RealDisk, names_on_the_way};

/// The characters that end the fixed part of a glob.
const GLOB_CHARACTERS: [char; 5] = ['*', '?', '[', '{', '\\'];

/// Returns the profile with each restricting rule extended to the targets of links.
///
/// The rule is repeated for the target of its path and for each name on the way, as for entries of the settings:
/// requests are decided by canonical path. A rule that allows is not extended, because the agent may have made the
/// link.
pub(crate) fn followed(profile: Profile) -> Profile {
    let files = profile.files.into_iter().flat_map(|rule| {
        let names = if rule.effect == Effect::Allow { Vec::new() } else { others(&rule.pattern) };
        let more: Vec<FileRule> =
            names.into_iter().map(|pattern| FileRule { pattern, ..rule.clone() }).collect();
        std::iter::once(rule).chain(more)
    });
    Profile { files: files.collect(), ..profile }
}

/// Returns the pattern under the other names of its fixed part.
fn others(pattern: &FilePattern) -> Vec<FilePattern> {
    let under = |path: &Path| {
        let names = names_on_the_way(path, &RealDisk).unwrap_or_default();
        let mut names: Vec<PathBuf> = names.into_iter().filter(|name| name != path).collect();
        names.sort();
        names.dedup();
        names
    };
    match pattern {
        FilePattern::Exact(path) => under(path).into_iter().map(FilePattern::Exact).collect(),
        FilePattern::Tree(path) => under(path).into_iter().map(FilePattern::Tree).collect(),
        FilePattern::Name { below, glob } => {
            let named = |below| FilePattern::Name { below, glob: glob.clone() };
            under(below).into_iter().map(named).collect()
        }
        FilePattern::Glob(glob) => {
            let Some((fixed, rest)) = split(glob.as_str()) else { return Vec::new() };
            let glob = |top: PathBuf| {
                let text = format!("{}/{rest}", escaped(top.to_str()?.trim_end_matches('/')));
                GlobText::parse(&text).ok().map(FilePattern::Glob)
            };
            under(Path::new(fixed)).into_iter().filter_map(glob).collect()
        }
    }
}

/// Splits a rooted glob into its directory and the rest.
fn split(glob: &str) -> Option<(&str, &str)> {
    let fixed = glob.find(GLOB_CHARACTERS).map_or(glob, |end| glob.get(..end).unwrap_or_default());
    let (top, _) = fixed.rsplit_once('/')?;
    let rest = glob.get(top.len() + 1..)?;
    (glob.starts_with('/') && !top.is_empty()).then_some((top, rest))
}

fn escaped(text: &str) -> String {
    let special = |character| "*?[]{}!\\,".contains(character);
    text.chars()
        .flat_map(|character| special(character).then_some('\\').into_iter().chain([character]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_are_split_before_their_first_special_name() {
        assert_eq!(split("/home/u/.ssh/id_*"), Some(("/home/u/.ssh", "id_*")));
        assert_eq!(split("/a/b"), Some(("/a", "b")));
        assert_eq!(split("/*.pem"), None);
        assert_eq!(split("**/x"), None);
        assert_eq!(escaped("/a [b]"), "/a \\[b\\]");
    }

    #[test]
    fn what_restricts_holds_behind_links() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        std::fs::create_dir(home.join("cloud")).unwrap();
        std::os::unix::fs::symlink("cloud", home.join(".aws")).unwrap();
        let tree = |path: &str| FilePattern::Tree(home.join(path));
        assert_eq!(others(&tree(".aws/credentials")), [tree("cloud/credentials")]);
        assert_eq!(others(&tree("cloud")), []);
        let glob =
            |path: &str| FilePattern::Glob(GlobText::parse(&format!("{}/{path}", home.display())).unwrap());
        assert_eq!(others(&glob(".aws/c*")), [glob("cloud/c*")]);
    }
}
