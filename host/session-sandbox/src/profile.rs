//! Converts the rule set to the places of a sandbox profile, in an order in which deeper ones win.

mod disk;

use std::collections::{HashMap, HashSet};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use portcullis_decision::devices::can_be_given;
use portcullis_decision::profile::FileRight;
use portcullis_decision::rules::{Reach, RulePlace};
use portcullis_decision::{Caller, Effect, RuleSet};
use portcullis_sandbox::{Access, HIDDEN_UNLESS_SHOWN, OwnPlace, Owner, PathAccess, Profile, Reads};
use portcullis_settings_format::Layer;

use crate::closed_names::closed_names;
use crate::error::with_causes;
use crate::kept_back::KeptBack;
use crate::limits;
use crate::names::name_rules;
use crate::own_directories::BranchLayer;
use crate::replaceable_paths::Surveyed;
use crate::requirements::Requirements;
use disk::Disk;

/// The machine's name inside.
const HOSTNAME: &str = "sandbox";

/// The access of commands by path; a map, because it is queried often and comparing paths is slow.
type Places = HashMap<PathBuf, Access>;

/// Paths at which the sandbox mounts its own file systems.
const OWN: &[&str] = &["/dev", "/proc"];

/// The host's directory that the session's replaces for commands.
const HOST_TEMP: &str = "/tmp";

/// Makes the profile of a session whose commands see `temp` as `/tmp`, or says why there is none. `bound` are the
/// sockets of the host's programs.
pub fn profile(
    surveyed: Surveyed<'_>,
    temp: &Path,
    bound: &[PathBuf],
    session: Requirements<'_>,
) -> Result<Profile, String> {
    let Surveyed { rules, places, .. } = surveyed;
    let mut disk = Disk::default();
    let wanted = wanted(places, &mut disk);
    let devices = devices(&wanted);
    let shares_tmp = session.shares_tmp && wanted.get(Path::new(HOST_TEMP)) == Some(&Access::ReadWrite);
    let temp = if shares_tmp { Path::new(HOST_TEMP) } else { temp };
    let (places, reads) = mounted(rules, (wanted, &mut disk), bound, (session.sockets, shares_tmp))?;
    let kept_back = KeptBack::from_commands(rules, session.own);
    // A file that is secret under one of its names is secret under all of them.
    let reads = if kept_back.is_empty() { reads } else { Reads::Judged };
    let user = (session.homes, session.links);
    let names =
        name_rules(surveyed, user, session.lifted, reads, kept_back).map_err(|error| with_causes(&error))?;
    let acting = session
        .is_root
        .then(|| rules.base().workspace.first().and_then(|workspace| owner(workspace)))
        .flatten();
    let holders: HashSet<&Path> = places.iter().flat_map(|place| place.path.ancestors().skip(1)).collect();
    let own = session
        .own
        .mounts(&rules.base().own, (session.user, acting), session.changes, |cache| holders.contains(cache))
        .map_err(|error| format!("making the directories of the private home: {error}"))?;
    let closed = closed_names(rules, &places, &own);
    let (places, own) = match &session.own.branch {
        Some(branch) => in_branch(branch, places, own),
        None => (places, own),
    };
    Ok(Profile {
        places,
        temp: temp.to_owned(),
        own,
        closed,
        devices,
        hostname: HOSTNAME.to_owned(),
        limits: limits::sandbox(rules.limits(limits::defaults())),
        acting,
        names: Some(names),
        order: None,
    })
}

/// Puts the branch in the place of the project. What the rules make writable in the project is a part of the branch:
/// a mount of its own would show the project's files.
fn in_branch(
    branch: &BranchLayer,
    mut places: Vec<PathAccess>,
    mut own: Vec<OwnPlace>,
) -> (Vec<PathAccess>, Vec<OwnPlace>) {
    places.retain(|place| place.access != Access::ReadWrite || !branch.holds(&place.path));
    own.retain(|place| !branch.holds(&place.path));
    own.push(branch.place());
    (places, own)
}

/// Returns the devices that the rules give to commands.
fn devices(wanted: &Places) -> Vec<PathBuf> {
    let given = wanted.iter().filter(|(path, access)| **access == Access::ReadWrite && can_be_given(path));
    let mut devices: Vec<PathBuf> = given.map(|(path, _)| path.clone()).collect();
    devices.sort();
    devices
}

