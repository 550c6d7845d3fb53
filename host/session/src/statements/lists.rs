//! The places and names of one right, sorted by availability.

use std::path::{Path, PathBuf};

use portcullis_decision::pattern::FilePattern;
use portcullis_decision::profile::FileRight;
use portcullis_decision::rules::{Availability, FileFacts, HIDDEN_BY_DEFAULT, PlaceFact};
use portcullis_decision::{Base, Caller};
use portcullis_settings_format::Layer;
use portcullis_text::escape;
use serde_json::{Value, json};

/// Directories that contain only programs, libraries and their data.
const PROGRAMS: [&str; 10] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/libexec", "/opt", "/nix"];

/// Context for naming places.
#[derive(Debug, Clone, Copy)]
pub(super) struct Names<'a> {
    /// The user's home directories; `~` is the first.
    pub(super) homes: &'a [PathBuf],
    /// The base rules, which decide if no other rule matches.
    pub(super) base: &'a Base,
    /// Whether the sandbox has its own directory in place of the usual temporary one. Else it is only in `$TMPDIR`.
    pub(super) has_mounts: bool,
}

impl<'a> Names<'a> {
    /// Names each place by its full path.
    pub(super) fn plain(base: &'a Base) -> Self {
        Self { homes: &[], base, has_mounts: true }
    }

    /// Returns the name of a place in a sentence.
    pub(super) fn place(&self, path: &Path) -> String {
        if !self.has_mounts && path == self.base.temp {
            return "$TMPDIR".to_owned();
        }
        let home = self.homes.first().filter(|home| home.as_path() != Path::new("/"));
        let below = home.and_then(|home| path.strip_prefix(home).ok());
        escape(&match below {
            Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
            Some(rest) => format!("~/{}", rest.to_string_lossy()),
            None => path.to_string_lossy().into_owned(),
        })
    }

    fn pattern(&self, pattern: &FilePattern) -> String {
        match pattern {
            FilePattern::Exact(path) | FilePattern::Tree(path) => self.place(path),
            FilePattern::Glob(glob) => {
                let below = self.base.workspace.iter();
                let mut below =
                    below.filter_map(|top| Some((top, Path::new(glob.as_str()).strip_prefix(top).ok()?)));
                match below.next() {
                    Some((top, rest)) => {
                        format!("`{}` in {}", escape(&rest.to_string_lossy()), self.place(top))
                    }
                    None => format!("`{}`", escape(glob.as_str())),
                }
            }
            FilePattern::Name { below, glob } if below == Path::new("/") => {
                format!("`{}`", escape(glob.as_str()))
            }
            FilePattern::Name { below, glob } => {
                format!("`{}` in {}", escape(glob.as_str()), self.place(below))
            }
        }
    }
}

/// All places and names to mention, by availability.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Items {
    pub(super) free: Vec<String>,
    pub(super) asked: Vec<String>,
    /// Closed regions: an invisible path there is a question if a command names it.
    pub(super) named: Vec<String>,
    pub(super) hidden: Vec<String>,
    pub(super) denied: Vec<String>,
    /// Whether the host's own protections close a place.
    pub(super) is_protected: bool,
}

/// The item for everything not listed.
pub(super) const EVERYTHING_ELSE: &str = "everything else";
const EVERYTHING: &str = "everything";
/// The files that the file gate never opens, whatever the rules say.
const KERNEL_FILES: &str = "devices and files of the kernel (/proc, /sys)";

impl Items {
    /// Sorts `facts` by availability.
    pub(super) fn from_facts(facts: &FileFacts, names: &Names<'_>) -> Self {
        let mut items = Self::default();
        // The session's own directory is given to tools by mounts only.
        let is_given = |place: &PlaceFact| {
            if names.base.own.directories.contains(&place.path) {
                // A sentence of its own says it.
                return place.standing != Availability::Free;
            }
            names.has_mounts || facts.caller != Caller::Tool || place.path != names.base.temp
        };
        let mut places: Vec<&PlaceFact> = facts.places.iter().filter(|place| is_given(place)).collect();
        places.sort_by_key(|place| rank(&place.path, names.base));
        let is_free = |path: &str| facts.at(Path::new(path)) == Availability::Free;
        let joins_programs = facts.elsewhere != Availability::Free && is_free("/usr/bin");
        for place in places {
            if is_of_host(&place.by) && place.standing != Availability::Free {
                items.is_protected = true;
            } else if is_worth_saying(place, names.base) && !is_spelled_like_a_pattern(place, facts) {
                if place.is_of_the_base() && is_asked_if_named(&place.path, place.standing, facts, names.base)
                {
                    items.named.push(names.place(&place.path));
                    continue;
                }
                let text = match place.standing {
                    Availability::Free if joins_programs && is_program(&place.path) => {
                        "the system's programs".to_owned()
                    }
                    Availability::Hidden if is_in_sys(&place.path) => "parts of /sys".to_owned(),
                    Availability::Free if place.path == names.base.temp => {
                        format!("{} (this session's own)", names.place(&place.path))
                    }
                    Availability::Free
                    | Availability::Asked
                    | Availability::Hidden
                    | Availability::Denied => names.place(&place.path),
                };
                items.add(place.standing, text);
            }
        }
        for name in &facts.names {
            if is_of_host(&name.by) && name.standing != Availability::Free {
                items.is_protected = true;
            } else if !is_closed_to_commands(&name.pattern, name.standing, facts) {
                items.add(name.standing, names.pattern(&name.pattern));
            }
        }
        if (facts.caller, facts.right, facts.elsewhere) == (Caller::Tool, FileRight::Read, Availability::Free)
        {
            items.add(Availability::Denied, KERNEL_FILES.to_owned());
        }
        let names_none = items.free.is_empty() && items.list(facts.elsewhere).is_empty();
        let rest = if names_none { EVERYTHING } else { EVERYTHING_ELSE };
        if is_asked_if_named(Path::new("/"), facts.elsewhere, facts, names.base) {
            items.named.push(rest.to_owned());
        } else {
            items.add(facts.elsewhere, rest.to_owned());
        }
        items
    }

