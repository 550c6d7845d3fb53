//! The package for Debian and Ubuntu: an `ar` archive of two compressed `tar` archives, see deb(5).

use std::io::Write as _;

use anyhow::{Context as _, Result};

use super::content::{Content, apparmor};
use super::pack::{Directories, File, tar_gz, time};
use super::target::Target;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Not a file of settings in Debian's sense: changes go to `local/portcullis`, so removing the package removes it.
const PROFILE: &str = "etc/apparmor.d/portcullis";
/// Loads the profile where AppArmor is in use. An AppArmor that does not know `userns` does not restrict it either.
const POSTINST: &str = "#!/bin/sh
set -e
if [ \"$1\" = configure ] && command -v aa-enabled >/dev/null && aa-enabled --quiet; then
    apparmor_parser --replace --write-cache /etc/apparmor.d/portcullis >/dev/null 2>&1 || true
fi
";
const PRERM: &str = "#!/bin/sh
set -e
if [ \"$1\" = remove ] && command -v aa-enabled >/dev/null && aa-enabled --quiet; then
    apparmor_parser --remove /etc/apparmor.d/portcullis >/dev/null 2>&1 || true
fi
";

pub(super) fn name(target: Target) -> String {
    format!("portcullis_{VERSION}_{}.deb", target.debian())
}

/// Returns the package.
pub(super) fn make(target: Target, content: &Content) -> Result<Vec<u8>> {
    let mut files: Vec<File> = content.programs.iter().chain(&content.share).cloned().map(in_usr).collect();
    files.extend(content.documents.iter().cloned().map(|file| file.below("usr/share/doc/portcullis")));
    files.push(File::text("usr/share/doc/portcullis/copyright", COPYRIGHT));
    files.push(File::text(PROFILE, apparmor(&["usr/bin/portcullis"])));
    let size: usize = files.iter().map(|file| file.bytes.len()).sum();
    let control = [
        File::text("control", control(target, size)),
        File::program("postinst", POSTINST),
        File::program("prerm", PRERM),
    ];
    ar(&[
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", tar_gz(&control, Directories::Implied, "")?),
        ("data.tar.gz", tar_gz(&files, Directories::Listed, "")?),
    ])
}

const COPYRIGHT: &str =
    "Portcullis is under MIT or Apache-2.0, see LICENSE-MIT and LICENSE-APACHE beside this file.
The crates in its programs are listed with their licences in THIRD-PARTY-LICENSES.
";

/// Debian looks for completions of zsh in another directory.
fn in_usr(file: File) -> File {
    let path = file.path.replace("share/zsh/site-functions/", "share/zsh/vendor-completions/");
    File { path, ..file }.below("usr")
}

fn control(target: Target, size: usize) -> String {
    format!(
        "Package: portcullis\n\
         Version: {VERSION}\n\
         Architecture: {}\n\
         Maintainer: The Portcullis developers <portcullis@localhost>\n\
         Installed-Size: {}\n\
         Section: utils\n\
         Priority: optional\n\
         Description: sandbox for the coding agent pi\n \
         Runs an agent's commands in a sandbox of the Linux kernel, decides every tool call by\n \
         rules, and asks before anything else happens.\n",
        target.debian(),
        size.div_ceil(1024)
    )
}

fn ar(members: &[(&str, Vec<u8>)]) -> Result<Vec<u8>> {
    let time = time()?;
    let mut archive = b"!<arch>\n".to_vec();
    for (name, bytes) in members {
        writeln!(archive, "{name:<16}{time:<12}{:<6}{:<6}{:<8}{:<10}`", 0, 0, "100644", bytes.len())
            .context("writing a Debian package")?;
        archive.extend(bytes);
        if bytes.len() % 2 == 1 {
            archive.push(b'\n');
        }
    }
    Ok(archive)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_begin_at_even_places() {
        let archive = ar(&[("a", b"x".to_vec()), ("b", b"yy".to_vec())]).unwrap();
        assert_eq!(archive.len(), 8 + 60 + 2 + 60 + 2);
        assert_eq!(archive.get(8 + 60..8 + 60 + 3), Some(b"x\nb".as_slice()));
    }

    #[test]
    fn fields_stand_in_lines() {
        let control = control(Target::Aarch64, 2049);
        assert!(control.contains("\nArchitecture: arm64\n") && control.contains("\nInstalled-Size: 3\n"));
        assert!(control.lines().all(|line| line.starts_with(' ') || line.contains(": ")), "{control}");
    }
}
