//! Finding and reading the settings that apply to a project.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use portcullis_audit::VerdictLine;
use portcullis_decision::Reader;
use portcullis_decision::context::AgentInfo;
use portcullis_session::SandboxSubject;
use portcullis_settings::{Disk, FoundSettings, Places, RealDisk, Resolved, allow_item, discover, resolve};

use crate::manifest::MANIFEST;
use crate::process_env::ProcessEnv;
use crate::untrusted_paths::UntrustedPaths;
use crate::{teams, toolchains, trust_files};

/// Receives a refusal, and whether the client should fail for it.
type Report = dyn Fn(&VerdictLine, bool) + Send + Sync;

/// A shared function that receives each refusal.
#[derive(Clone)]
pub struct RefusalReporter(pub Arc<Report>);

impl std::fmt::Debug for RefusalReporter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("RefusalReporter")
    }
}

/// The setup of a session.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The project.
    pub project: PathBuf,
    /// A settings file that replaces the user's.
    pub settings: Option<PathBuf>,
    /// Policies that replace the configured ones.
    pub policies: Vec<PathBuf>,
    /// The agent.
    pub agent: AgentInfo,
    /// Whether the user has marked the project as trusted.
    pub trusted: bool,
    /// Whether a user can answer.
    pub interactive: bool,
    /// The purpose of the session.
    pub purpose: Purpose,
    /// The subject of its sandbox.
    pub inmate: SandboxSubject,
    /// Who reads the notes on its commands.
    pub reader: Reader,
    /// Where its refusals are reported, beside the audit log.
    pub refusals: Option<RefusalReporter>,
}

/// The purpose of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To carry out requests.
    Act,
    /// Only to decide.
    Judge,
}

/// The settings that apply to a project.
#[derive(Debug)]
pub struct LoadedSettings {
    /// The paths of settings and protected files.
    pub places: Places,
    /// The settings files that apply.
    pub found: FoundSettings,
    /// The settings.
    pub resolved: Resolved,
}

impl Wanted {
    /// Returns the setup of a session that only decides, by the project's settings or those of a file.
    pub fn judging(project: PathBuf, settings: Option<PathBuf>) -> Self {
        Self {
            project,
            settings,
            policies: Vec::new(),
            agent: AgentInfo {
                name: "portcullis".to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                ..AgentInfo::default()
            },
            trusted: false,
            interactive: false,
            purpose: Purpose::Judge,
            inmate: SandboxSubject::Commands,
            reader: Reader::User,
            refusals: None,
        }
    }
}

/// Finds and reads the settings.
pub fn load(around: &ProcessEnv, wanted: &Wanted) -> anyhow::Result<LoadedSettings> {
    if wanted.purpose == Purpose::Act {
        teams::refresh(&around.agent_directory);
    }
    load_on(around, wanted, &RealDisk)
}

/// Finds and reads the settings on a disk that may differ from the real one.
pub fn load_on(around: &ProcessEnv, wanted: &Wanted, disk: &dyn Disk) -> anyhow::Result<LoadedSettings> {
    let mut places = places(around, &wanted.project, wanted.settings.as_deref())?;
    // A contained agent keeps its own files in its `/tmp`.
    places.keeps_tmp = matches!(wanted.inmate, SandboxSubject::Agent(_));
    for text in &around.allow {
        places.allow.push(allow_item(text, &around.cwd, &places, disk).context("reading `--allow`")?);
    }
    for file in wanted.policies.iter().map(|file| around.absolute(file)) {
        places.programs.extend([file.with_file_name(MANIFEST), file]);
    }
    let found = discover(&places, disk)?;
    let mut resolved = resolve(&found, &places, disk)?;
    // A machine that forbids `--no-sandbox` forbids `enabled: false` as well.
    resolved.enabled |= teams::keeps_sandbox(&around.agent_directory)?;
    // The paths that commands can write are known only after the settings are resolved.
    let toolchains = toolchains(around, &UntrustedPaths::for_project(&resolved, &around.homes()));
    Ok(LoadedSettings { places: Places { toolchains, ..places }, found, resolved })
}

/// Returns the paths of a project that the agent's commands can write.
///
/// Invalid settings are ignored here; opening a session reports them.
pub fn reach(around: &ProcessEnv, project: &Path) -> UntrustedPaths {
    match load(around, &Wanted::judging(project.to_owned(), None)) {
        Ok(loaded) => UntrustedPaths::for_project(&loaded.resolved, &around.homes()),
        Err(_) => UntrustedPaths::of_project(project, &around.homes()),
    }
}

fn toolchains(around: &ProcessEnv, reach: &UntrustedPaths) -> Vec<PathBuf> {
    let homes = around.homes();
    let roots = homes.iter().flat_map(|home| toolchains::roots(&around.path, home, reach));
    roots.filter_map(|root| root.canonicalize().ok()).collect()
}

fn gnupg(around: &ProcessEnv) -> Option<PathBuf> {
    let named = around.variables.iter().find(|(name, _)| name == "GNUPGHOME")?;
    Some(PathBuf::from(&named.1))
}

/// Returns the paths of settings and protected files.
pub fn places(around: &ProcessEnv, project: &Path, settings: Option<&Path>) -> anyhow::Result<Places> {
    let project = around.absolute(project);
    anyhow::ensure!(
        project.is_dir(),
        "the project `{}` is not a directory; name one with `--project`",
        project.display()
    );
    let team = teams::in_force(&around.agent_directory)?.map(|in_force| in_force.settings());
    Ok(Places {
        team,
        agent_directory: around.agent_directory.clone(),
        other_homes: around.account_home.iter().filter(|home| home.is_absolute()).cloned().collect(),
        state_directory: around.state.clone(),
        cache_directory: around.cache.clone(),
        programs: [around.executable.clone(), around.data.clone()]
            .into_iter()
            .chain(trust_files::signers(&around.agent_directory))
            .collect(),
        path: around.path.clone(),
        toolchains: toolchains(around, &UntrustedPaths::of_project(&project, &around.homes())),
        gnupg: gnupg(around),
        settings: settings.map(|file| around.absolute(file)),
        agent: around.agent.clone(),
        ..Places::usual(&project, &around.home)
    })
}
