//! Proposes entries for the credentials that the user has. It looks at names only and copies no credential.

mod aws;
mod proposal;

use std::path::Path;

use portcullis_bootstrap::credential_services::{SERVICES, Service};
use portcullis_bootstrap::git_config::signing_key;
use portcullis_bootstrap::process_env::ProcessEnv;
use serde_json::json;

use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::output::{Page, Tint, tinted};
use proposal::Proposal;

/// Prints the proposals.
pub(super) fn run(around: &ProcessEnv, as_json: bool) -> exit::Outcome {
    let known = super::declared::names(around)?;
    let is_new = |service: &&Service| !known.iter().any(|name| name == service.name);
    let mut proposals: Vec<Proposal> =
        SERVICES.iter().filter(is_new).filter_map(|service| of_service(around, service)).collect();
    for proposal in of_npm(&around.home.join(".npmrc")) {
        if !known.iter().chain(proposals.iter().map(|one| &one.name)).any(|name| *name == proposal.name) {
            proposals.push(proposal);
        }
    }
    proposals.extend(aws::proposals(around));
    let is_unknown = |proposal: &Proposal| !known.contains(&proposal.name);
    proposals.extend(of_ssh(around).into_iter().chain(of_signing(around)));
    proposals.retain(is_unknown);
    let mut page = Page::new(around);
    if as_json {
        let one = |proposal: &Proposal| json!({ "seen": proposal.seen, "command": proposal.command, "allows": proposal.allows });
        page.json(&json!({ "proposals": proposals.iter().map(one).collect::<Vec<_>>() }));
    } else if proposals.is_empty() {
        page.line("nothing to propose; `portcullis credentials add --help` has examples");
    } else {
        for proposal in &proposals {
            let why = format!("{}; for {}", proposal.seen, proposal.allows);
            page.table("", &[vec![tinted(&why, Tint::Faint)]]);
            page.line(&format!("  {}", proposal.command));
        }
    }
    page.print()?;
    Ok(Exit::Done)
}

/// Proposes the entry of a service if the credential is seen.
fn of_service(around: &ProcessEnv, service: &Service) -> Option<Proposal> {
    let seen = match service.variable_in(around) {
        Some(variable) => format!("{variable} is set"),
        None if service.is_logged_in(around) => "gh is logged in".to_owned(),
        None => return None,
    };
    let name = service.name.to_owned();
    let allows = format!("{}: {}", service.host, service.purpose.join(", "));
    Some(Proposal { command: format!("portcullis credentials add {name}"), name, seen, allows })
}

/// Proposes an entry for each registry that `.npmrc` has a token for.
fn of_npm(file: &Path) -> Vec<Proposal> {
    // A file that cannot be read has nothing to propose.
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let registry = |line: &str| {
        let (place, _token) = line.trim().strip_prefix("//")?.split_once("/:_authToken=")?;
        let is_host = !place.is_empty()
            && place.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.:".contains(&byte));
        is_host.then(|| place.to_owned())
    };
    let proposal = |host: String| {
        let variable = format!("npm_config_//{host}/:_authToken");
        let name = match host.as_str() {
            "registry.npmjs.org" => "npm".to_owned(),
            other => format!("npm-{}", other.replace(':', "-")),
        };
        Proposal {
            allows: format!("{host}: GET,HEAD /**"),
            seen: format!("{} has a token for {host}", file.display()),
            command: format!(
                "portcullis credentials add {name} --host {host} --command 'sed -n s,^//{host}/:_authToken=,,p {}' \
                 --form bearer --for 'GET,HEAD /**' --variable '{variable}'",
                file.display()
            ),
            name,
        }
    };
    text.lines().filter_map(registry).map(proposal).collect()
}

/// The forges that people reach by ssh, each with a name for the entry.
const FORGES: [(&str, &str); 2] = [("github-ssh", "github.com"), ("gitlab-ssh", "gitlab.com")];

/// Proposes the forges whose server the user's own `ssh` knows.
fn of_ssh(around: &ProcessEnv) -> Vec<Proposal> {
    // A file that cannot be read has nothing to propose.
    let known = std::fs::read_to_string(around.home.join(".ssh/known_hosts")).unwrap_or_default();
    let is_known = |host: &str| {
        known
            .lines()
            .any(|line| line.split(' ').next().is_some_and(|names| names.split(',').any(|name| name == host)))
    };
    let forges = FORGES.into_iter().filter(|(_, host)| is_known(host));
    let proposal = |(name, host): (&str, &str)| Proposal {
        name: name.to_owned(),
        seen: format!("your ssh knows {host}"),
        command: format!("portcullis credentials add {name} --ssh --host {host} --user git"),
        allows: format!("fetches of git from {host}"),
    };
    forges.map(proposal).collect()
}

/// Proposes the key with which the user's own git signs.
fn of_signing(around: &ProcessEnv) -> Option<Proposal> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._/~@+".contains(&byte);
    let key = signing_key(around).filter(|key| key.bytes().all(fits) && !key.starts_with('-'))?;
    Some(Proposal {
        name: "sign".to_owned(),
        seen: format!("your git signs with {key}"),
        command: format!("portcullis credentials add sign --sign {key}"),
        allows: "commits and tags, each with a question".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forges_and_the_signing_key_of_the_user_are_proposed() {
        let directory = tempfile::tempdir().unwrap();
        let around = ProcessEnv { home: directory.path().to_owned(), ..ProcessEnv::read().unwrap() };
        assert!(of_ssh(&around).is_empty() && of_signing(&around).is_none());
        std::fs::create_dir(directory.path().join(".ssh")).unwrap();
        std::fs::write(directory.path().join(".ssh/known_hosts"), "gitlab.com,1.2.3.4 ssh-ed25519 A\n")
            .unwrap();
        std::fs::write(directory.path().join(".gitconfig"), "[user]\nsigningkey = 0xABCD\n").unwrap();
        let forges = of_ssh(&around);
        assert!(forges.iter().map(|one| one.name.as_str()).eq(["gitlab-ssh"]));
        assert_eq!(of_signing(&around).unwrap().command, "portcullis credentials add sign --sign 0xABCD");
        std::fs::write(directory.path().join(".gitconfig"), "[user]\nsigningkey = a;b\n").unwrap();
        assert!(of_signing(&around).is_none());
    }

    #[test]
    fn a_registry_in_npmrc_is_proposed_without_its_token() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join(".npmrc");
        std::fs::write(
            &file,
            "color=false\n//registry.npmjs.org/:_authToken=npm_top-secret\n//bad'x/:_authToken=a\n\
             //npm.test:8443/:_authToken=other-secret\n",
        )
        .unwrap();
        let proposals = of_npm(&file);
        assert!(proposals.iter().map(|one| one.name.as_str()).eq(["npm", "npm-npm.test-8443"]));
        assert!(proposals.iter().all(|one| !one.command.contains("secret") && !one.seen.contains("secret")));
        assert!(of_npm(Path::new("/no/such/file")).is_empty());
    }
}
