//! `team join` and `team leave`.

use anyhow::{Context as _, anyhow, bail};
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_bootstrap::teams::{self, Joined, update};
use portcullis_command_line::args::team::Join;
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::output::Page;
use portcullis_packs::{Reference, is_digest, write};
use portcullis_policy_tools::registry_client;
use portcullis_teams::{DocumentName, Membership, Owner, RegistrySource, Source as _};
use serde_json::json;

use super::membership::joined;
use super::update::print;

pub(super) fn join(around: &ProcessEnv, join: &Join) -> exit::Outcome {
    let repository = Reference::parse(&join.registry)?;
    if repository.tag.is_some() || repository.digest.is_some() {
        bail!("name the team's repository without a tag, as in `{}`", repository.place());
    }
    if !is_digest(&join.root) {
        let root = join.root.escape_debug();
        bail!(
            "`{root}` is no digest of a root: `sha256:` and 64 hex digits, which `portcullis team publish` prints"
        );
    }
    if let Some(other) = teams::joined(&around.agent_directory)? {
        let (team, file) = (&other.membership.team, other.file.display());
        let hint = match other.owner {
            Owner::User => "`portcullis team leave` leaves it",
            Owner::Machine => "it applies to every user of this machine",
        };
        bail!("the team `{team}` is joined already (`{file}`); {hint}");
    }
    let mut registry = registry_client(around)?;
    let mut source = RegistrySource::new(&mut registry, &repository);
    let root =
        source.document(&DocumentName::PinnedRoot(join.root.clone())).map_err(|error| anyhow!(error))?;
    let root = root.with_context(|| format!("`{}` has no root `{}`", repository.place(), join.root))?;
    let team = root.team().context("the root names no team")?;
    let file = teams::user_file(&around.agent_directory);
    let text = Membership::user_text(&team, &repository, &join.root);
    let membership = Membership::parse(&text, Owner::User)?;
    let store = teams::store(&around.agent_directory);
    // Left over from a team that was left by removing the file.
    store.clear()?;
    let joined = Joined { membership, owner: Owner::User, file: file.clone(), store };
    let updated = update::update(&joined, &mut source, &around.cache).and_then(|updated| {
        match &updated.trusted.bundle {
            Some(_) => Ok(updated),
            None => {
                let reasons: Vec<String> = updated
                    .refused
                    .iter()
                    .map(|(version, error)| update::refusal_text(*version, error))
                    .collect();
                Err(anyhow!("{}", reasons.join("; ")))
            }
        }
    });
    let updated = match updated {
        Ok(updated) => updated,
        Err(error) => {
            joined.store.clear()?;
            return Err(error.context(format!("the bundle of `{team}` is refused, and nothing was joined")));
        }
    };
    write(&file, text.as_bytes())?;
    print(around, &updated, join.json)
}

pub(super) fn leave(around: &ProcessEnv, as_json: bool) -> exit::Outcome {
    let joined = joined(around)?;
    let team = &joined.membership.team;
    if joined.owner == Owner::Machine {
        bail!("`{}` names the team `{team}` for this machine, so it cannot be left", joined.file.display());
    }
    std::fs::remove_file(&joined.file).with_context(|| format!("removing `{}`", joined.file.display()))?;
    joined.store.clear()?;
    let mut page = Page::new(around);
    if as_json {
        page.json(&json!({ "left": team }));
    } else {
        page.line(&format!("you have left the team `{team}`; what it required has ended"));
    }
    page.print()?;
    Ok(Exit::Done)
}
