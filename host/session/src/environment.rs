//! What commands see of the environment: everything but what injects code, holds secrets or leads out.

use portcullis_decision::pattern::name_matches;
use portcullis_decision::{Effect, RuleSet};

/// Variables that make programs load code or settings from elsewhere.
const INJECTS: &[&str] = &[
    "LD_*",
    "DYLD_*",
    "GCONV_PATH",
    "LOCPATH",
    "NLSPATH",
    "GLIBC_TUNABLES",
    "MALLOC_*",
    "BASH_ENV",
    "ENV",
    "BASH_FUNC_*",
    "SHELLOPTS",
    "BASHOPTS",
    "PS4",
    "PROMPT_COMMAND",
    "IFS",
    "CDPATH",
    "ZDOTDIR",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NODE_REPL_EXTERNAL_MODULE",
    "PYTHONSTARTUP",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONINSPECT",
    "PYTHONBREAKPOINT",
    "PERL5OPT",
    "PERL5LIB",
    "PERL5DB",
    "PERLLIB",
    "RUBYOPT",
    "RUBYLIB",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "CLASSPATH",
    "LUA_INIT*",
    "LUA_PATH*",
    "LUA_CPATH*",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "CARGO_BUILD_RUSTC_WRAPPER",
    "CARGO_TARGET_*_RUNNER",
    "CARGO_TARGET_*_LINKER",
    "GIT_*",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "MANPAGER",
    "LESSOPEN",
    "LESSCLOSE",
    "BROWSER",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "npm_config_*",
    "NPM_CONFIG_*",
    "PIP_CONFIG_FILE",
    "GCC_EXEC_PREFIX",
    "COMPILER_PATH",
    "MAKEFLAGS",
    "TAR_OPTIONS",
    "CURL_HOME",
    "WGETRC",
    "PORTCULLIS_*",
];

/// Variables that lead to sockets and agents outside.
const LEADS_OUT: &[&str] = &[
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "SSH_CONNECTION",
    "SSH_CLIENT",
    "SSH_TTY",
    "GPG_AGENT_INFO",
    "GPG_TTY",
    "DBUS_*",
    "DOCKER_*",
    "CONTAINER_HOST",
    "KUBECONFIG",
    "KUBERNETES_*",
    "XDG_RUNTIME_DIR",
    "WAYLAND_*",
    "DISPLAY",
    "XAUTHORITY",
    "PULSE_SERVER",
    "PIPEWIRE_*",
    "TMUX",
    "TMUX_PANE",
    "STY",
    "NOTIFY_SOCKET",
    "LISTEN_*",
    "JOURNAL_STREAM",
    "INVOCATION_ID",
    "VSCODE_IPC_HOOK*",
    "VSCODE_GIT_*",
    "AT_SPI_*",
    "SESSION_MANAGER",
];

/// What of these tells a program at which kind of terminal it is; what it names is hidden or out of reach.
const TELLS_OF_THE_TERMINAL: &[&str] =
    &["SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY", "TMUX", "TMUX_PANE", "STY"];

/// Whole families of variables that belong to services with credentials.
const CREDENTIAL_FAMILIES: &[&str] =
    &["AWS_*", "AZURE_*", "GOOGLE_APPLICATION_CREDENTIALS", "VAULT_*", "PGPASS*", "NETRC", "HISTFILE"];

/// Words that make the name of a variable sound like a secret.
const SECRET_WORDS: &[&str] = &[
    "KEY",
    "APIKEY",
    "KEYS",
    "TOKEN",
    "TOKENS",
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASSWD",
    "PASS",
    "PASSPHRASE",
    "PWD",
    "CREDENTIAL",
    "CREDENTIALS",
    "CREDS",
    "COOKIE",
    "BEARER",
    "JWT",
    "AUTH",
    "AUTHORIZATION",
    "OAUTH",
    "WEBHOOK",
    "PAT",
    "PRIVATE",
    "DSN",
    "SIGNATURE",
    "OTP",
];

/// Names that sound like secrets and are none.
const HARMLESS: &[&str] = &["PWD", "OLDPWD"];

/// Beginnings of values that are secrets wherever they appear.
const SECRET_VALUES: &[&str] = &[
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "sk-",
    "sk_live_",
    "rk_live_",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "xoxs-",
    "AKIA",
    "ASIA",
    "AIza",
    "ya29.",
    "npm_",
    "pypi-",
    "dop_v1_",
    "hf_",
    "SG.",
    "eyJhbGci",
    "-----BEGIN",
];

