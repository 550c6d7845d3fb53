//! Reads what a person names to allow or deny it, and adds what is allowed for one session to the settings.

use std::path::{Path, PathBuf};

use portcullis_decision::pattern::{HostPattern, NetworkPattern};
use portcullis_decision::profile::FileRights;
use portcullis_settings_format::error::shown;
use portcullis_settings_format::field_lookup::nearest;
use portcullis_settings_format::{Entry, GrantEntry, GrantResource, Origin, PathEntry, Position};

use crate::allow_item::AllowItem;
use crate::disk::Disk;
use crate::found::FoundSettings;
use crate::places::Places;
use crate::presets::{is_preset_name, preset, shipped_presets};

/// Why a text names nothing.
#[derive(Debug, thiserror::Error)]
#[error("`{}` {why}", shown(text))]
pub struct AllowItemError {
    text: String,
    why: String,
}

/// Reads what a person has typed: a path begins with `/`, `~` or `.`, a host has a dot or a port, and all else is a
/// preset.
///
/// # Errors
/// When there is no such preset or path, the preset cannot be used, or the host is none, or all.
pub fn allow_item(
    text: &str,
    cwd: &Path,
    places: &Places,
    disk: &dyn Disk,
) -> Result<AllowItem, AllowItemError> {
    let bad = |why: String| AllowItemError { text: text.to_owned(), why };
    let is_path = text.starts_with(['/', '.']) || text == "~" || text.starts_with("~/");
    if is_path {
        let path = match text.strip_prefix('~') {
            Some(rest) => places.home.join(rest.trim_start_matches('/')),
            None => cwd.join(text),
        };
        let canonical = path.canonicalize().map_err(|error| bad(format!("cannot be found: {error}")))?;
        let is_all = canonical == Path::new("/");
        return if is_all { Err(bad("is all files".to_owned())) } else { Ok(AllowItem::Path(canonical)) };
    }
    if is_preset_name(text) {
        return match preset(text, places, disk) {
            Ok(Some(_)) => Ok(AllowItem::Preset(text.to_owned())),
            Ok(None) => {
                let near = nearest(text, shipped_presets());
                let near = near.map(|near| format!(", is it `{near}`?")).unwrap_or_default();
                Err(bad(format!(
                    "is no preset{near} (`portcullis presets` lists them); a host is written `host.example:443`, and a \
                     path begins with `/`, `~/` or `./`"
                )))
            }
            Err(error) => Err(bad(format!("cannot be used: {error}"))),
        };
    }
    if let Some((_, rest)) = text.split_once("://") {
        let host = rest.split('/').next().unwrap_or_default();
        return Err(bad(format!("is the address of a page: name its host, `{host}`")));
    }
    match NetworkPattern::parse(text) {
        Ok(pattern) if matches!(pattern.host, HostPattern::Any) => Err(bad("is every host".to_owned())),
        Ok(pattern) => Ok(AllowItem::Host(pattern)),
        Err(error) => Err(bad(format!("names no preset, host or path: {error}"))),
    }
}

/// Adds what is allowed for one session alone to the settings, as if the user had answered so.
pub(crate) fn apply(found: &mut FoundSettings, items: &[AllowItem]) {
    for (index, item) in items.iter().enumerate() {
        let file = PathBuf::from("<--allow>");
        let origin = Origin { file: file.clone(), pointer: format!("/{index}"), at: Position::default() };
        let what = match item {
            AllowItem::Preset(name) => {
                found.settings.presets.push(Entry { value: name.clone(), text: name.clone(), origin });
                continue;
            }
            AllowItem::Host(pattern) => {
                // Only an entry of the list counts with `strictAllowlist`, and only an answer counts where no policy
                // asks the lists.
                let entry = Entry { value: pattern.clone(), text: pattern.to_string(), origin };
                found.settings.network.allowed_domains.push(entry);
                GrantResource::Connect(pattern.clone())
            }
            AllowItem::Path(path) => {
                let text = path.to_string_lossy().into_owned();
                let value = PathEntry { text: text.clone(), literal: true };
                let entry = Box::new(Entry { value, text, origin });
                GrantResource::Path { entry, exact: !path.is_dir(), rights: FileRights::READ }
            }
        };
        found.settings.grants.push(GrantEntry { what, file, granted_at: 0, expires_at: 0 });
    }
}
