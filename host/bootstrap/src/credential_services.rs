//! Services whose credentials people use often. Their entries only read, as far as the service can be used like that.

use serde_json::{Value, json};

use crate::process_env::ProcessEnv;

/// A service, with everything that an entry for it needs.
#[derive(Debug)]
pub struct Service {
    /// Its name, which the credential gets.
    pub name: &'static str,
    /// The host.
    pub host: &'static str,
    /// The place in a request, as in the settings.
    pub form: &'static str,
    /// For `basic`: the user name.
    pub user: Option<&'static str>,
    /// For `header`: the name of the header.
    pub header: Option<&'static str>,
    /// The requests that the credential is for.
    pub purpose: &'static [&'static str],
    /// The variables in which people have the credential.
    pub env: &'static [&'static str],
    /// A command that prints it.
    pub command: Option<&'static str>,
    /// The variables of commands that hold the placeholder.
    pub variables: &'static [&'static str],
    /// Whether git uses it.
    pub git: bool,
    /// A path that is answered only with the credential.
    pub probe: Option<&'static str>,
}

/// The command of `gh` that prints its token.
const GH_TOKEN: &str = "gh auth token";

/// Fetching over HTTPS: a push needs `git-receive-pack`.
const FETCHES: &[&str] = &["GET,HEAD /**/info/refs", "POST /**/git-upload-pack"];

const NONE: Service = Service {
    name: "",
    host: "",
    form: "bearer",
    user: None,
    header: None,
    purpose: &[],
    env: &[],
    command: None,
    variables: &[],
    git: false,
    probe: None,
};

/// All services.
pub const SERVICES: &[Service] = &[
    Service {
        name: "github",
        probe: Some("/user"),
        host: "api.github.com",
        purpose: &["GET,HEAD /**"],
        env: &["GITHUB_TOKEN", "GH_TOKEN"],
        command: Some(GH_TOKEN),
        variables: &["GITHUB_TOKEN", "GH_TOKEN"],
        ..NONE
    },
    Service {
        name: "github-git",
        host: "github.com",
        form: "basic",
        user: Some("x-access-token"),
        purpose: FETCHES,
        env: &["GITHUB_TOKEN", "GH_TOKEN"],
        command: Some(GH_TOKEN),
        git: true,
        ..NONE
    },
    Service {
        name: "gitlab",
        probe: Some("/api/v4/user"),
        host: "gitlab.com",
        form: "header",
        header: Some("private-token"),
        purpose: &["GET,HEAD /api/**"],
        env: &["GITLAB_TOKEN"],
        variables: &["GITLAB_TOKEN"],
        ..NONE
    },
    Service {
        name: "gitlab-git",
        host: "gitlab.com",
        form: "basic",
        user: Some("oauth2"),
        purpose: FETCHES,
        env: &["GITLAB_TOKEN"],
        git: true,
        ..NONE
    },
    Service {
        name: "npm",
        probe: Some("/-/whoami"),
        host: "registry.npmjs.org",
        // npm sends the token with its audits as well, which change nothing.
        purpose: &["GET,HEAD /**", "POST /-/npm/v1/security/**"],
        env: &["NPM_TOKEN", "NODE_AUTH_TOKEN"],
        variables: &["npm_config_//registry.npmjs.org/:_authToken"],
        ..NONE
    },
    Service {
        name: "openai",
        probe: Some("/v1/models"),
        host: "api.openai.com",
        purpose: &["GET,POST /v1/**"],
        env: &["OPENAI_API_KEY"],
        variables: &["OPENAI_API_KEY"],
        ..NONE
    },
    Service {
        name: "anthropic",
        probe: Some("/v1/models"),
        host: "api.anthropic.com",
        form: "header",
        header: Some("x-api-key"),
        purpose: &["GET,POST /v1/**"],
        env: &["ANTHROPIC_API_KEY"],
        variables: &["ANTHROPIC_API_KEY"],
        ..NONE
    },
    Service {
        name: "gemini",
        probe: Some("/v1beta/models"),
        host: "generativelanguage.googleapis.com",
        form: "header",
        header: Some("x-goog-api-key"),
        purpose: &["GET,POST /v1*/**"],
        env: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        variables: &["GEMINI_API_KEY"],
        ..NONE
    },
    Service {
        name: "openrouter",
        probe: Some("/api/v1/key"),
        host: "openrouter.ai",
        purpose: &["GET,POST /api/v1/**"],
        env: &["OPENROUTER_API_KEY"],
        variables: &["OPENROUTER_API_KEY"],
        ..NONE
    },
    Service {
        name: "huggingface",
        probe: Some("/api/whoami-v2"),
        host: "huggingface.co",
        purpose: &["GET,HEAD /**"],
        env: &["HF_TOKEN"],
        variables: &["HF_TOKEN"],
        ..NONE
    },
];

impl Service {
    /// Returns the first of its variables that is set.
    #[must_use]
    pub fn variable_in(&self, around: &ProcessEnv) -> Option<&'static str> {
        let is_set =
            |wanted: &str| around.variables.iter().any(|(name, value)| name == wanted && !value.is_empty());
        self.env.iter().copied().find(|name| is_set(name))
    }

    /// Returns the source in the settings of the credential that the user is seen to have.
    #[must_use]
    pub fn source_in(&self, around: &ProcessEnv) -> Option<Value> {
        if let Some(variable) = self.variable_in(around) {
            return Some(json!({ "env": variable }));
        }
        let command = self.command.filter(|_| self.is_logged_in(around))?;
        Some(json!({ "command": command.split(' ').collect::<Vec<_>>() }))
    }

    /// Returns true if the command that prints the credential has one.
    #[must_use]
    pub fn is_logged_in(&self, around: &ProcessEnv) -> bool {
        self.command == Some(GH_TOKEN) && around.settings.join("gh/hosts.yml").is_file()
    }
}

/// Returns the service of this name.
#[must_use]
pub fn named(name: &str) -> Option<&'static Service> {
    SERVICES.iter().find(|service| service.name == name)
}

/// Returns the names of all services, as a list in a sentence.
#[must_use]
pub fn names() -> String {
    SERVICES.iter().map(|service| service.name).collect::<Vec<_>>().join(", ")
}
