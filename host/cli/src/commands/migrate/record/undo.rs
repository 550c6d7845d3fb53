//! Undoes one recorded change.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use portcullis_settings::{Disk as _, RealDisk, replace_file};
use portcullis_settings_format::Change;
use serde_json::Value;

use super::made::Made;
use crate::commands::take_over::project_file;

/// Undoes one change. Returns the reason if it cannot be undone.
pub(super) fn undo(
    made: &Made,
    remove: impl Fn(&Path) -> anyhow::Result<()>,
) -> anyhow::Result<Option<String>> {
    match made {
        Made::Wrote { file, project, copy, earlier, text, dropped } => {
            let now = RealDisk.read(file).ok();
            let is = |text: Option<&str>| now.as_deref() == text.map(str::as_bytes);
            if is(earlier.as_deref()) {
                // It was never written, or is undone already.
                forget(copy.as_deref(), earlier.as_deref());
                return Ok(None);
            }
            let restored = match (is(Some(text)), dropped, &now) {
                (true, ..) => earlier.clone(),
                (false, Some((list, value)), Some(now)) => put_in(now, list, value),
                _ => None,
            };
            if restored.is_none() && !is(Some(text)) {
                let why = match copy {
                    Some(copy) => format!("its earlier text is in `{}`", copy.display()),
                    None => "there was no such file before".to_owned(),
                };
                return Ok(Some(format!("`{}` has changed since, and stays: {why}", file.display())));
            }
            restore(file, project.as_deref(), restored.as_deref())
                .with_context(|| format!("putting `{}` back", file.display()))?;
            forget(copy.as_deref(), earlier.as_deref());
            Ok(None)
        }
        Made::Moved { from, to } => {
            if to.symlink_metadata().is_err() {
                let is_back = from.symlink_metadata().is_ok();
                return Ok((!is_back).then(|| format!("`{}` is gone", to.display())));
            }
            if from.symlink_metadata().is_ok() {
                return Ok(Some(format!(
                    "`{}` is there again; the earlier one is `{}`",
                    from.display(),
                    to.display()
                )));
            }
            fs::rename(to, from).with_context(|| format!("moving `{}` back", to.display()))?;
            Ok(None)
        }
        Made::Installed { place } => {
            if place.symlink_metadata().is_ok() {
                remove(place)?;
            }
            Ok(None)
        }
    }
}

/// Returns a text with an item added to a list again, or `None` if the text has no such list.
fn put_in(now: &[u8], list: &str, value: &Value) -> Option<String> {
    Change::Append(vec![list.to_owned()], value.clone()).apply(std::str::from_utf8(now).ok()?).ok()
}

fn restore(file: &Path, project: Option<&Path>, text: Option<&str>) -> anyhow::Result<()> {
    match (project, text) {
        (Some(project), text) => project_file::replace(project, file, text),
        (None, Some(text)) => Ok(replace_file(file, text.as_bytes())?),
        (None, None) => Ok(fs::remove_file(file)?),
    }
}

/// Removes a copy if it has the restored text.
fn forget(copy: Option<&Path>, earlier: Option<&str>) {
    let Some((copy, earlier)) = copy.zip(earlier) else { return };
    let is_plain = copy.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
    if is_plain && RealDisk.read(copy).is_ok_and(|bytes| bytes == earlier.as_bytes()) {
        // A copy that cannot be removed does no harm.
        let _stays = fs::remove_file(copy);
    }
}