/// Returns the places that differ from the system around them, and whether names are judged as they are read. `bound`
/// are the sockets of the host's programs, `named` those that the settings let commands use.
fn mounted(
    rules: &RuleSet,
    (mut wanted, disk): (Places, &mut Disk),
    bound: &[PathBuf],
    (named, shares_tmp): (&[PathBuf], bool),
) -> Result<(Vec<PathAccess>, Reads), String> {
    let secrets = hidden(&wanted);
    hide_by_default(&mut wanted, &rules.base().temp, shares_tmp);
    hide_sockets(&mut wanted, bound, named);
    show_sockets(&mut wanted, rules, named);
    hide_by_directory(&mut wanted, (&secrets, disk), &rules.base().closed);
    let reads = reads(rules, &wanted, disk);
    match wanted.remove(Path::new("/")) {
        None | Some(Access::ReadOnly | Access::Unwritable) => {}
        Some(Access::Hidden) => hide_all_in(Path::new("/"), &mut wanted)?,
        Some(Access::ReadWrite) => {
            return Err("the rules make all of `/` writable; name the directories to be written".to_owned());
        }
    }
    let mut places: Vec<PathAccess> = wanted
        .into_iter()
        .filter(|(path, _)| path != &rules.base().temp && path != Path::new(HOST_TEMP) && !is_own(path))
        .map(|(path, access)| PathAccess { path, access })
        .collect();
    // So that the same rules are the same sandbox.
    places.sort_by(|one, other| one.path.as_os_str().cmp(other.path.as_os_str()));
    Ok((places, reads))
}

/// Hides every entry of `directory` that no rule opens. Symbolic links stay visible: their targets are hidden or shown by
/// their own paths.
fn hide_all_in(directory: &Path, wanted: &mut Places) -> Result<(), String> {
    let unread = |error: io::Error| format!("the rules hide `/`, and it cannot be read: {error}");
    for entry in std::fs::read_dir(directory).map_err(unread)? {
        let entry = entry.map_err(unread)?;
        if !entry.file_type().map_err(unread)?.is_symlink() {
            let access = wanted.entry(entry.path()).or_insert(Access::Hidden);
            // A rule that only denies writing does not make an entry visible.
            if *access == Access::Unwritable {
                *access = Access::Hidden;
            }
        }
    }
    Ok(())
}

/// Returns the places of the machine that the rules name, each with the wanted access.
fn wanted(places: &[RulePlace], disk: &mut Disk) -> Places {
    let mut wanted = Places::new();
    for place in places {
        // The session's own directory is one mount; the broker enforces rules on names in it.
        let Some(path) = place.location.on_machine() else { continue };
        let Some(access) = access(place) else { continue };
        if let Some(path) = disk.place(path, access) {
            let known = wanted.entry(path).or_insert(access);
            *known = (*known).min(access);
        }
    }
    wanted
}

/// Returns the access that a place needs; `None` if it restricts nothing and may not open anything.
fn access(place: &RulePlace) -> Option<Access> {
    match (place.reach, place.read, place.write) {
        (_, false, _) => Some(Access::Hidden),
        (Reach::Opens, true, false) => Some(Access::ReadOnly),
        (Reach::Opens, true, true) => Some(Access::ReadWrite),
        (Reach::Restricts, true, false) => Some(Access::Unwritable),
        (Reach::Restricts, true, true) => None,
    }
}

/// Hides the directories that are hidden unless a rule opens them, and the host's temporary directories, which the
/// session's replace.
fn hide_by_default(wanted: &mut Places, temp: &Path, shares_tmp: bool) {
    for path in HIDDEN_UNLESS_SHOWN.map(Path::new) {
        let access = wanted.entry(path.to_owned()).or_insert(Access::Hidden);
        if *access == Access::Unwritable {
            *access = Access::Hidden;
        }
    }
    for path in [Path::new(HOST_TEMP), temp].into_iter().filter(|path| !shares_tmp || *path == temp) {
        wanted.insert(path.to_owned(), Access::Hidden);
    }
}