/// Makes the environment of a command from the host's and the rules, in which the settings are.
///
/// A name that a rule drops is dropped, one that a rule keeps is kept; for the rest the host's own
/// lists decide, which say which of `inherited` are `harmless`. `given` is what the host adds of its own. `TMPDIR` leads
/// to the session's temporary directory.
#[must_use]
pub(crate) fn environment(
    inherited: Vec<(String, String)>,
    harmless: &[bool],
    given: &[(String, String)],
    rules: &RuleSet,
    temp: &str,
) -> Vec<(String, String)> {
    let kept = |((name, value), harmless): ((String, String), &bool)| {
        let is_kept = rules.environment(&name).map_or(*harmless, |effect| effect == Effect::Allow);
        is_kept.then_some((name, value))
    };
    let mut result: Vec<(String, String)> = inherited.into_iter().zip(harmless).filter_map(kept).collect();
    let may_be_given = |name: &str| rules.environment(name).is_none_or(|effect| effect == Effect::Allow);
    let given = given.iter().chain(rules.variables()).filter(|(name, _)| may_be_given(name)).cloned();
    for (name, value) in given.chain([("TMPDIR".to_owned(), temp.to_owned())]) {
        result.retain(|(known, _)| *known != name);
        result.push((name, value));
    }
    result
}

/// Makes the environment of the agent itself: the user's own, but for what leads to sockets and agents outside.
///
/// The agent needs its keys, and what loads code into it loads that into the sandbox.
#[must_use]
pub(crate) fn environment_of_agent(
    inherited: impl IntoIterator<Item = (String, String)>,
    temp: &str,
) -> Vec<(String, String)> {
    let tells = |name: &str| TELLS_OF_THE_TERMINAL.contains(&name) || !any_name_matches(LEADS_OUT, name);
    let kept = inherited.into_iter().filter(|(name, _)| name != "TMPDIR" && tells(name));
    kept.chain([("TMPDIR".to_owned(), temp.to_owned())]).collect()
}

/// Whether the host's own lists let a variable through.
pub(crate) fn is_harmless(name: &str, value: &str) -> bool {
    if HARMLESS.contains(&name) {
        return true;
    }
    let listed = [INJECTS, LEADS_OUT, CREDENTIAL_FAMILIES].iter().any(|list| any_name_matches(list, name));
    !listed && !sounds_secret(name) && !looks_secret(value)
}

fn sounds_secret(name: &str) -> bool {
    name.to_ascii_uppercase()
        .split(|character: char| !character.is_ascii_alphanumeric())
        .any(|word| SECRET_WORDS.iter().any(|secret| word == *secret || is_run_together(word, secret)))
}

/// `DBPASSWORD`, `MYTOKEN` and the like; short words would match too much (`MONKEY`).
fn is_run_together(word: &str, secret: &str) -> bool {
    secret.len() >= 5 && word.len() > secret.len() && (word.ends_with(secret) || word.starts_with(secret))
}

fn looks_secret(value: &str) -> bool {
    let begins = |text: &str| SECRET_VALUES.iter().any(|beginning| text.starts_with(beginning));
    // In the middle of other text only what is long enough to be one: `sk-learn` is none.
    let mut words =
        value.split(|character: char| character.is_whitespace() || "\"'=:,;@/&?".contains(character));
    begins(value) || words.any(|word| word.len() >= TOKEN_MIN && begins(word)) || has_password(value)
}

/// Shorter words in the middle of a value are no tokens.
const TOKEN_MIN: usize = 20;

/// Whether the value has a URL with a password in it, or with a user's name that is as long as a token.
fn has_password(value: &str) -> bool {
    value.split("://").skip(1).any(|rest| {
        let authority = rest.split(['/', '?', '#', ' ', ',']).next().unwrap_or_default();
        let user = authority.rsplit_once('@').map(|(user, _)| user);
        user.is_some_and(|user| user.contains(':') || user.len() >= TOKEN_MIN)
    })
}

fn any_name_matches(patterns: &[impl AsRef<str>], name: &str) -> bool {
    patterns.iter().any(|pattern| name_matches(pattern.as_ref(), name))
}

#[cfg(test)]
mod tests {
    use portcullis_decision::profile::EnvironmentRule;
    use portcullis_decision::{Base, Profile, RuleLayer};

    use super::*;