    fn list(&mut self, standing: Availability) -> &mut Vec<String> {
        match standing {
            Availability::Free => &mut self.free,
            Availability::Asked => &mut self.asked,
            Availability::Hidden => &mut self.hidden,
            Availability::Denied => &mut self.denied,
        }
    }

    fn add(&mut self, standing: Availability, text: String) {
        let list = self.list(standing);
        if !list.contains(&text) {
            list.push(text);
        }
    }

    /// Returns `facts` as JSON, with the path of each place.
    pub(super) fn to_json(&self, facts: &FileFacts) -> Value {
        let places = facts.places.iter().map(|place| {
            json!({
                "path": place.path, "tree": place.is_tree, "standing": word(place.standing), "by": place.by,
            })
        });
        let names = facts.names.iter().map(|name| {
            json!({ "pattern": name.pattern.to_string(), "standing": word(name.standing), "by": name.by })
        });
        json!({
            "who": match facts.caller { Caller::Command => "commands", Caller::Tool => "tools" },
            "right": match facts.right {
                FileRight::Read => "read", FileRight::Write => "write", FileRight::Execute => "execute",
            },
            "elsewhere": word(facts.elsewhere),
            "places": places.collect::<Vec<_>>(),
            "names": names.collect::<Vec<_>>(),
        })
    }
}

/// Removes the items that are denied to every caller from the lists of the given rights.
///
/// It returns them, so that they are mentioned once.
pub(super) fn take_denied(
    sets: &mut [(&FileFacts, Items)],
    is_meant: impl Fn(FileRight) -> bool,
) -> Vec<String> {
    let mut meant: Vec<&mut Items> =
        sets.iter_mut().filter(|(facts, _)| is_meant(facts.right)).map(|(_, items)| items).collect();
    let Some(first) = meant.first() else { return Vec::new() };
    let is_rest = |item: &String| [EVERYTHING, EVERYTHING_ELSE].contains(&item.as_str());
    let mut taken = first.denied.clone();
    taken.retain(|item| !is_rest(item) && meant.iter().all(|items| items.denied.contains(item)));
    for items in &mut meant {
        items.denied.retain(|item| !taken.contains(item));
    }
    taken
}

fn word(standing: Availability) -> &'static str {
    match standing {
        Availability::Free => "free",
        Availability::Asked => "asked",
        Availability::Hidden => "hidden",
        Availability::Denied => "denied",
    }
}

/// Returns the sort key: the project first, then the session's own directory, then by depth.
fn rank(path: &Path, base: &Base) -> (u8, usize, PathBuf) {
    let group = match path {
        path if base.workspace.iter().any(|top| top == path) => 0,
        path if path == base.temp => 1,
        _ => 2,
    };
    (group, path.components().count(), path.to_owned())
}

/// Returns true if a place is one of the host's own protections.
pub(super) fn is_of_host(by: &str) -> bool {
    by == Layer::Host.name()
}

/// Returns true if a place is worth mentioning: a default closed region only if it exists.
pub(super) fn is_worth_saying(place: &PlaceFact, base: &Base) -> bool {
    !base.closed.contains(&place.path) || place.path.symlink_metadata().is_ok()
}

/// Returns true for a closed region that commands do not see: a path in it that a command names is a question before
/// the command starts.
fn is_asked_if_named(path: &Path, standing: Availability, facts: &FileFacts, base: &Base) -> bool {
    (facts.caller, facts.right, standing) == (Caller::Command, FileRight::Read, Availability::Hidden)
        && base.closed.iter().any(|region| region == path)
}

/// Returns true for the extra rule on a file that is named like a glob of the settings, which is only a precaution.
fn is_spelled_like_a_pattern(place: &PlaceFact, facts: &FileFacts) -> bool {
    let mut globs = facts.names.iter().map(|name| &name.pattern);
    globs.any(|glob| matches!(glob, FilePattern::Glob(text) if Path::new(text.as_str()) == place.path))
}

/// Returns true for a pattern of files that rules open in a place that is not open as a whole: only tools can use it,
/// because a command's view of the file system is made of whole places.
fn is_closed_to_commands(pattern: &FilePattern, standing: Availability, facts: &FileFacts) -> bool {
    facts.caller == Caller::Command
        && standing == Availability::Free
        && facts.at(&top(pattern)) != Availability::Free
}

/// Returns the directory below which a pattern matches.
fn top(pattern: &FilePattern) -> PathBuf {
    match pattern {
        FilePattern::Exact(path) | FilePattern::Tree(path) => path.clone(),
        FilePattern::Name { below, .. } => below.clone(),
        FilePattern::Glob(glob) => {
            let parts = Path::new(glob.as_str()).components();
            parts
                .take_while(|part| {
                    !part.as_os_str().as_encoded_bytes().iter().any(|byte| b"*?[{\\".contains(byte))
                })
                .collect()
        }
    }
}

fn is_program(path: &Path) -> bool {
    PROGRAMS.iter().any(|program| Path::new(program) == path)
}

fn is_in_sys(path: &Path) -> bool {
    path.starts_with("/sys") && HIDDEN_BY_DEFAULT.iter().any(|hidden| Path::new(hidden) == path)
}
