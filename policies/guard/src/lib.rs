//! Denials for secrets by place and by name, questions for the rest.
//!
//! Reading is allowed except in the directories of `denyRead`. Writing is denied for the names of `denyWrite`, allowed
//! in the directories of `allowWrite`, and asked about elsewhere. Hosts in no list are asked about. All of these are
//! rules, so they apply to tools and commands alike.

mod config;

use portcullis_sdk::{
    Action, ActionKinds, ConfigError, Context, Descriptor, Evaluation, FilePattern, FileRights, FileRule,
    NetworkPattern, NetworkRule, Policy, Profile, Request,
};

use config::{Config, Settings};

const DENY_READ: &str = "guard.deny-read";
const DENY_WRITE: &str = "guard.deny-write";
const READ: &str = "guard.read";
const ALLOW_WRITE: &str = "guard.allow-write";
const ASK_WRITE: &str = "guard.ask-write";
const HOST_ALLOWED: &str = "guard.allowed-domain";
const HOST_DENIED: &str = "guard.denied-domain";
const HOST_ASKED: &str = "guard.unlisted-domain";
const COMMAND: &str = "guard.command";

/// The policy, configured.
#[derive(Debug)]
pub struct Guard {
    settings: Settings,
}

impl Policy for Guard {
    type Config = Config;

    fn describe() -> Descriptor {
        Descriptor::new(
            "portcullis:guard",
            env!("CARGO_PKG_VERSION"),
            "Secrets are denied, everything else asks",
        )
        .rule(READ, "reading is free, or `allowRead` names this directory in a denied one")
        .rule(DENY_READ, "this directory may not be read")
        .rule(ASK_WRITE, "writing elsewhere asks")
        .rule(ALLOW_WRITE, "this directory may be changed")
        .rule(DENY_WRITE, "files of this name may not be written")
        .rule(HOST_ASKED, "hosts that no list names ask")
        .rule(HOST_ALLOWED, "the list of allowed domains names the host")
        .rule(HOST_DENIED, "the list of denied domains names the host")
        .rule(COMMAND, "commands run in the sandbox")
        .handles(ActionKinds::COMMAND)
        .config_schema(include_str!("../config.schema.json"))
    }

    fn configure(config: Config) -> Result<Self, Vec<ConfigError>> {
        Settings::read(config).map(|settings| Self { settings })
    }

    fn evaluate(&self, request: &Request, _context: &Context) -> Evaluation {
        match &request.action {
            Action::Command(_) => {
                Evaluation::allow(COMMAND, "it runs in the sandbox, under the rules on files and hosts")
            }
            Action::File(_)
            | Action::Network(_)
            | Action::Socket(_)
            | Action::Tool(_)
            | Action::Escalation(_)
            | Action::Other(_) => Evaluation::abstain(),
        }
    }

    fn standing(&self, context: &Context) -> Profile {
        Profile { files: self.files(context), network: self.hosts(), ..Profile::new() }
    }

    fn brief(&self, context: &Context) -> String {
        let list = |entries: &[String]| entries.join(", ");
        format!(
            "Files can be read, but not in {}. Files can be changed in {}; elsewhere the user is asked. Files named \
             {} cannot be written anywhere. You work in `{}`.",
            list(&self.settings.deny_read),
            list(&self.settings.allow_write),
            list(&self.settings.deny_write),
            context.cwd(),
        )
    }
}

impl Guard {
    /// Returns the rules on files; a later one takes precedence.
    fn files(&self, context: &Context) -> Vec<FileRule> {
        let mut rules = self.outside_denials("/", context);
        for (denied, denial) in self.denials(context) {
            rules.push(denial);
            let opened = self.settings.allow_read.iter().filter_map(|entry| context.absolute(entry));
            for top in opened.filter(|path| is_inside(path, &denied)) {
                rules.extend(self.outside_denials(&top, context));
            }
        }
        rules
    }

    /// The rules below `top` where `denyRead` names nothing.
    fn outside_denials(&self, top: &str, context: &Context) -> Vec<FileRule> {
        let below = |path: String| {
            if path == top || is_inside(&path, top) {
                Some(path)
            } else {
                is_inside(top, &path).then(|| top.to_owned())
            }
        };
        let mut rules = vec![
            FileRule::allow(READ, FilePattern::tree(top), FileRights::READ | FileRights::EXECUTE)
                .reason("reading is free"),
            FileRule::ask(ASK_WRITE, FilePattern::tree(top), FileRights::WRITE)
                .reason("`allowWrite` does not name this place"),
        ];
        // The session's temporary directory may differ from its usual name.
        if self.settings.allow_write.iter().any(|entry| entry == "/tmp") && !context.machine.temp.is_empty() {
            let temp = below(context.machine.temp.clone()).map(FilePattern::tree);
            rules.extend(temp.map(|temp| {
                FileRule::allow(ALLOW_WRITE, temp, FileRights::READ_WRITE).reason("`allowWrite` names it")
            }));
        }
        rules.extend(self.settings.allow_write.iter().enumerate().filter_map(|(index, entry)| {
            let pattern = FilePattern::tree(below(context.absolute(entry)?)?);
            let rule = FileRule::allow(ALLOW_WRITE, pattern, FileRights::READ_WRITE | FileRights::EXECUTE);
            Some(rule.reason("`allowWrite` names it").setting(format!("/filesystem/allowWrite/{index}")))
        }));
        rules.extend(self.settings.deny_write.iter().enumerate().map(|(index, glob)| {
            FileRule::deny(DENY_WRITE, FilePattern::name(top, glob.as_str()), FileRights::WRITE)
                .reason("`denyWrite` names files like this one")
                .setting(format!("/filesystem/denyWrite/{index}"))
        }));
        rules
    }

    /// The denied directories with their rules, outer directories first.
    fn denials(&self, context: &Context) -> Vec<(String, FileRule)> {
        let denial = |(index, entry): (usize, &String)| {
            let path = context.absolute(entry)?;
            let rights = FileRights::READ_WRITE | FileRights::EXECUTE;
            let rule = FileRule::deny(DENY_READ, FilePattern::tree(&path), rights).conceal();
            let rule = rule.reason("`denyRead` names it").setting(format!("/filesystem/denyRead/{index}"));
            Some((path, rule))
        };
        let mut denials: Vec<_> = self.settings.deny_read.iter().enumerate().filter_map(denial).collect();
        denials.sort_by_key(|(path, _)| path.matches('/').count());
        denials
    }

    fn hosts(&self) -> Vec<NetworkRule> {
        let rest =
            NetworkRule::ask(HOST_ASKED, NetworkPattern::everything()).reason("no list names this host");
        let allowed = self.settings.allowed_domains.iter().enumerate().map(|(index, target)| {
            NetworkRule::allow(HOST_ALLOWED, target.clone())
                .reason("`allowedDomains` names it")
                .setting(format!("/network/allowedDomains/{index}"))
        });
        let denied = self.settings.denied_domains.iter().enumerate().map(|(index, target)| {
            NetworkRule::deny(HOST_DENIED, target.clone())
                .reason("`deniedDomains` names it")
                .setting(format!("/network/deniedDomains/{index}"))
        });
        std::iter::once(rest).chain(allowed).chain(denied).collect()
    }
}

/// Returns true if `path` lies below `directory`, and is not the directory itself.
fn is_inside(path: &str, directory: &str) -> bool {
    let rest = path.strip_prefix(directory.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.len() > 1 && rest.starts_with('/'))
}

portcullis_sdk::export_policy!(Guard);
