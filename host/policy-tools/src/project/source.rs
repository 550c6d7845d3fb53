//! The source of a policy: its files, and whether a component is up to date with them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context as _, bail};
use portcullis_bootstrap::manifest::MANIFEST;
use portcullis_packs::{Language, Manifest, Pack, Tests, digest};

use super::folder::Project;

/// Folders that are not part of the source.
const NOT_SOURCE: [&str; 5] = ["build", "target", "node_modules", ".git", "__pycache__"];
/// Text files that are embedded but not compiled.
const TEXTS: [&str; 2] = ["README.md", "LICENSE"];
/// The source file if the component is built elsewhere.
pub(super) const MADE_ELSEWHERE: &str = "component.wasm";

/// Returns the SHA-256 digest of names and contents of the source.
pub(super) fn source_digest(folder: &Path) -> anyhow::Result<String> {
    let mut lines = String::new();
    for (name, file) in files(folder)? {
        let bytes = fs::read(&file).with_context(|| reading(folder))?;
        lines += &format!("{}  {name}\n", digest(&bytes));
    }
    Ok(digest(lines.as_bytes()))
}

/// Refuses a component that is out of date; otherwise the user would test an earlier build without noticing.
pub(super) fn check_fresh(project: &Project, built: &Path, pack: Option<&Pack>) -> anyhow::Result<()> {
    if let Some(reason) = staleness(project, built, pack)? {
        bail!(
            "`{}` is of an earlier build: {reason}; run `portcullis policy build {}`, or name the component itself to \
             take it as it is",
            built.display(),
            project.folder.display()
        );
    }
    Ok(())
}

fn staleness(project: &Project, built: &Path, pack: Option<&Pack>) -> anyhow::Result<Option<String>> {
    if let Some(pack) = pack {
        if compiled(&pack.manifest) != compiled(&project.manifest) {
            return Ok(Some(format!("`{MANIFEST}` is another")));
        }
        if pack.schema != project.schema()? {
            return Ok(Some(format!("`{}` is another", project.manifest.config.schema)));
        }
    }
    let source = project.source()?;
    let built_at = modified(built)?;
    let Some(newer) = newer(project, &source, built_at)? else { return Ok(None) };
    // A newer file can have the same content: it was copied again, or only the cases have changed.
    let is_same = match pack {
        Some(pack) if project.manifest.build.language != Language::None => {
            pack.provenance.source == source_digest(&source)?
        }
        _ => false,
    };
    Ok((!is_same).then(|| format!("`{newer}` is newer")))
}

/// Returns the parts of a manifest that affect the component.
fn compiled(manifest: &Manifest) -> Manifest {
    Manifest { tests: Tests::default(), ..manifest.clone() }
}