/// Returns the hidden places in a fixed order, so that equal rules give equal sandboxes.
fn hidden(wanted: &Places) -> Vec<PathBuf> {
    let hidden = wanted.iter().filter(|(_, access)| **access == Access::Hidden);
    let mut hidden: Vec<PathBuf> = hidden.map(|(path, _)| path.clone()).collect();
    hidden.sort_by(|one, other| one.as_os_str().cmp(other.as_os_str()));
    hidden
}

/// Returns whether the broker must judge reads by name: if a rule on reading is a pattern, or names a missing path that
/// would be visible once it exists. The host's own rules count only if commands may write around the path: all others
/// are in homes, which are closed, in toolchains, which change rarely, or belong to root.
fn reads(rules: &RuleSet, wanted: &Places, disk: &mut Disk) -> Reads {
    let mut may_appear = |path: &Path| {
        let answer = rules.answer(path, FileRight::Read, Caller::Command);
        if answer.effect == Effect::Allow {
            return false;
        }
        let Some(there) = disk.existing(path).filter(|there| *there != path) else { return false };
        match access_at(wanted, there) {
            Access::Hidden => false,
            Access::ReadWrite => !answer.is_of_the_base(),
            Access::Unwritable | Access::ReadOnly => {
                !answer.is_of_the_base() && answer.policy != Layer::Host.name()
            }
        }
    };
    let mut hidden = wanted.iter().filter(|(_, access)| **access == Access::Hidden);
    let is_judged = rules.patterns_on_reading().next().is_some()
        // The sandbox has its own file systems there, in which no file of the machine can be hidden.
        || hidden.any(|(path, _)| is_own(path) || may_appear(path))
        || restricts_reading_in_session(rules);
    if is_judged { Reads::Judged } else { Reads::Free }
}

/// Returns true if a rule restricts reading below the session's temporary directory. No mount can cover names there
/// that commands have not created yet.
fn restricts_reading_in_session(rules: &RuleSet) -> bool {
    let literal = rules.layers().iter().flat_map(|layer| &layer.profile.files);
    let paths = literal.filter_map(|rule| rule.pattern.literal());
    let mut paths = paths.filter(|path| rules.locate(path).on_machine().is_none());
    paths.any(|path| {
        let answer = rules.answer(path, FileRight::Read, Caller::Command);
        answer.effect != Effect::Allow && !answer.is_of_the_base() && answer.policy != Layer::Host.name()
    })
}

/// Shows the sockets that the settings name, unless a rule denies them. Only an existing socket is shown, so that no
/// other file becomes visible under its name.
fn show_sockets(wanted: &mut Places, rules: &RuleSet, sockets: &[PathBuf]) {
    let is_socket = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.file_type().is_socket());
    let temp = &rules.base().temp;
    for socket in sockets.iter().filter(|path| is_socket(path)) {
        let is_in_sight = access_at(wanted, socket) == Access::ReadWrite && !socket.starts_with(temp);
        if !is_in_sight && rules.file(socket, FileRight::Read, Caller::Command).effect != Effect::Deny {
            wanted.insert(socket.clone(), Access::ReadOnly);
        }
    }
}

/// Returns the user as whom root's commands act in this project: its owner. Otherwise the owner could not access files
/// that they create there, and root without capabilities could not access the owner's files.
pub fn owner(workspace: &Path) -> Option<Owner> {
    let metadata = workspace.metadata().ok()?;
    (metadata.uid() != 0).then(|| Owner { uid: metadata.uid(), gid: metadata.gid() })
}

fn is_own(path: &Path) -> bool {
    OWN.iter().any(|own| path.starts_with(own))
}

/// Hides secrets in closed regions (homes) by hiding the directory around them, or the closest existing one; its
/// present names are shown again. A mask on a single file is lost when the host replaces the file, as programs do with
/// secrets, and a missing file cannot be masked. In a writable directory this is not possible, because new names must
/// appear.
fn hide_by_directory(wanted: &mut Places, (secrets, disk): (&[PathBuf], &mut Disk), closed: &[PathBuf]) {
    for path in secrets {
        let Some(parent) = path.parent().and_then(|parent| disk.existing(parent)) else { continue };
        let is_closed = closed.iter().any(|region| region.is_absolute() && parent.starts_with(region));
        if !is_closed || access_at(wanted, parent) != Access::ReadOnly {
            continue;
        }
        let Ok(names) = std::fs::read_dir(parent) else { continue };
        wanted.insert(parent.to_owned(), Access::Hidden);
        // Commands do not see an entry that cannot be read.
        for entry in names.flatten() {
            // A link cannot be mounted by itself; its target has a place of its own.
            if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
                let shown = wanted.entry(parent.join(entry.file_name())).or_insert(Access::ReadOnly);
                // It was visible in the directory until now.
                if *shown == Access::Unwritable {
                    *shown = Access::ReadOnly;
                }
            }
        }
    }
}

