//! Services whose credentials people use often. Their entries only read, as far as the service can be used like that.

use portcullis_bootstrap::process_env::ProcessEnv;

use crate::args::credentials::Form;

/// A service, with everything that an entry for it needs.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) name: &'static str,
    pub(super) host: &'static str,
    pub(super) form: Form,
    pub(super) user: Option<&'static str>,
    pub(super) header: Option<&'static str>,
    pub(super) purpose: &'static [&'static str],
    /// The variables in which people have the credential.
    pub(super) env: &'static [&'static str],
    /// A command that prints it.
    pub(super) command: Option<&'static str>,
    /// The variables of commands that hold the placeholder.
    pub(super) variables: &'static [&'static str],
    pub(super) git: bool,
}

/// Fetching over HTTPS: a push needs `git-receive-pack`.
const FETCHES: &[&str] = &["GET,HEAD /**/info/refs", "POST /**/git-upload-pack"];

const NONE: Service = Service {
    name: "",
    host: "",
    form: Form::Bearer,
    user: None,
    header: None,
    purpose: &[],
    env: &[],
    command: None,
    variables: &[],
    git: false,
};

pub(super) const SERVICES: &[Service] = &[
    Service {
        name: "github",
        host: "api.github.com",
        purpose: &["GET,HEAD /**"],
        env: &["GITHUB_TOKEN", "GH_TOKEN"],
        command: Some("gh auth token"),
        variables: &["GITHUB_TOKEN", "GH_TOKEN"],
        ..NONE
    },
    Service {
        name: "github-git",
        host: "github.com",
        form: Form::Basic,
        user: Some("x-access-token"),
        purpose: FETCHES,
        env: &["GITHUB_TOKEN", "GH_TOKEN"],
        command: Some("gh auth token"),
        git: true,
        ..NONE
    },
    Service {
        name: "gitlab",
        host: "gitlab.com",
        form: Form::Header,
        header: Some("private-token"),
        purpose: &["GET,HEAD /api/**"],
        env: &["GITLAB_TOKEN"],
        variables: &["GITLAB_TOKEN"],
        ..NONE
    },
    Service {
        name: "gitlab-git",
        host: "gitlab.com",
        form: Form::Basic,
        user: Some("oauth2"),
        purpose: FETCHES,
        env: &["GITLAB_TOKEN"],
        git: true,
        ..NONE
    },
    Service {
        name: "npm",
        host: "registry.npmjs.org",
        // npm sends the token with its audits as well, which change nothing.
        purpose: &["GET,HEAD /**", "POST /-/npm/v1/security/**"],
        env: &["NPM_TOKEN", "NODE_AUTH_TOKEN"],
        variables: &["npm_config_//registry.npmjs.org/:_authToken"],
        ..NONE
    },
    Service {
        name: "openai",
        host: "api.openai.com",
        purpose: &["GET,POST /v1/**"],
        env: &["OPENAI_API_KEY"],
        variables: &["OPENAI_API_KEY"],
        ..NONE
    },
    Service {
        name: "anthropic",
        host: "api.anthropic.com",
        form: Form::Header,
        header: Some("x-api-key"),
        purpose: &["GET,POST /v1/**"],
        env: &["ANTHROPIC_API_KEY"],
        variables: &["ANTHROPIC_API_KEY"],
        ..NONE
    },
    Service {
        name: "gemini",
        host: "generativelanguage.googleapis.com",
        form: Form::Header,
        header: Some("x-goog-api-key"),
        purpose: &["GET,POST /v1*/**"],
        env: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        variables: &["GEMINI_API_KEY"],
        ..NONE
    },
    Service {
        name: "openrouter",
        host: "openrouter.ai",
        purpose: &["GET,POST /api/v1/**"],
        env: &["OPENROUTER_API_KEY"],
        variables: &["OPENROUTER_API_KEY"],
        ..NONE
    },
    Service {
        name: "huggingface",
        host: "huggingface.co",
        purpose: &["GET,HEAD /**"],
        env: &["HF_TOKEN"],
        variables: &["HF_TOKEN"],
        ..NONE
    },
];

impl Service {
    /// Returns the first of its variables that is set.
    pub(super) fn variable_in(&self, around: &ProcessEnv) -> Option<&'static str> {
        let is_set =
            |wanted: &str| around.variables.iter().any(|(name, value)| name == wanted && !value.is_empty());
        self.env.iter().copied().find(|name| is_set(name))
    }
}

/// Returns the service of this name.
pub(super) fn named(name: &str) -> Option<&'static Service> {
    SERVICES.iter().find(|service| service.name == name)
}

/// Returns the names of all services, as a list in a sentence.
pub(super) fn names() -> String {
    SERVICES.iter().map(|service| service.name).collect::<Vec<_>>().join(", ")
}
