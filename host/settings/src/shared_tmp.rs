//! `filesystem.tmp`: the machine's `/tmp` in place of the session's own.
//!
//! Programs keep sockets and private files there, which lead out of the sandbox or are secret. So what only its owner
//! can read is denied, as are sockets and the directories of X servers. This is decided when settings are read: what
//! appears later is open, and a warning says so.

use std::path::{Path, PathBuf};

use portcullis_decision::pattern::FilePattern;
use portcullis_decision::profile::FileRights;
use portcullis_decision::verdict::Effect;
use portcullis_settings_format::{ConfigError, Entry, Layer, Origin, PathEntry, Settings, Warning};

use crate::disk::{Disk, DiskEntry};
use crate::places::Places;
use crate::rule::Rule;

/// The machine's directory for temporary files.
const TMP: &str = "/tmp";
/// The session's own directory for temporary files if `/tmp` is the machine's.
const OWN: &str = "/var/tmp";
/// Directories of display servers, whose sockets control the user's screen and keyboard.
const DISPLAYS: [&str; 5] = [".X11-unix", ".ICE-unix", ".XIM-unix", ".font-unix", ".Test-unix"];

/// The id of the rules on private entries.
const RULE: &str = "host.private-tmp";

/// Shares `/tmp` if the settings say so: it becomes an allowed path, and the session's own directory is another one.
/// Returns a warning that says what this means, or why it is not shared.
pub(crate) fn apply(
    settings: &mut Settings,
    places: &mut Places,
    workspace: &Path,
    homes: &[PathBuf],
) -> Option<Warning> {
    let origin = settings.filesystem.shared_tmp.clone()?;
    if places.keeps_tmp {
        return None;
    }
    if homes.iter().any(|home| home.starts_with(OWN)) || workspace.starts_with(OWN) {
        let text = format!("`{TMP}` is not shared, since the project or your home directory lies in `{OWN}`");
        return Some(Warning { text, origin });
    }
    places.temp = PathBuf::from(OWN);
    let value = PathEntry { text: TMP.to_owned(), literal: false };
    settings.filesystem.allow_write.push(Entry { value, text: TMP.to_owned(), origin: origin.clone() });
    let text = format!(
        "`{TMP}` is this machine's: commands and tools reach what your other programs keep there. Sockets and private \
         entries are closed if they are there when a session begins; those that appear later are open, also to \
         programs behind sockets (ssh-agent, tmux, editors), which act with your rights"
    );
    Some(Warning { text, origin })
}

/// Returns true if `/tmp` is shared.
pub(crate) fn is_shared(settings: &Settings, places: &Places) -> bool {
    settings.filesystem.shared_tmp.is_some() && places.temp == Path::new(OWN)
}

/// Returns the rules on private entries of `/tmp`. An entry that holds one of the `opened` paths is left to those.
pub(crate) fn rules(
    opened: &[&Path],
    origin: Option<&Origin>,
    disk: &dyn Disk,
) -> Result<Vec<Rule>, ConfigError> {
    let top = Path::new(TMP);
    let unread = |source| ConfigError::Path { path: top.to_owned(), source };
    let names = disk.names(top).map_err(unread)?;
    let displays = DISPLAYS.iter().map(|name| top.join(name));
    let entries = names.into_iter().map(|name| top.join(name));
    let private = entries.filter(|path| {
        // A link is what it leads to, which has its own place.
        !matches!(disk.look(path), Ok(DiskEntry::Link(_))) && disk.is_private(path)
    });
    let mut paths: Vec<PathBuf> = displays.chain(private).collect();
    paths.sort();
    paths.dedup();
    paths.retain(|path| !opened.iter().any(|opened| opened.starts_with(path)));
    let rule = |path: PathBuf| Rule {
        layer: Layer::Host,
        id: RULE.to_owned(),
        pattern: FilePattern::Tree(path),
        rights: FileRights::ALL,
        effect: Effect::Deny,
        reason: "it is a socket or a private entry of another program in the shared `/tmp`".to_owned(),
        origin: origin.cloned(),
    };
    Ok(paths.into_iter().map(rule).collect())
}
