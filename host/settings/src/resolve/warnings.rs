//! Warnings about settings without the effect that they seem to have.

use portcullis_decision::pattern::FilePattern;
use portcullis_settings_format::error::shown;
use portcullis_settings_format::{ConfigError, Layout, Origin, Position, Warning};

use crate::found::FoundSettings;
use crate::imports;
use crate::old_settings::OldFile;
use crate::pattern::PathContext;
use crate::places::Places;
use crate::resolved::Resolved;
use crate::rule::Rule;

/// Returns the settings without the entries that have no effect on the current disk, and a warning for each of these.
pub(super) fn without_useless(
    found: &FoundSettings,
    around: &PathContext<'_>,
) -> (FoundSettings, Vec<Warning>) {
    let (mut found, mut warnings) = (found.clone(), Vec::new());
    let filesystem = &mut found.settings.filesystem;
    let narrowing = found.layers.iter_mut().map(|layer| &mut layer.narrowing);
    let narrowing = narrowing.flat_map(|lists| [&mut lists.read, &mut lists.write]).flatten();
    for list in [&mut filesystem.allow_read, &mut filesystem.allow_write].into_iter().chain(narrowing) {
        list.retain(|entry| {
            let why = around.opens_nothing(entry);
            warnings.extend(why.map(|why| Warning {
                text: format!("`{}` opens nothing: {why}; see what its links lead to", shown(&entry.text)),
                origin: entry.origin.clone(),
            }));
            why.is_none()
        });
    }
    for entry in &found.settings.filesystem.allow_write {
        let why = around.gives_no_device(entry);
        warnings.extend(why.map(|why| Warning {
            text: format!("`{}` opens nothing: {why}", shown(&entry.text)),
            origin: entry.origin.clone(),
        }));
    }
    (found, warnings)
}

/// Returns the warnings about resolved settings.
pub(super) fn warnings(
    found: &FoundSettings,
    resolved: &Resolved,
    places: &Places,
    around: &PathContext<'_>,
) -> Result<Vec<Warning>, ConfigError> {
    let filesystem = &found.settings.filesystem;
    let mut warnings = Vec::new();
    let projects = places.projects_file();
    if found.files.layout == Layout::Layered && around.disk.look(&projects).is_ok() {
        let text = "it does not hold: `default.json` chooses the layered layout".to_owned();
        let at = Position { line: 1, column: 1 };
        warnings.push(Warning { text, origin: Origin { file: projects, pointer: String::new(), at } });
    }
    warnings.extend(found.old.iter().map(OldFile::warning));
    warnings.extend(imports::changed(places, around.disk));
    for entry in filesystem.deny_read.iter().chain(&filesystem.deny_write) {
        let written = &entry.value;
        if !written.literal && !written.text.contains('/') && written.text.contains(['*', '?']) {
            let name = shown(&entry.text);
            let text =
                format!("`{name}` holds in the working directory only, write `**/{name}` for every depth");
            warnings.push(Warning { text, origin: entry.origin.clone() });
        }
    }
    let lists = [&filesystem.allow_read, &filesystem.allow_write, &found.settings.network.unix_sockets];
    for entry in lists.into_iter().flatten().chain(crate::stored_grants::paths(&found.settings.grants)) {
        if let Some(strayed) = around.resolve_to_open(entry)?.strayed {
            let text = format!(
                "`{}` opens nothing: `{}` is a link that commands can have made, and leads to `{}`; remove the link, \
                 or name what is to be opened",
                shown(&entry.text),
                shown(&strayed.link.to_string_lossy()),
                shown(&strayed.target.to_string_lossy())
            );
            warnings.push(Warning { text, origin: entry.origin.clone() });
        }
    }
    // A default that the user denies is no mistake.
    for entry in filesystem.allow_write.iter().filter(|entry| !entry.origin.is_built_in()) {
        let path = around.resolve_to_open(entry)?.base;
        let covers =
            |rule: &&Rule| matches!(&rule.pattern, FilePattern::Tree(tree) if path.starts_with(tree));
        if let Some(rule) = resolved.deny_write().find(covers) {
            let text = format!("`{}` stays denied by the rule `{}`", shown(&entry.text), rule.id);
            warnings.push(Warning { text, origin: entry.origin.clone() });
        }
    }
    Ok(warnings)
}
