//! The layered layout, in which later settings override earlier ones. Its files are those of `@sysid/pi-sandbox`.
//!
//! The layers are the built-in settings, the user's `extensions/sandbox.json` merged over them key by key, and the
//! user's entry for the project in `layered.json`, whose lists are added. They are merged into one document in which
//! each value records its file. The project's `.pi/sandbox.json` is not a layer of this kind: it only tightens, see
//! [`portcullis_settings_format::Tightening`] and [`crate::narrow`].

use std::path::Path;

use portcullis_settings_format::fault::invalid;
use portcullis_settings_format::json::Node;
use portcullis_settings_format::pointer::step;
use portcullis_settings_format::{ConfigError, Layer, Settings};

use crate::disk::Disk;
use crate::found::{Document, Source};
use crate::merge::{Lists, come_from, over};
use crate::places::Places;
use crate::settings_files::SettingsFiles;
use crate::{project_keys, settings_text};

/// The built-in settings of the layered layout: the defaults of `@sysid/pi-sandbox`, unchanged, with its policy.
pub const LAYERED_BUILT_IN: &str = r#"{
  "enabled": true,
  "network": {
    "allowedDomains": [
      "npmjs.org", "*.npmjs.org", "registry.npmjs.org",
      "registry.yarnpkg.com",
      "pypi.org", "*.pypi.org",
      "github.com", "*.github.com", "api.github.com",
      "raw.githubusercontent.com"
    ],
    "deniedDomains": []
  },
  "filesystem": {
    "denyRead": ["~/.ssh", "~/.aws", "~/.gnupg"],
    "allowWrite": [".", "/tmp"],
    "denyWrite": [".env", ".env.*", "*.pem", "*.key"]
  },
  "policies": [{ "use": "guard" }]
}
"#;

/// Reads the user's layers.
///
/// # Errors
/// When one of the files exists but cannot be used.
pub(crate) fn read(
    places: &Places,
    files: &SettingsFiles,
    disk: &dyn Disk,
) -> Result<(Document, Source), ConfigError> {
    let mut whole = built_in()?;
    if let Some(text) = settings_text::read(&files.default, disk)? {
        whole = over(&whole, part(&text, &files.default)?, Lists::Replaced, &files.default, "")?;
    }
    let mut key = None;
    if let Some(text) = settings_text::read(&files.entries, disk)? {
        let document =
            portcullis_settings_format::json::read(&text).map_err(|fault| invalid(&files.entries, fault))?;
        if let Some(member) = project_keys::entry_that_holds(&document, &files.entries, places, disk)? {
            let entry = member.node.clone();
            whole = over(&whole, entry, Lists::Added, &files.entries, &step("", &member.key))?;
            key = Some(member.key.clone());
        }
    }
    let document =
        Document { layer: Layer::User, file: files.default.clone(), pointer: String::new(), node: whole };
    Ok((document, Source::Layered { file: files.default.clone(), key }))
}

/// Decodes a file of partial settings, merged over the built-in ones.
pub(crate) fn alone(node: &Node, file: &Path, pointer: &str) -> Result<Settings, ConfigError> {
    let whole = over(&built_in()?, node.clone(), Lists::Replaced, file, pointer)?;
    Settings::from_node(&whole, file, "")
}

fn built_in() -> Result<Node, ConfigError> {
    let file = Path::new("<built in>");
    let mut node = part(LAYERED_BUILT_IN, file)?;
    come_from(&mut node, file, "");
    Ok(node)
}

fn part(text: &str, file: &Path) -> Result<Node, ConfigError> {
    portcullis_settings_format::json::read(text).map_err(|fault| invalid(file, fault))
}
