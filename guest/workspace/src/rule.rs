//! The ids of all rules, in one place: users rely on them.

use portcullis_sdk::Descriptor;

/// A path below the workspace that the settings do not name.
pub(crate) const WORKSPACE_UNLISTED: &str = "workspace.unlisted";
/// The workspace, readable.
pub(crate) const WORKSPACE_READ: &str = "workspace.read";
/// The workspace, readable and writable.
pub(crate) const WORKSPACE_WRITE: &str = "workspace.write";
/// The agent's own directory.
pub(crate) const AGENT_READ: &str = "agent.read";
/// Another entry of `allowRead`.
pub(crate) const ALLOWED_READ: &str = "allowed.read";
/// Another entry of `allowWrite`.
pub(crate) const ALLOWED_WRITE: &str = "allowed.write";
/// Programs and libraries of the system.
pub(crate) const PROGRAMS_READ: &str = "programs.read";
/// Toolchains.
pub(crate) const TOOLCHAINS_READ: &str = "toolchains.read";
/// The session's temporary directory.
pub(crate) const TEMP_WRITE: &str = "temp.write";
/// Files that run at the next login, if the project is the home directory.
pub(crate) const HOME_STARTUP: &str = "home.startup";
/// A malformed pattern; an accepted configuration has none.
pub(crate) const PATTERN_BROKEN: &str = "pattern.broken";
/// A command in the sandbox.
pub(crate) const COMMAND_BOXED: &str = "command.boxed";
/// A command that the user typed.
pub(crate) const COMMAND_USER: &str = "command.user";
/// A command outside the sandbox.
pub(crate) const ESCALATION: &str = "command.escalation";
/// A tool that the host cannot analyse further.
pub(crate) const TOOL_UNKNOWN: &str = "tool.unknown";
/// A host that the settings list.
pub(crate) const NETWORK_ALLOWED: &str = "network.allowed";
/// A host that the settings do not list.
pub(crate) const NETWORK_UNLISTED: &str = "network.unlisted";
/// A host that the settings do not list, with `strictAllowlist`.
pub(crate) const NETWORK_STRICT: &str = "network.strict";
/// A tool's output.
pub(crate) const OUTPUT_PASS: &str = "output.pass";

/// Every id with its title.
const TITLES: [(&str, &str); 19] = [
    (WORKSPACE_UNLISTED, "the workspace is not in the allow lists"),
    (WORKSPACE_READ, "the workspace may be read"),
    (WORKSPACE_WRITE, "the workspace may be changed"),
    (AGENT_READ, "the agent's own directory may be read"),
    (ALLOWED_READ, "the settings allow reading"),
    (ALLOWED_WRITE, "the settings allow writing"),
    (PROGRAMS_READ, "programs and libraries may be read and run"),
    (TOOLCHAINS_READ, "toolchains may be read and run"),
    (TEMP_WRITE, "the session's temporary directory may be used"),
    (HOME_STARTUP, "start-up files in the home directory ask"),
    (PATTERN_BROKEN, "a pattern cannot be read"),
    (COMMAND_BOXED, "commands run in the sandbox"),
    (COMMAND_USER, "the user's own commands run in the sandbox"),
    (ESCALATION, "commands outside the sandbox ask"),
    (TOOL_UNKNOWN, "tools of extensions and servers ask"),
    (NETWORK_ALLOWED, "the settings allow the host"),
    (NETWORK_UNLISTED, "other hosts ask"),
    (NETWORK_STRICT, "other hosts are refused"),
    (OUTPUT_PASS, "outputs pass"),
];

/// Adds every rule to the description of the policy.
pub(crate) fn describe(descriptor: Descriptor) -> Descriptor {
    TITLES.into_iter().fold(descriptor, |descriptor, (id, title)| descriptor.rule(id, title))
}
