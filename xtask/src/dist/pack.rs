//! Archives whose bytes depend only on their files.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::{env, thread};

use anyhow::{Context as _, Result, bail};

use crate::project;
use crate::run::quiet;

/// A file of a package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct File {
    /// The path in the package, without a slash at the beginning.
    pub(super) path: String,
    pub(super) bytes: Vec<u8>,
    pub(super) is_program: bool,
}

impl File {
    pub(super) fn text(path: impl Into<String>, text: impl Into<Vec<u8>>) -> Self {
        Self { path: path.into(), bytes: text.into(), is_program: false }
    }

    pub(super) fn program(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { path: path.into(), bytes: bytes.into(), is_program: true }
    }

    /// Returns the file in a directory.
    pub(super) fn below(mut self, directory: &str) -> Self {
        self.path = format!("{directory}/{}", self.path);
        self
    }
}

/// The directories of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Directories {
    /// Each has an entry, as Debian wants it.
    Listed,
    /// They are made when a file is unpacked.
    Implied,
}

/// Returns a compressed archive: sorted, owned by root, with the time of the last commit.
pub(super) fn tar_gz(files: &[File], directories: Directories, prefix: &str) -> Result<Vec<u8>> {
    gzip(&tar(files, directories, prefix, time()?)?)
}

fn tar(files: &[File], directories: Directories, prefix: &str, time: u64) -> Result<Vec<u8>> {
    let mut sorted: Vec<&File> = files.iter().collect();
    sorted.sort();
    let mut archive = tar::Builder::new(Vec::new());
    let mut known: Vec<String> = Vec::new();
    for file in sorted {
        let path = format!("{prefix}{}", file.path);
        for (end, _) in path.match_indices('/').filter(|_| directories == Directories::Listed) {
            let directory = path.get(..=end).unwrap_or_default().to_owned();
            if !known.contains(&directory) {
                append(&mut archive, &directory, &[], 0o755, tar::EntryType::Directory, time)?;
                known.push(directory);
            }
        }
        let mode = if file.is_program { 0o755 } else { 0o644 };
        append(&mut archive, &path, &file.bytes, mode, tar::EntryType::Regular, time)?;
    }
    archive.into_inner().context("ending an archive")
}

fn append(
    archive: &mut tar::Builder<Vec<u8>>,
    path: &str,
    bytes: &[u8],
    mode: u32,
    kind: tar::EntryType,
    time: u64,
) -> Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(bytes.len() as u64);
    header.set_mode(mode);
    header.set_mtime(time);
    header.set_uid(0);
    header.set_gid(0);
    archive.append_data(&mut header, path, bytes).with_context(|| format!("packing `{path}`"))
}

/// Returns the time in all archives: `SOURCE_DATE_EPOCH`, or that of the last commit.
pub(super) fn time() -> Result<u64> {
    static TIME: OnceLock<u64> = OnceLock::new();
    if let Some(&time) = TIME.get() {
        return Ok(time);
    }
    let text = match env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text,
        Err(_) => quiet(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(project::root()))
            .context("reading the time of the last commit; without git, set SOURCE_DATE_EPOCH")?,
    };
    let time = text.trim().parse().context("reading the time of the release")?;
    Ok(*TIME.get_or_init(|| time))
}

/// Compresses with `gzip`, which every system has, without a name and a time.
pub(super) fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut gzip = Command::new("gzip")
        .args(["--no-name", "-9", "--stdout"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("starting `gzip`")?;
    let mut input = gzip.stdin.take().context("`gzip` has no input")?;
    let mut output = gzip.stdout.take().context("`gzip` has no output")?;
    let mut packed = Vec::new();
    thread::scope(|scope| -> Result<()> {
        let writer = scope.spawn(move || input.write_all(bytes));
        output.read_to_end(&mut packed).context("reading from `gzip`")?;
        writer.join().map_err(|_| anyhow::anyhow!("writing to `gzip`"))?.context("writing to `gzip`")
    })?;
    if !gzip.wait().context("waiting for `gzip`")?.success() {
        bail!("`gzip` failed");
    }
    Ok(packed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> Vec<File> {
        vec![File::program("b/run", "x"), File::text("a", "text"), File::text("b/c", "")]
    }

    fn entries(archive: &[u8]) -> Vec<(String, u32, u64, u64)> {
        let mut archive = tar::Archive::new(archive);
        let entries = archive.entries().unwrap().map(|entry| {
            let entry = entry.unwrap();
            let header = entry.header();
            let path = entry.path().unwrap().display().to_string();
            (path, header.mode().unwrap(), header.mtime().unwrap(), header.uid().unwrap())
        });
        entries.collect()
    }

    #[test]
    fn the_order_of_files_does_not_matter() {
        let mut turned = files();
        turned.reverse();
        let of = |files: &[File]| gzip(&tar(files, Directories::Implied, "p/", 7).unwrap()).unwrap();
        assert_eq!(of(&files()), of(&turned));
        assert_ne!(of(&files()), of(&files()[..2]));
    }

    #[test]
    fn entries_have_fixed_owners_times_and_modes() {
        let entry = |path: &str, mode| (path.to_owned(), mode, 7, 0);
        let listed = entries(&tar(&files(), Directories::Listed, "", 7).unwrap());
        let expected = [entry("a", 0o644), entry("b/", 0o755), entry("b/c", 0o644), entry("b/run", 0o755)];
        assert_eq!(listed, expected);
        let plain = entries(&tar(&files(), Directories::Implied, "p/", 7).unwrap());
        assert_eq!(plain, [entry("p/a", 0o644), entry("p/b/c", 0o644), entry("p/b/run", 0o755)]);
    }
}
