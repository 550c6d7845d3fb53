//! Proposes entries for the credentials that the user has. It looks at names only and copies no credential.

use std::path::Path;

use portcullis_bootstrap::process_env::ProcessEnv;
use serde_json::json;

use crate::exit::Exit;
use crate::output::{Page, Tint, tinted};

/// A service, with the variables that its tools read a credential from.
struct Service {
    name: &'static str,
    variables: &'static [&'static str],
    host: &'static str,
    /// The form, with the name of the header.
    form: &'static str,
    purpose: &'static str,
}

const SERVICES: &[Service] = &[
    Service {
        name: "github",
        variables: &["GITHUB_TOKEN", "GH_TOKEN"],
        host: "api.github.com",
        form: "--form bearer",
        purpose: "GET /**",
    },
    Service {
        name: "gitlab",
        variables: &["GITLAB_TOKEN"],
        host: "gitlab.com",
        form: "--form header --header private-token",
        purpose: "GET /api/**",
    },
    Service {
        name: "npm",
        variables: &["NPM_TOKEN", "NODE_AUTH_TOKEN"],
        host: "registry.npmjs.org",
        form: "--form bearer",
        purpose: "GET /**",
    },
    Service {
        name: "openai",
        variables: &["OPENAI_API_KEY"],
        host: "api.openai.com",
        form: "--form bearer",
        purpose: "POST /v1/**",
    },
    Service {
        name: "anthropic",
        variables: &["ANTHROPIC_API_KEY"],
        host: "api.anthropic.com",
        form: "--form header --header x-api-key",
        purpose: "POST /v1/**",
    },
    Service {
        name: "huggingface",
        variables: &["HF_TOKEN"],
        host: "huggingface.co",
        form: "--form bearer",
        purpose: "GET,HEAD /**",
    },
];

/// A proposal: where a credential was seen, and the command that adds it.
struct Proposal {
    seen: String,
    command: String,
}

/// Prints the proposals.
pub(super) fn run(around: &ProcessEnv, as_json: bool) -> crate::exit::Outcome {
    let known = super::declared::names(around)?;
    let mut proposals = of_variables(around, &known);
    if !known.iter().any(|name| name == "github") && around.settings.join("gh/hosts.yml").is_file() {
        proposals.push(Proposal {
            seen: "gh is logged in".to_owned(),
            command: "portcullis credentials add github --host api.github.com --command 'gh auth token' --form bearer \
                      --for 'GET /**' --variable GITHUB_TOKEN"
                .to_owned(),
        });
    }
    if !known.iter().any(|name| name == "npm") {
        proposals.extend(of_npm(&around.home.join(".npmrc")));
    }
    let mut page = Page::new(around);
    if as_json {
        let one = |proposal: &Proposal| json!({ "seen": proposal.seen, "command": proposal.command });
        page.json(&json!({ "proposals": proposals.iter().map(one).collect::<Vec<_>>() }));
    } else if proposals.is_empty() {
        page.line("nothing to propose; `portcullis credentials add --help` has examples");
    } else {
        for proposal in &proposals {
            page.table("", &[vec![tinted(&proposal.seen, Tint::Faint)]]);
            page.line(&format!("  {}", proposal.command));
        }
    }
    page.print()?;
    Ok(Exit::Done)
}

fn of_variables(around: &ProcessEnv, known: &[String]) -> Vec<Proposal> {
    let is_set =
        |wanted: &str| around.variables.iter().any(|(name, value)| name == wanted && !value.is_empty());
    let proposal = |service: &Service| {
        let variable = service.variables.iter().find(|name| is_set(name))?;
        let Service { name, host, form, purpose, .. } = service;
        let command = format!(
            "portcullis credentials add {name} --host {host} --env {variable} {form} --for '{purpose}' --variable {variable}"
        );
        Some(Proposal { seen: format!("{variable} is set"), command })
    };
    SERVICES
        .iter()
        .filter(|service| !known.iter().any(|name| name == service.name))
        .filter_map(proposal)
        .collect()
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
        Proposal {
            seen: format!("{} has a token for {host}", file.display()),
            command: format!(
                "portcullis credentials add npm --host {host} --command 'sed -n s,^//{host}/:_authToken=,,p {}' \
                 --form bearer --for 'GET /**' --variable '{variable}'",
                file.display()
            ),
        }
    };
    text.lines().filter_map(registry).map(proposal).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_in_npmrc_is_proposed_without_its_token() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join(".npmrc");
        std::fs::write(
            &file,
            "color=false\n//registry.npmjs.org/:_authToken=npm_top-secret\n//bad'x/:_authToken=a\n",
        )
        .unwrap();
        let proposals = of_npm(&file);
        assert_eq!(proposals.len(), 1);
        assert!(proposals.iter().all(|one| !one.command.contains("secret") && !one.seen.contains("secret")));
        assert!(of_npm(Path::new("/no/such/file")).is_empty());
    }
}
