//! Checks a program for macOS: its form, its libraries, and its signature.
//!
//! ARM64 machines run no program without a signature, so the linker signs for them. Others run it without.
//!
//! See `mach-o/loader.h` and `kern/cs_blobs.h` of XNU.

use anyhow::{Context as _, Result, bail, ensure};
use sha2::{Digest as _, Sha256};

use super::target::Target;

const MAGIC: u32 = 0xfeed_facf;
const EXECUTABLE: u32 = 2;
const POSITION_INDEPENDENT: u32 = 0x20_0000;
const HEADER: usize = 32;
/// Load commands.
const LIBRARIES: [u32; 4] = [0xc, 0x8000_0018, 0x8000_001f, 0x8000_0023];
const SIGNATURE: u32 = 0x1d;
const ENTRY: u32 = 0x8000_0028;
const BUILD_VERSION: u32 = 0x32;
const MACOS: u32 = 1;
/// The parts of a signature, and its flag for one without an identity.
const SIGNATURE_MAGIC: u32 = 0xfade_0cc0;
const DIRECTORY_MAGIC: u32 = 0xfade_0c02;
const AD_HOC: u32 = 2;
const SHA256: u8 = 2;
const HASH: usize = 32;
/// The libraries that every macOS has.
const OF_SYSTEM: [&str; 3] =
    ["/usr/lib/libSystem.B.dylib", "/usr/lib/libiconv.2.dylib", "/usr/lib/libcharset.1.dylib"];

/// Checks a program for one of macOS' processors.
pub(crate) fn check(program: &[u8], target: Target) -> Result<()> {
    let [magic, cpu, _, kind, count, _, flags] = [0, 4, 8, 12, 16, 20, 24].map(|at| little(program, at));
    ensure!(magic? == MAGIC, "it is no program for macOS");
    let wanted: u32 = if target == Target::MacosAarch64 { 0x0100_000c } else { 0x0100_0007 };
    ensure!(cpu? == wanted, "it is for another processor");
    ensure!(kind? == EXECUTABLE, "it is no program");
    ensure!(flags? & POSITION_INDEPENDENT != 0, "it has a fixed place in memory");
    let (mut at, mut entry, mut is_macos, mut signature) = (HEADER, false, false, None);
    for _ in 0..count? {
        let (command, size) = (little(program, at)?, index(little(program, at + 4)?)?);
        ensure!(size >= 8, "a load command is too short");
        let body = program.get(at..at + size).context("a load command is cut off")?;
        match command {
            ENTRY => entry = true,
            BUILD_VERSION => is_macos = little(body, 8)? == MACOS,
            SIGNATURE => signature = Some((index(little(body, 8)?)?, index(little(body, 12)?)?)),
            library if LIBRARIES.contains(&library) => known_library(body)?,
            _ => {}
        }
        at += size;
    }
    ensure!(entry, "it has no entry point");
    ensure!(is_macos, "it is for another system");
    let Some((from, length)) = signature else {
        ensure!(target != Target::MacosAarch64, "it is not signed");
        return Ok(());
    };
    let blob = program.get(from..from + length).context("its signature is cut off")?;
    signed(program.get(..from).unwrap_or_default(), blob).context("reading its signature")
}

fn known_library(body: &[u8]) -> Result<()> {
    let name = body.get(index(little(body, 8)?)?..).context("a library without a name")?;
    let name = String::from_utf8_lossy(name.split(|&byte| byte == 0).next().unwrap_or_default());
    ensure!(OF_SYSTEM.contains(&&*name), "it needs `{name}`");
    Ok(())
}

/// Checks that the signature holds the sum of every page of `signed`.
fn signed(signed: &[u8], blob: &[u8]) -> Result<()> {
    ensure!(big(blob, 0)? == SIGNATURE_MAGIC, "it has an unknown form");
    let mut directory = None;
    for entry in 0..index(big(blob, 8)?)? {
        let part = blob.get(index(big(blob, 16 + 8 * entry)?)?..).context("a part is cut off")?;
        if big(part, 0)? == DIRECTORY_MAGIC {
            directory = Some(part);
        }
    }
    let directory = directory.context("it has no sums")?;
    let [flags, sums, pages, limit] = [12, 16, 28, 32].map(|at| big(directory, at));
    let [size, kind, _, page] = directory.get(36..40).context("it is cut off")? else {
        bail!("it is cut off")
    };
    ensure!(flags? & AD_HOC != 0, "it names somebody");
    ensure!(*kind == SHA256 && usize::from(*size) == HASH, "its sums are not SHA-256");
    ensure!(index(limit?)? == signed.len(), "it is not for the whole program");
    let (sums, pages) = (index(sums?)?, index(pages?)?);
    let chunks = signed.chunks(1_usize.checked_shl(u32::from(*page)).context("pages without a size")?);
    ensure!(chunks.len() == pages, "it has not one sum for each page");
    for (number, chunk) in chunks.enumerate() {
        let at = sums + HASH * number;
        let sum = directory.get(at..at + HASH).context("a sum is missing")?;
        ensure!(Sha256::digest(chunk).as_slice() == sum, "page {number} has another sum");
    }
    Ok(())
}

fn word(bytes: &[u8], at: usize) -> Result<[u8; 4]> {
    let found = bytes.get(at..at + 4).context("it is cut off")?;
    found.try_into().context("it is cut off")
}

fn little(bytes: &[u8], at: usize) -> Result<u32> {
    word(bytes, at).map(u32::from_le_bytes)
}

fn big(bytes: &[u8], at: usize) -> Result<u32> {
    word(bytes, at).map(u32::from_be_bytes)
}

fn index(number: u32) -> Result<usize> {
    usize::try_from(number).context("it is too large")
}

#[cfg(test)]
mod tests;
