//! The rules on files.

use portcullis_sdk::{Context, FilePattern, FileRights, FileRule};

use crate::config::{Entry, Settings};
use crate::rule;

/// Directories in which systems keep programs and libraries.
const PROGRAMS: [&str; 9] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix"];

/// Files below a home directory that run at the next login or with the next shell.
const STARTUP_FILES: [&str; 22] = [
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".xprofile",
    ".xsession",
    ".xsessionrc",
    ".xinitrc",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".inputrc",
    ".pam_environment",
    ".gitconfig",
    ".tmux.conf",
    ".vimrc",
    ".npmrc",
];

/// The same for directories; those in PATH are added.
const STARTUP_DIRECTORIES: [&str; 11] = [
    ".bashrc.d",
    ".config/autostart",
    ".config/environment.d",
    ".config/fish",
    ".config/git",
    ".config/nvim",
    ".config/systemd",
    ".local/bin",
    ".local/share/systemd",
    ".vim",
    "bin",
];

/// Returns the rules; a later one takes precedence.
pub(crate) fn rules(settings: &Settings, context: &Context) -> Vec<FileRule> {
    let home = context.machine.home.as_str();
    let (broad, narrow): (Vec<_>, Vec<_>) =
        entry_rules(settings, context).partition(|rule| covers(&rule.pattern, home));
    let mut rules = places(settings, context);
    rules.extend(broad);
    // Entries narrower than the home directory name exactly that path, so they take precedence over the question about
    // startup files.
    rules.extend(startup(context));
    rules.extend(narrow);
    rules
}

/// Returns the rules that are independent of the lists.
fn places(settings: &Settings, context: &Context) -> Vec<FileRule> {
    let run = FileRights::READ | FileRights::EXECUTE;
    let unlisted = context.workspace.roots.iter().map(|root| {
        FileRule::ask(rule::WORKSPACE_UNLISTED, FilePattern::tree(root), FileRights::READ_WRITE)
            .reason("the settings do not name this part of the workspace")
    });
    let programs = PROGRAMS.into_iter().map(|top| {
        FileRule::allow(rule::PROGRAMS_READ, FilePattern::tree(top), run)
            .reason("programs and libraries of the system may be read")
    });
    let toolchains = toolchains(settings, context).into_iter().map(|Entry { value, setting }| {
        FileRule::allow(rule::TOOLCHAINS_READ, FilePattern::Tree(value), run)
            .reason("toolchains that PATH leads to may be read")
            .setting(setting)
    });
    let temp = std::iter::once(context.machine.temp.as_str()).filter(|temp| !temp.is_empty()).map(|temp| {
        FileRule::allow(
            rule::TEMP_WRITE,
            FilePattern::tree(temp),
            FileRights::READ_WRITE | FileRights::EXECUTE,
        )
        .reason("the temporary directory belongs to this session alone")
    });
    unlisted.chain(programs).chain(toolchains).chain(temp).collect()
}

fn toolchains(settings: &Settings, context: &Context) -> Vec<Entry<String>> {
    settings.toolchains.clone().unwrap_or_else(|| {
        let found = context.machine.toolchains.iter().cloned();
        found.map(|value| Entry { value, setting: String::new() }).collect()
    })
}

/// Returns the rules of the two lists. Writable paths are readable.
fn entry_rules<'a>(settings: &'a Settings, context: &'a Context) -> impl Iterator<Item = FileRule> + 'a {
    let read = settings.allow_read.iter().map(|entry| {
        let (id, reason) = read_rule(&entry.value, context);
        (id, reason, entry, FileRights::READ | FileRights::EXECUTE)
    });
    let write = settings.allow_write.iter().map(|entry| {
        let (id, reason) = write_rule(&entry.value, context);
        (id, reason, entry, FileRights::READ_WRITE | FileRights::EXECUTE)
    });
    read.chain(write).map(|(id, reason, entry, rights)| {
        FileRule::allow(id, entry.value.clone(), rights).reason(reason).setting(entry.setting.as_str())
    })
}

fn read_rule(pattern: &FilePattern, context: &Context) -> (&'static str, &'static str) {
    if is_root(pattern, context) {
        (rule::WORKSPACE_READ, "the workspace may be read")
    } else if covers(pattern, &context.agent.directory) && !covers(pattern, &context.machine.home) {
        (rule::AGENT_READ, "the agent may read its own directory")
    } else {
        (rule::ALLOWED_READ, "`allowRead` in the settings names it")
    }
}

fn write_rule(pattern: &FilePattern, context: &Context) -> (&'static str, &'static str) {
    if is_root(pattern, context) {
        (rule::WORKSPACE_WRITE, "the workspace may be changed")
    } else {
        (rule::ALLOWED_WRITE, "`allowWrite` in the settings names it")
    }
}

fn is_root(pattern: &FilePattern, context: &Context) -> bool {
    matches!(pattern, FilePattern::Tree(top) if context.workspace.roots.iter().any(|root| root == top))
}

/// Returns true if the pattern covers a directory as a whole.
fn covers(pattern: &FilePattern, directory: &str) -> bool {
    matches!(pattern, FilePattern::Tree(_)) && !directory.is_empty() && pattern.matches(directory) == Ok(true)
}

/// Returns the rules for a project that is the home directory: dotfiles can be edited, and those that other programs
/// run require a question.
fn startup(context: &Context) -> Vec<FileRule> {
    let home = context.machine.home.trim_end_matches('/');
    let whole_home = FilePattern::tree(home);
    let is_project = context.workspace.roots.iter().any(|root| covers(&FilePattern::tree(root), home));
    if home.is_empty() || !is_project {
        return Vec::new();
    }
    let files = STARTUP_FILES.into_iter().map(|name| FilePattern::exact(format!("{home}/{name}")));
    let directories = STARTUP_DIRECTORIES.into_iter().map(|name| format!("{home}/{name}"));
    let path = context.machine.path.iter().filter(|directory| {
        whole_home.matches(directory) == Ok(true) && directory.trim_end_matches('/') != home
    });
    let directories = directories.chain(path.cloned()).map(FilePattern::Tree);
    let ask = |pattern| {
        FileRule::ask(rule::HOME_STARTUP, pattern, FileRights::WRITE)
            .reason("other programs run what stands there, outside the sandbox")
    };
    files.chain(directories).map(ask).collect()
}
