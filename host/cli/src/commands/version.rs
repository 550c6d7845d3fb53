//! `portcullis version`: the version, and the check of a release.

use std::path::Path;

use anyhow::{Context as _, bail};
use portcullis_bootstrap::process_env::{ProcessEnv, unix_seconds};
use portcullis_bootstrap::trust_files;
use portcullis_command_line::args::version::Version;
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::output::{Page, Tint, cell, tinted};
use portcullis_packs::{
    ReleaseError, ReleaseFile, SUMS, SUMS_SIGNATURE, TEXT_MAX, TRUST_MAX, read, read_text, verify_release,
};
use serde_json::json;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Largest file of a release, in bytes.
const FILE_MAX: u64 = 1 << 30;

/// Prints the version, or checks a file.
pub(crate) fn run(version: &Version) -> exit::Outcome {
    let around = ProcessEnv::read()?;
    let mut page = Page::new(&around);
    let exit = match &version.verify {
        None => {
            say(&mut page, version.json);
            Exit::Done
        }
        Some(file) => {
            let own = trust_files::release_signers(&around.agent_directory);
            let checked = check(file, version.signers.as_deref().unwrap_or(&own))?;
            report(&mut page, file, &checked, version.json)
        }
    };
    page.print()?;
    Ok(exit)
}

fn say(page: &mut Page, as_json: bool) {
    let (system, processor) = (std::env::consts::OS, std::env::consts::ARCH);
    if as_json {
        page.json(&json!({ "version": VERSION, "system": system, "processor": processor }));
    } else {
        page.line(&format!("portcullis {VERSION} for {system} on {processor}"));
    }
}

/// Checks a file against the signed sums beside it.
fn check(file: &Path, signers: &Path) -> anyhow::Result<Result<(String, String), ReleaseError>> {
    let name = file.file_name().and_then(|name| name.to_str()).context("the file to check has no name")?;
    let bytes = read(file, FILE_MAX)?;
    let sums = read_text(&file.with_file_name(SUMS), TRUST_MAX)?;
    let signature = read_text(&file.with_file_name(SUMS_SIGNATURE), TEXT_MAX)?;
    if !signers.exists() {
        bail!("the list of release signers `{}` does not exist; name one with --signers", signers.display());
    }
    let signers = read_text(signers, TRUST_MAX)?;
    let released = ReleaseFile { name, bytes: &bytes, sums: &sums, signature: &signature, signers: &signers };
    Ok(verify_release(&released, unix_seconds()))
}

fn report(
    page: &mut Page,
    file: &Path,
    checked: &Result<(String, String), ReleaseError>,
    as_json: bool,
) -> Exit {
    let fault = checked.as_ref().err().map(ToString::to_string);
    let (sum, key) = checked.as_ref().map(|(sum, key)| (sum.as_str(), key.as_str())).unwrap_or_default();
    if as_json {
        page.json(&json!({ "isReleased": fault.is_none(), "sha256": sum, "key": key, "fault": fault }));
    } else {
        let word = match &fault {
            None => tinted(&format!("is the one that was released, signed by {key}"), Tint::Good),
            Some(fault) => tinted(&format!("refused: {fault}"), Tint::Bad),
        };
        page.row("", &[cell(&file.display().to_string()), word], &[]);
    }
    if fault.is_none() { Exit::Done } else { Exit::Bad }
}
