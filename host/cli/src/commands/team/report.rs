//! `team report`: writes the versions of program, bundle and packs, signed by the machine's key.

use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt as _;

use anyhow::{Context as _, bail};
use portcullis_bootstrap::process_env::{ProcessEnv, unix_seconds};
use portcullis_bootstrap::running_sessions::running_sessions;
use portcullis_bootstrap::teams::{Joined, machine_id};
use portcullis_command_line::args;
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::output::Page;
use portcullis_packs::{beside, digest, read, write};
use portcullis_teams::{MachineKey, PackInForce, Report, Trusted};
use serde_json::json;

use super::membership::joined;

/// Name of the file with the seed of the machine's key. The agent's commands do not see its directory.
const SEED: &str = "machine_key";

pub(super) fn run(around: &ProcessEnv, options: &args::team::Report) -> exit::Outcome {
    let joined = joined(around)?;
    let trusted = joined.open()?;
    let signed =
        key(around)?.sign(&report(around, &joined, trusted.as_ref())).context("signing the report")?;
    let mut page = Page::new(around);
    if options.json {
        page.json(&json!(signed));
    }
    if let Some(file) = &options.file {
        let file = around.absolute(file);
        write(&file, signed.report.as_bytes())?;
        write(&beside(&file, "sig"), signed.signature.as_bytes())?;
        if !options.json {
            page.line(&format!("the report is in `{}`, signed by the key of this machine:", file.display()));
            page.line(&signed.key);
        }
    }
    page.print()?;
    Ok(Exit::Done)
}

/// Returns the report of this machine: its program, bundle and packs.
pub(super) fn report(around: &ProcessEnv, joined: &Joined, trusted: Option<&Trusted>) -> Report {
    let bundle = trusted.and_then(|trusted| trusted.bundle.as_ref());
    let packs = bundle.iter().flat_map(|bundle| &bundle.content.packs);
    let in_force = |pack: &portcullis_teams::BundlePack| PackInForce {
        id: pack.id.clone(),
        version: pack.version.to_string(),
        digest: pack.digest.clone(),
        mode: joined.mode(&pack.id, pack.stage),
    };
    let sessions = running_sessions(&around.state).unwrap_or_default();
    let tier = sessions.last().map_or_else(|| "no session runs".to_owned(), |session| session.tier.clone());
    Report {
        machine: machine_name(),
        user: around.user.clone(),
        team: joined.membership.team.clone(),
        mandatory: joined.membership.mandatory,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        tier,
        root: trusted.map_or(0, |trusted| trusted.root.version),
        bundle: bundle.map(|bundle| bundle.content.version),
        digest: bundle.map(|bundle| bundle.digest.clone()),
        since: trusted.map_or(0, |trusted| trusted.held.since),
        expires_at: bundle.map(|bundle| bundle.content.expires_at),
        checked_at: trusted.map_or(0, |trusted| trusted.held.checked_at),
        packs: packs.map(in_force).collect(),
        made_at: unix_seconds(),
    }
}

/// Returns a stable name of the machine: machine-id(5) asks programs not to publish the id itself.
fn machine_name() -> String {
    let hash = digest(format!("portcullis-machine\n{}", machine_id()).as_bytes());
    hash.chars().take(16).collect()
}

/// Returns the machine's key. Makes one on the first use.
fn key(around: &ProcessEnv) -> anyhow::Result<MachineKey> {
    let file = around.state.join(SEED);
    let reading = || format!("reading the machine's key `{}`", file.display());
    std::fs::create_dir_all(&around.state).with_context(|| format!("making `{}`", around.state.display()))?;
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).context("making the machine's key")?;
    let mut wanted = std::fs::OpenOptions::new();
    match wanted.write(true).create_new(true).mode(0o600).open(&file) {
        Ok(mut made) => {
            std::io::Write::write_all(&mut made, &seed).with_context(reading)?;
            return Ok(MachineKey::from_seed(&seed));
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error).with_context(reading),
    }
    match <[u8; 32]>::try_from(read(&file, 32)?) {
        Ok(seed) => Ok(MachineKey::from_seed(&seed)),
        Err(_) => {
            bail!("the machine's key `{}` is damaged; remove it, and a new one is made", file.display())
        }
    }
}
