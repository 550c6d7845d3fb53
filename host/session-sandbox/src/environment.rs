//! The environment of commands.
//!
//! It has the inherited variables without those that inject code, hold credentials, or lead to sockets outside the
//! sandbox.

use portcullis_decision::pattern::name_matches;
use portcullis_decision::{Effect, RuleSet};
use portcullis_text::secrets::{Sign, sign_of_credential};

/// Variables from which programs load code or settings.
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

/// Variables that name sockets and agents outside the sandbox.
const LEADS_OUT: &[&str] = &[
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "SSH_CONNECTION",
    "SSH_CLIENT",
    "GPG_AGENT_INFO",
    "DBUS_*",
    "DOCKER_*",
    "CONTAINER_HOST",
    "KUBECONFIG",
    "KUBERNETES_*",
    RUNTIME,
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

/// The variable that names the directory for sockets of the user's programs.
const RUNTIME: &str = "XDG_RUNTIME_DIR";

/// Those of [`LEADS_OUT`] that only describe the terminal; the paths in them are hidden or unreachable.
const TELLS_OF_THE_TERMINAL: &[&str] = &["SSH_CONNECTION", "SSH_CLIENT", "TMUX", "TMUX_PANE", "STY"];

/// Families of variables of services with credentials, or that name credential files.
const CREDENTIAL_FAMILIES: &[&str] = &[
    "AWS_*",
    "AZURE_*",
    "BW_*",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "HISTFILE",
    "KRB5*",
    "NETRC",
    "OP_SESSION*",
    "PGPASS*",
    "VAULT_*",
];

/// The variable that tells commands that they run in a sandbox of Portcullis; its value is 1.
pub const SANDBOX_VARIABLE: &str = "PORTCULLIS_SANDBOX";

/// Builds the environment of a command from the host's environment and the rules, which include the settings.
///
/// A variable that a rule drops is dropped, and one that a rule keeps is kept. For all others the host's own lists
/// decide: `harmless` holds their verdict for each of `inherited`. `given` holds variables that the host adds. `TMPDIR`
/// is set to the session's temporary directory, and `XDG_RUNTIME_DIR` to its `runtime` directory.
#[must_use]
pub fn environment(
    inherited: Vec<(String, String)>,
    harmless: &[bool],
    given: &[(String, String)],
    rules: &RuleSet,
    (temp, runtime): (&str, Option<&str>),
) -> Vec<(String, String)> {
    let kept = |((name, value), harmless): ((String, String), &bool)| {
        let is_kept = rules.environment(&name).map_or(*harmless, |effect| effect == Effect::Allow);
        is_kept.then_some((name, value))
    };
    let mut result: Vec<(String, String)> = inherited.into_iter().zip(harmless).filter_map(kept).collect();
    let may_be_given = |name: &str| rules.environment(name).is_none_or(|effect| effect == Effect::Allow);
    let runtime = runtime.map(|runtime| (RUNTIME.to_owned(), runtime.to_owned()));
    let given = runtime.iter().chain(given).chain(rules.variables());
    let given = given.filter(|(name, _)| may_be_given(name)).cloned();
    for (name, value) in given.chain([("TMPDIR".to_owned(), temp.to_owned())]) {
        result.retain(|(known, _)| *known != name);
        result.push((name, value));
    }
    result
}

/// Builds the environment of the agent itself.
///
/// It is the user's own, without variables that name sockets and agents outside the sandbox.
///
/// The agent needs its API keys. Code that a variable loads into it runs inside the sandbox.
#[must_use]
pub fn environment_of_agent(
    inherited: impl IntoIterator<Item = (String, String)>,
    temp: &str,
) -> Vec<(String, String)> {
    let tells = |name: &str| TELLS_OF_THE_TERMINAL.contains(&name) || !any_name_matches(LEADS_OUT, name);
    let kept = inherited.into_iter().filter(|(name, _)| name != "TMPDIR" && tells(name));
    kept.chain([("TMPDIR".to_owned(), temp.to_owned())]).collect()
}

/// Why the host does not pass a variable to commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Withheld {
    /// Programs load code or settings through it.
    Injects,
    /// It names a socket or an agent outside the sandbox.
    LeadsOut,
    /// Its name is that of a credential.
    CredentialName,
    /// Its value is or contains a credential.
    CredentialValue,
}

/// Returns why the host does not pass a variable to commands if no rule applies, or `None` for an ordinary one.
#[must_use]
pub fn withheld(name: &str, value: &str) -> Option<Withheld> {
    if any_name_matches(INJECTS, name) {
        return Some(Withheld::Injects);
    }
    if any_name_matches(LEADS_OUT, name) {
        return Some(Withheld::LeadsOut);
    }
    if any_name_matches(CREDENTIAL_FAMILIES, name) {
        return Some(Withheld::CredentialName);
    }
    sign_of_credential(name, value).map(|sign| match sign {
        Sign::Name => Withheld::CredentialName,
        Sign::Value => Withheld::CredentialValue,
    })
}

/// Why commands do not get an inherited variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptBack {
    /// A rule of the settings or of a policy drops it.
    ByRule,
    /// The host drops it, and no rule keeps it.
    ByHost(Withheld),
}

/// Returns the names of the variables that commands do not get, with the reasons.
#[must_use]
pub fn kept_back<'a>(inherited: &'a [(String, String)], rules: &RuleSet) -> Vec<(&'a str, KeptBack)> {
    let reason = |name: &str, value: &str| match rules.environment(name) {
        Some(Effect::Allow) => None,
        Some(Effect::Ask | Effect::Deny) => Some(KeptBack::ByRule),
        None => withheld(name, value).map(KeptBack::ByHost),
    };
    let named = |(name, value): &'a (String, String)| Some((name.as_str(), reason(name, value)?));
    inherited.iter().filter_map(named).collect()
}

fn any_name_matches(patterns: &[impl AsRef<str>], name: &str) -> bool {
    patterns.iter().any(|pattern| name_matches(pattern.as_ref(), name))
}

#[cfg(test)]
mod tests;
