//! The review of a branch: each change with the decision on it, hosts, and secrets in new texts.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use portcullis_audit::{Directory, Record, mask_text, read_all};
use portcullis_changes::State;
use portcullis_changes::branch::{BranchChange, Layers, compare, content, searched};
use portcullis_decision::request::FileOperation;
use portcullis_decision::{Effect, path_text};
use portcullis_session::{Cancel, FileCall, Session, files};
use serde_json::Value;

use super::stored::StoredBranch;

/// A change of a branch, as a review shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reviewed {
    /// The change.
    pub change: BranchChange,
    /// The decision on it.
    pub judged: Judged,
    /// The number of new lines that look like secrets.
    pub secrets: usize,
}

/// The decision on a change of the project, by the rules and policies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judged {
    /// It is allowed.
    Allowed,
    /// A person decides, for this reason: other programs execute the file, for example.
    Protected(String),
    /// It is denied, for this reason.
    Refused(String),
}

/// Returns the changes of a branch with the decisions on them, which `session` makes.
///
/// # Errors
/// If the branch or the project cannot be read.
pub fn review(session: &Session, branch: &StoredBranch) -> anyhow::Result<Vec<Reviewed>> {
    branch.require_project()?;
    let layers = branch.layers();
    let changes = compare(layers).with_context(|| format!("comparing the branch `{}`", branch.name))?;
    let repositories = new_repositories(layers.project, &changes);
    changes
        .into_iter()
        .map(|change| {
            let mut judged = judged(session, layers, &change)?;
            let repository = change.path.ancestors().find(|above| repositories.contains(*above));
            if let (Judged::Allowed, Some(repository)) = (&judged, repository) {
                let shown = repository.display();
                judged = Judged::Protected(format!(
                    "git takes `{shown}` for a repository then, with its settings"
                ));
            }
            let secrets = secrets(layers, &change)?;
            Ok(Reviewed { change, judged, secrets })
        })
        .collect()
}

/// Returns the directories that get the shape of a git repository by these changes. The rules on names look at the
/// project, where the files beside a name are not there yet; they know directories called `.git` by their name.
fn new_repositories(project: &Path, changes: &[BranchChange]) -> HashSet<PathBuf> {
    let known: HashMap<&Path, &State> =
        changes.iter().map(|change| (change.path.as_path(), &change.new)).collect();
    let is_in_project = |path: &Path| project.join(path).symlink_metadata().is_ok();
    let will_be = |path: &Path| known.get(path).map_or_else(|| is_in_project(path), |new| !new.is_absent());
    let has_shape = |directory: &Path, is_there: &dyn Fn(&Path) -> bool| {
        let has = |name: &str| is_there(&directory.join(name));
        has("objects") && has("refs") || has("HEAD") && has("commondir")
    };
    let is_by_name = |directory: &Path| directory.iter().any(|name| name.eq_ignore_ascii_case(".git"));
    let holders: HashSet<&Path> = changes.iter().filter_map(|change| change.path.parent()).collect();
    let found = holders.into_iter().filter(|directory| {
        !is_by_name(directory) && has_shape(directory, &will_be) && !has_shape(directory, &is_in_project)
    });
    found.map(Path::to_owned).collect()
}

fn judged(session: &Session, layers: Layers<'_>, change: &BranchChange) -> anyhow::Result<Judged> {
    let path = layers.project.join(&change.path);
    let given = path_text::encode(&path);
    let call = FileCall { path: &path, given: &given, call: None, cancel: &Cancel::default() };
    let request = match &change.new {
        State::Absent => files::request(session, call, FileOperation::Delete),
        State::Directory(_) => files::request(session, call, FileOperation::CreateDirectory),
        State::Link { target, .. } => {
            files::request(session, call, FileOperation::Symlink(path_text::encode(target)))
        }
        State::File(_) | State::Special { .. } => {
            // That of a longer file is unknown, so a person decides where it matters.
            let bytes =
                content(layers, change).with_context(|| format!("reading `{given}` of the branch"))?;
            files::write_request(session, call, bytes.as_deref())
        }
    };
    let request = match request {
        Ok(request) => request,
        Err(failure) => return Ok(Judged::Refused(failure.to_string())),
    };
    let decision = session.decide(&request);
    let reason = decision.cause().reason.clone();
    Ok(match decision.effect() {
        Effect::Allow => Judged::Allowed,
        Effect::Ask => Judged::Protected(reason),
        Effect::Deny => Judged::Refused(reason),
    })
}

/// Returns the number of lines that look like secrets and are not in the project's version.
fn secrets(layers: Layers<'_>, change: &BranchChange) -> anyhow::Result<usize> {
    let read = searched(layers, change).with_context(|| format!("reading `{}`", change.path.display()))?;
    let Some((now, new)) = read else { return Ok(0) };
    let lines = |bytes: &[u8]| String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect::<Vec<_>>();
    let known: HashSet<String> = lines(&now).into_iter().collect();
    let is_secret = |line: &&String| !known.contains(*line) && mask_text(line) != **line;
    Ok(lines(&new).iter().filter(is_secret).count())
}

/// Returns the hosts that commands of a branch were allowed to connect to, from the audit log.
///
/// # Errors
/// If the log cannot be read.
pub fn hosts(state: &Path, branch: &StoredBranch) -> anyhow::Result<Vec<String>> {
    let sessions = branch.sessions();
    let mut found = BTreeSet::new();
    for log in Directory::new(&state.join("audit")).files().context("reading the audit log")? {
        if !sessions.contains(&log.name) {
            continue;
        }
        let lines = read_all(&log.path).with_context(|| format!("reading `{}`", log.path.display()))?;
        for line in lines.flatten() {
            if let Record::Verdict(verdict) = line.record
                && verdict.effect == "allow"
            {
                found.extend(host(&verdict.request));
            }
        }
    }
    Ok(found.into_iter().collect())
}

/// Returns the host and port of a request to connect.
fn host(request: &Value) -> Option<String> {
    let access = request.get("action")?.get("network")?;
    let target = access.get("target")?;
    let target = target.as_str().or_else(|| target.get("address")?.as_str())?;
    let port = access.get("port")?.as_u64()?;
    Some(if target.contains(':') { format!("[{target}]:{port}") } else { format!("{target}:{port}") })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hosts_are_read_from_requests() {
        let request = |target: Value| json!({ "action": { "network": { "target": target, "port": 443 } } });
        assert_eq!(host(&request(json!("a.test"))).as_deref(), Some("a.test:443"));
        assert_eq!(host(&request(json!({ "address": "::1" }))).as_deref(), Some("[::1]:443"));
        assert_eq!(host(&json!({ "action": { "file": {} } })), None);
    }
}
