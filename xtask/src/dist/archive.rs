//! The archive with `install.sh`, for every Linux or macOS and without root.

use anyhow::Result;

use super::content::{Content, apparmor};
use super::pack::{Directories, File, tar_gz};
use super::sums;
use super::target::Target;

const VERSION: &str = env!("CARGO_PKG_VERSION");
const INSTALL: &str = include_str!("install.sh");
/// The usual paths of the program; `portcullis doctor --write-apparmor` writes the profile for any other place.
const PATHS: [&str; 3] = ["usr/bin/portcullis", "usr/local/bin/portcullis", "home/*/.local/bin/portcullis"];

pub(super) fn name(target: Target) -> String {
    format!("{}.tar.gz", directory(target))
}

fn directory(target: Target) -> String {
    format!("portcullis-{VERSION}-{}", target.label())
}

/// Returns the archive.
pub(super) fn make(target: Target, content: &Content) -> Result<Vec<u8>> {
    let mut files = content.programs.clone();
    files.extend(content.share.iter().cloned());
    files.extend(content.documents.iter().cloned().map(|file| file.below("share/doc/portcullis")));
    if !target.is_macos() {
        files.push(File::text("share/doc/portcullis/apparmor", apparmor(&PATHS)));
    }
    files.sort();
    let sums = sums::lines(files.iter().map(|file| (file.path.as_str(), file.bytes.as_slice())));
    files.push(File::text(sums::SUMS, sums));
    files.push(File::program("install.sh", install_script(target)));
    tar_gz(&files, Directories::Implied, &format!("{}/", directory(target)))
}

fn install_script(target: Target) -> String {
    let script = INSTALL.replace("@VERSION@", VERSION).replace("@PROCESSOR@", target.processor());
    script.replace("@KERNEL@", target.kernel()).replace("@SYSTEM@", target.system())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_knows_what_it_installs() {
        let script = install_script(Target::Aarch64);
        assert!(script.contains("processor=aarch64\n") && script.contains("kernel=Linux\n"), "{script}");
        let script = install_script(Target::MacosAarch64);
        assert!(script.contains("processor=arm64\n") && script.contains("kernel=Darwin\n"), "{script}");
        assert!(!script.replace("\"$@\"", "").contains('@'), "{script}");
    }
}