/// Returns a source file that was written after `built_at`, if any. Changes of the cases do not count.
fn newer(project: &Project, source: &Path, built_at: SystemTime) -> anyhow::Result<Option<String>> {
    if project.manifest.build.language == Language::None {
        let made = source.join(MADE_ELSEWHERE);
        return Ok((modified(&made)? > built_at).then(|| MADE_ELSEWHERE.to_owned()));
    }
    let cases = project.cases()?;
    for (name, file) in files(source)? {
        let own = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if TEXTS.contains(&name.as_str()) || cases.contains_key(own) || own == MANIFEST {
            continue;
        }
        if modified(&file)? > built_at {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

fn modified(file: &Path) -> anyhow::Result<SystemTime> {
    let metadata = fs::metadata(file).and_then(|metadata| metadata.modified());
    metadata.with_context(|| format!("asking when `{}` was written", file.display()))
}

/// Returns the source files, by relative name.
pub(super) fn files(folder: &Path) -> anyhow::Result<BTreeMap<String, PathBuf>> {
    let mut files = BTreeMap::new();
    collect(folder, folder, &mut files)?;
    Ok(files)
}

fn collect(top: &Path, folder: &Path, files: &mut BTreeMap<String, PathBuf>) -> anyhow::Result<()> {
    let context = || reading(folder);
    for entry in fs::read_dir(folder).with_context(context)? {
        let entry = entry.with_context(context)?;
        let path = entry.path();
        let name = entry.file_name();
        let kind = entry.file_type().with_context(context)?;
        if kind.is_dir() && !NOT_SOURCE.iter().any(|skipped| name == *skipped) {
            collect(top, &path, files)?;
        } else if kind.is_file() && path.extension().is_none_or(|ending| ending != "wasm") {
            let relative = path.strip_prefix(top).unwrap_or(&path).display().to_string();
            files.insert(relative, path);
        }
    }
    Ok(())
}

fn reading(folder: &Path) -> String {
    format!("reading the source in `{}`", folder.display())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::Duration;

    use portcullis_packs::Provenance;

    use super::*;

    const TEXT: &str = "[policy]\nid = \"local:x\"\nversion = \"0.1.0\"\ntitle = \"x\"\n\n[contract]\n\
        package = \"portcullis:policy\"\nversion = \"0.1\"\n\n[build]\nlanguage = \"js\"\n\n\
        [tests]\nfiles = [\"tests/*.toml\"]\n";

    struct Built {
        folder: tempfile::TempDir,
        pack: Pack,
    }

    impl Built {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let at = |name: &str| folder.path().join(name);
            for (name, text) in [
                ("policy.toml", TEXT),
                ("policy.js", "1"),
                ("tests/cases.toml", "a"),
                ("README.md", "r"),
                ("build/x.wasm", ""),
            ] {
                fs::create_dir_all(at(name).parent().unwrap()).unwrap();
                fs::write(at(name), text).unwrap();
            }
            let project = Project::open(folder.path()).unwrap();
            let provenance = Provenance {
                source: source_digest(&project.source().unwrap()).unwrap(),
                ..Provenance::default()
            };
            let pack = Pack { manifest: project.manifest, provenance, ..Pack::default() };
            Self { folder, pack }
        }

        /// Writes a file with a time after the build of the component.
        fn edit(&self, name: &str, text: &str) {
            let file = self.folder.path().join(name);
            fs::write(&file, text).unwrap();
            let later = modified(&self.component()).unwrap() + Duration::from_secs(5);
            File::options().write(true).open(&file).unwrap().set_modified(later).unwrap();
        }

        fn component(&self) -> PathBuf {
            self.folder.path().join("build/x.wasm")
        }

        fn stale(&self) -> Option<String> {
            let project = Project::open(self.folder.path()).unwrap();
            staleness(&project, &self.component(), Some(&self.pack)).unwrap()
        }
    }

    #[test]
    fn a_component_is_fresh_until_its_source_changes() {
        let built = Built::new();
        assert_eq!(built.stale(), None);
        built.edit("policy.js", "1");
        assert_eq!(built.stale(), None, "written again, and the same");
        built.edit("policy.js", "2");
        assert_eq!(built.stale().as_deref(), Some("`policy.js` is newer"));
        built.edit("policy.js", "1");
        assert_eq!(built.stale(), None, "as it was");
        built.edit("new.js", "1");
        assert_eq!(built.stale().as_deref(), Some("`new.js` is newer"));
    }

    #[test]
    fn cases_and_texts_need_no_build() {
        let built = Built::new();
        built.edit("tests/cases.toml", "b");
        built.edit("README.md", "s");
        built.edit("policy.toml", &TEXT.replace("tests/*.toml", "tests/cases.toml"));
        assert_eq!(built.stale(), None);
    }

    #[test]
    fn the_manifest_is_a_part_of_the_component() {
        let built = Built::new();
        built.edit("policy.toml", &TEXT.replace("0.1.0", "0.2.0"));
        assert_eq!(built.stale().as_deref(), Some("`policy.toml` is another"));
    }

    #[test]
    fn what_was_made_elsewhere_is_as_old_as_it_is() {
        let mut built = Built::new();
        let text = TEXT.replace("\"js\"", "\"none\"");
        built.edit("policy.toml", &text);
        built.pack.manifest = Manifest::parse(&text).unwrap();
        fs::write(built.folder.path().join(MADE_ELSEWHERE), "x").unwrap();
        built.edit(MADE_ELSEWHERE, "x");
        assert_eq!(built.stale().as_deref(), Some("`component.wasm` is newer"));
    }
}