/// Hides sockets of programs outside, unless the settings name them, or a rule or a grant opens exactly this path. A
/// socket in a directory that this user cannot search is hidden with the directory, whose owner can open it later.
fn hide_sockets(wanted: &mut Places, bound: &[PathBuf], named: &[PathBuf]) {
    for path in bound {
        let path = match path.canonicalize() {
            Ok(path) => path,
            Err(error) if error.kind() == ErrorKind::PermissionDenied => match unsearchable(path) {
                Some(directory) => directory,
                None => continue,
            },
            // The name of the socket is gone, so nobody can connect to it.
            Err(_) => continue,
        };
        let is_opened = matches!(wanted.get(&path), Some(Access::ReadOnly | Access::ReadWrite));
        if !is_own(&path) && !named.contains(&path) && !is_opened {
            wanted.insert(path, Access::Hidden);
        }
    }
}

/// Returns the directory on the way to a path that this user cannot search.
fn unsearchable(path: &Path) -> Option<PathBuf> {
    let directory = path.ancestors().skip(1).find_map(|above| above.canonicalize().ok())?;
    (directory != Path::new("/")).then_some(directory)
}

/// Returns the access of commands to `path`: that of the deepest place that contains it. A place that only restricts
/// gives no more than its surroundings.
fn access_at(wanted: &Places, path: &Path) -> Access {
    let mut around = path.ancestors().filter_map(|ancestor| wanted.get(ancestor)).copied();
    match around.next() {
        None => Access::ReadOnly,
        Some(Access::Unwritable) => {
            let giving = around.find(|access| *access != Access::Unwritable);
            giving.unwrap_or(Access::ReadOnly).min(Access::ReadOnly)
        }
        Some(access) => access,
    }
}

#[cfg(test)]
mod tightening;

#[cfg(test)]
mod tests {
    use portcullis_decision::pattern::FilePattern;
    use portcullis_decision::profile::{FileRights, FileRule};
    use portcullis_decision::{Base, Profile as Rules, RuleLayer};

    use super::*;