    fn rules(list: &[(&str, Effect)]) -> RuleSet {
        let environment = list
            .iter()
            .map(|(name, effect)| EnvironmentRule {
                id: "e".into(),
                name: (*name).into(),
                effect: *effect,
                reason: String::new(),
                setting: String::new(),
            })
            .collect();
        let variables = vec![("GIVEN".to_owned(), "1".to_owned()), ("NOT_GIVEN".to_owned(), "1".to_owned())];
        let profile = Profile { environment, variables, ..Profile::default() };
        RuleSet::compile(vec![RuleLayer { name: "p".into(), profile, tightens: false }], Base::default(), &[])
    }

    fn kept(name: &str, value: &str) -> bool {
        let inherited = vec![(name.into(), value.into())];
        let result = environment(inherited, &[is_harmless(name, value)], &[], &rules(&[]), "/tmp");
        result.iter().any(|(known, _)| known == name)
    }

    #[test]
    fn the_hosts_own_lists() {
        for name in [
            "HOME",
            "PATH",
            "LANG",
            "TERM",
            "PWD",
            "AI_AGENT",
            "PI_SESSION_ID",
            "CARGO_HOME",
            "KEYBOARD",
            "MONKEY",
            "COMPASS",
            "AUTHOR",
        ] {
            assert!(kept(name, "x"), "{name} is harmless");
        }
        for name in [
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "BASH_ENV",
            "NODE_OPTIONS",
            "GIT_DIR",
            "GIT_CONFIG_COUNT",
            "SSH_AUTH_SOCK",
            "DBUS_SESSION_BUS_ADDRESS",
            "DOCKER_HOST",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_PROFILE",
            "OPENAI_API_KEY",
            "GITHUB_TOKEN",
            "DB_PASSWORD",
            "HTTP_AUTHORIZATION",
            "SLACK_WEBHOOK",
            "NPM_OAUTH",
            "PGPASSWORD",
            "MYTOKEN",
            "my_secret",
            "XDG_RUNTIME_DIR",
            "PYTHONPATH",
            "BASH_FUNC_ls%%",
        ] {
            assert!(!kept(name, "x"), "{name} must go");
        }
    }

    #[test]
    fn values_that_look_like_secrets() {
        for value in ["ghp_abcdef", "sk-abc", "AKIAABC", "postgres://u:p@db/x", "eyJhbGciOi.x.y"] {
            assert!(!kept("SOMETHING", value), "{value}");
        }
        for value in [
            "Bearer ghp_0123456789abcdef0123",
            "https://ghp_0123456789abcdef0123@github.com/a/b",
            "https://0123456789abcdef01234567@pypi.example/simple",
            "http://proxy.example https://u:p@proxy.example",
            "--header=Authorization:sk-0123456789abcdef0123",
        ] {
            assert!(!kept("SOMETHING", value), "{value}");
        }
        for value in [
            "https://example.com/a:b@c",
            "https://me@example.com/x",
            "ssh://git@github.com/a/b",
            "a/sk-learn:/usr/npm_x",
        ] {
            assert!(kept("SOMETHING", value), "{value}");
        }
    }

    #[test]
    fn the_agent_keeps_its_keys_and_no_sockets() {
        let given = ["HOME", "ANTHROPIC_API_KEY", "SSH_AUTH_SOCK", "DOCKER_HOST", "TMUX", "TMPDIR"];
        let result = environment_of_agent(given.map(|name| (name.to_owned(), "x".to_owned())), "/tmp");
        let result: Vec<_> = result.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(result, [("HOME", "x"), ("ANTHROPIC_API_KEY", "x"), ("TMUX", "x"), ("TMPDIR", "/tmp")]);
    }

    #[test]
    fn rules_decide_before_the_lists() {
        let rules = rules(&[
            ("GITHUB_*", Effect::Allow),
            ("GITHUB_SECRET", Effect::Deny),
            ("NOT_GIVEN", Effect::Deny),
            ("LANG", Effect::Deny),
            ("HOME", Effect::Ask),
        ]);
        let inherited = ["LANG", "HOME", "GITHUB_TOKEN", "GITHUB_SECRET", "TMPDIR", "GIVEN"];
        let host = [("GIT_AUTHOR_NAME", "Me"), ("NOT_GIVEN", "x"), ("GIVEN", "0")];
        let host = host.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let harmless = inherited.map(|name| is_harmless(name, "x"));
        let inherited = inherited.map(|name| (name.to_owned(), "x".to_owned())).to_vec();
        let result = environment(inherited, &harmless, &host, &rules, "/tmp");
        let result: Vec<_> = result.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let expected = [("GITHUB_TOKEN", "x"), ("GIT_AUTHOR_NAME", "Me"), ("GIVEN", "1"), ("TMPDIR", "/tmp")];
        assert_eq!(result, expected);
    }
}
