//! Denies one file for reading and writing through standing rules, and has no opinion on anything else: replacing this
//! file changes what tools and commands may do, without a rebuild.

use portcullis_sdk::{ConfigError, Context, Descriptor, FilePattern, FileRights, FileRule, Policy, Profile};
use serde::Deserialize;

/// The file; by default `secret.txt` in the directory where the agent was started.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    #[serde(default = "secret")]
    path: String,
}

struct DenyOne {
    path: String,
}

impl Policy for DenyOne {
    type Config = Config;

    fn describe() -> Descriptor {
        Descriptor::new("test:deny-one", "0.1.0", "Denies one file").rule("one.denied", "One file is denied").config_schema(
            r#"{"type":"object","additionalProperties":false,"properties":{"path":{"type":"string","description":"Absolute, or relative to the directory the agent was started in."}}}"#,
        )
    }

    fn configure(config: Config) -> Result<Self, Vec<ConfigError>> {
        if config.path.is_empty() {
            return Err(vec![ConfigError::new("/path", "the path is empty; name a file")]);
        }
        Ok(Self { path: config.path })
    }

    fn standing(&self, context: &Context) -> Profile {
        let path = if self.path.starts_with('/') {
            self.path.clone()
        } else {
            format!("{}/{}", context.cwd(), self.path)
        };
        let rights = FileRights::READ_WRITE | FileRights::EXECUTE;
        let rule = FileRule::deny("one.denied", FilePattern::Exact(path), rights);
        Profile::new().file(rule.conceal().reason("this file is nobody's business"))
    }

    fn brief(&self, _context: &Context) -> String {
        format!("`{}` cannot be read or changed.", self.path)
    }
}

fn secret() -> String {
    "secret.txt".to_owned()
}

portcullis_sdk::export_policy!(DenyOne);