    #[test]
    fn a_secret_hides_the_directory_around_it_and_its_neighbours_stay() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let agent = home.join("agent");
        std::fs::create_dir_all(agent.join("skills")).unwrap();
        std::fs::create_dir_all(home.join("shown/inside")).unwrap();
        std::fs::write(agent.join("auth.json"), "secret").unwrap();
        std::fs::write(agent.join("settings.json"), "{}").unwrap();
        std::os::unix::fs::symlink("auth.json", agent.join("link")).unwrap();
        let mut wanted = Places::from([
            (home.clone(), Access::Hidden),
            (agent.clone(), Access::ReadOnly),
            (agent.join("auth.json"), Access::Hidden),
            (agent.join("not-there-yet"), Access::Hidden),
            (home.join("shown"), Access::ReadOnly),
            (home.join("shown/not/there/yet"), Access::Hidden),
        ]);
        let secrets = hidden(&wanted);
        hide_by_directory(&mut wanted, (&secrets, &mut Disk::default()), std::slice::from_ref(&home));
        let expected = Places::from([
            (home.clone(), Access::Hidden),
            (agent.clone(), Access::Hidden),
            (agent.join("auth.json"), Access::Hidden),
            (agent.join("not-there-yet"), Access::Hidden),
            (home.join("shown"), Access::Hidden),
            (home.join("shown/inside"), Access::ReadOnly),
            (home.join("shown/not/there/yet"), Access::Hidden),
            (agent.join("settings.json"), Access::ReadOnly),
            (agent.join("skills"), Access::ReadOnly),
        ]);
        assert_eq!(wanted, expected);
    }

    #[test]
    fn what_is_not_there_yet_is_judged_as_it_is_read() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        std::fs::write(place.join("there"), "").unwrap();
        std::fs::create_dir(place.join("d")).unwrap();
        let deny = |path: PathBuf| FileRule {
            id: "x".to_owned(),
            pattern: FilePattern::Tree(path),
            rights: FileRights { read: true, ..Default::default() },
            effect: Effect::Deny,
            conceal: true,
            condition: String::new(),
            reason: String::new(),
            setting: String::new(),
        };
        let judged = |paths: &[&str], hidden: &[&str]| {
            let files = paths.iter().map(|path| deny(place.join(path))).collect();
            let profile = Rules { files, ..Default::default() };
            let layer = RuleLayer { name: "l".to_owned(), profile, tightens: false };
            let rules = RuleSet::compile(vec![layer], Base::default(), &[]);
            let hidden = hidden.iter().map(|path| (place.join(path), Access::Hidden));
            reads(&rules, &hidden.collect(), &mut Disk::default()).are_judged()
        };
        assert!(!judged(&["there"], &["there"]));
        assert!(judged(&["later"], &["later"]));
        assert!(judged(&["x/y/later"], &["x/y/later"]));
        // It is in a directory that is hidden.
        assert!(!judged(&["d/later", "d"], &["d/later", "d"]));
        // Only the base hides it.
        assert!(!judged(&[], &["later"]));
    }

    #[test]
    fn sockets_are_seen_only_by_name() {
        let project = tempfile::tempdir().unwrap();
        let project = project.path().canonicalize().unwrap();
        let (named, other, gone) = (project.join("named"), project.join("other"), project.join("gone"));
        std::fs::write(&named, "").unwrap();
        std::fs::write(&other, "").unwrap();
        let meant = project.join("meant");
        std::fs::write(&meant, "").unwrap();
        let mut wanted =
            Places::from([(project.clone(), Access::ReadWrite), (named.clone(), Access::ReadWrite)]);
        let bound = [named.clone(), other.clone(), meant.clone(), gone, "/dev/log".into()];
        hide_sockets(&mut wanted, &bound, &[meant]);
        let expected = [(project, Access::ReadWrite), (named, Access::ReadWrite), (other, Access::Hidden)];
        assert_eq!(wanted, Places::from(expected));
    }

    #[test]
    fn a_rule_that_only_restricts_a_socket_does_not_show_it() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let (secret, socket, beside) = (home.join("secret"), home.join("socket"), home.join("beside"));
        for path in [&secret, &socket, &beside] {
            std::fs::write(path, "").unwrap();
        }
        // A denial of writing to the socket, and a denial of reading something beside it, for which the names in the
        // directory are shown one by one.
        let mut wanted = Places::from([
            (home.clone(), Access::ReadOnly),
            (secret.clone(), Access::Hidden),
            (socket.clone(), Access::Unwritable),
            (beside.clone(), Access::Unwritable),
        ]);
        hide_sockets(&mut wanted, std::slice::from_ref(&socket), &[]);
        let secrets = (std::slice::from_ref(&secret), &mut Disk::default());
        hide_by_directory(&mut wanted, secrets, std::slice::from_ref(&home));
        let expected = [
            (home, Access::Hidden),
            (secret, Access::Hidden),
            (socket, Access::Hidden),
            (beside, Access::ReadOnly),
        ];
        assert_eq!(wanted, Places::from(expected));
    }

    #[test]
    fn what_is_hidden_by_default_is_the_same_for_settings_and_for_the_sandbox() {
        assert_eq!(portcullis_decision::rules::HIDDEN_BY_DEFAULT, HIDDEN_UNLESS_SHOWN);
    }

    #[test]
    fn where_commands_may_write_only_the_name_itself_is_hidden() {
        let project = tempfile::tempdir().unwrap();
        let project = project.path().canonicalize().unwrap();
        std::fs::write(project.join(".env"), "secret").unwrap();
        let before =
            Places::from([(project.clone(), Access::ReadWrite), (project.join(".env"), Access::Hidden)]);
        let mut wanted = before.clone();
        let secrets = hidden(&wanted);
        hide_by_directory(&mut wanted, (&secrets, &mut Disk::default()), std::slice::from_ref(&project));
        assert_eq!(wanted, before);
    }
}
