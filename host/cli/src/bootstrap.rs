//! Connects the parts: environment → settings → policies → session.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use portcullis_audit::Log;
use portcullis_config::{AllowLists, Disk, Found, Places, RealDisk, Resolved, discover, resolve};
use portcullis_decision::Context;
use portcullis_decision::context::{AgentInfo, Machine, Workspace};
use portcullis_decision::path_text;
use portcullis_sandbox::NameOrder;
use portcullis_session::{
    Basis, Confining, Entry, GrantStore, Inmate, Journal, JournalError, Prompter, Session, Setup,
};

use crate::control::{self, Control};
use crate::git_identity;
use crate::grant_keeper::FileKeeper;
use crate::journal::AuditJournal;
use crate::manifest::MANIFEST;
use crate::policies;
use crate::process_env::{ProcessEnv, now, random_name};
use crate::reservations::SharedReservations;
use crate::scratch::Scratch;
use crate::toolchains;
use crate::trust_files;
use crate::untrusted_paths::Reach;

/// The running program, even if its file has been replaced since.
pub(crate) const OWN_PROGRAM: &str = "/proc/self/exe";

/// Returns the additional variables of commands.
type Variables = Box<dyn Fn() -> Vec<(String, String)> + Send + Sync>;

/// The setup of a session.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    /// The project.
    pub(crate) project: PathBuf,
    /// A settings file that replaces the user's.
    pub(crate) settings: Option<PathBuf>,
    /// Policies that replace the configured ones.
    pub(crate) policies: Vec<PathBuf>,
    /// The agent.
    pub(crate) agent: AgentInfo,
    /// Whether the user has marked the project as trusted.
    pub(crate) trusted: bool,
    /// Whether a user can answer.
    pub(crate) interactive: bool,
    /// The purpose of the session.
    pub(crate) purpose: Purpose,
    /// The subject of its sandbox.
    pub(crate) inmate: Inmate,
}

/// The purpose of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To carry out requests.
    Act,
    /// Only to decide.
    Judge,
}

/// The settings that apply to a project.
#[derive(Debug)]
pub(crate) struct LoadedSettings {
    pub(crate) places: Places,
    pub(crate) found: Found,
    /// The settings.
    pub(crate) resolved: Resolved,
}

/// A session, with the values that must live as long as it.
#[derive(Debug)]
pub(crate) struct Wired {
    pub(crate) session: Arc<Session>,
    /// Stores answers that outlive the session.
    pub(crate) keeper: Arc<FileKeeper>,
    /// The socket for other terminals, if a user can be asked.
    _control: Option<Control>,
    // Dropped after the session, whose sandbox uses it.
    scratch: Option<Scratch>,
}

impl Wired {
    /// Returns the host's directory that is `/tmp` inside.
    pub(crate) fn temp(&self) -> Option<PathBuf> {
        self.scratch.as_ref().map(Scratch::temp)
    }

    /// Gives a file in that directory to the user that commands run as.
    pub(crate) fn give_away(&self, file: &std::fs::File) -> std::io::Result<()> {
        use std::os::unix::fs::MetadataExt as _;
        let Some(temp) = self.temp().filter(|_| rustix::process::geteuid().is_root()) else { return Ok(()) };
        let owner = temp.metadata()?;
        std::os::unix::fs::fchown(file, Some(owner.uid()), Some(owner.gid()))
    }
}

impl Drop for Wired {
    fn drop(&mut self) {
        self.session.close();
    }
}

impl Wanted {
    /// Returns the setup of a session that only decides, by the project's settings or those of a file.
    pub(crate) fn judging(project: PathBuf, settings: Option<PathBuf>) -> Self {
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
            inmate: Inmate::Commands,
        }
    }
}

/// Finds and reads the settings.
pub(crate) fn load_settings(around: &ProcessEnv, wanted: &Wanted) -> anyhow::Result<LoadedSettings> {
    load_settings_on(around, wanted, &RealDisk)
}

/// Finds and reads the settings on a disk that may differ from the real one.
pub(crate) fn load_settings_on(
    around: &ProcessEnv,
    wanted: &Wanted,
    disk: &dyn Disk,
) -> anyhow::Result<LoadedSettings> {
    let mut places = places(around, &wanted.project, wanted.settings.as_deref())?;
    for file in wanted.policies.iter().map(|file| absolute(around, file)) {
        places.programs.extend([file.with_file_name(MANIFEST), file]);
    }
    let found = discover(&places, disk)?;
    let resolved = resolve(&found, &places, disk)?;
    // The paths that commands can write are known only after the settings are resolved.
    let toolchains = toolchains(around, &Reach::of(&resolved, &around.homes()));
    Ok(LoadedSettings { places: Places { toolchains, ..places }, found, resolved })
}

/// Returns the paths of a project that the agent's commands can write.
///
/// Invalid settings are ignored here; opening a session reports them.
pub(crate) fn reach(around: &ProcessEnv, project: &Path) -> Reach {
    match load_settings(around, &Wanted::judging(project.to_owned(), None)) {
        Ok(loaded) => Reach::of(&loaded.resolved, &around.homes()),
        Err(_) => Reach::of_project(project, &around.homes()),
    }
}

fn toolchains(around: &ProcessEnv, reach: &Reach) -> Vec<PathBuf> {
    let homes = around.homes();
    let roots = homes.iter().flat_map(|home| toolchains::roots(&around.path, home, reach));
    roots.filter_map(|root| root.canonicalize().ok()).collect()
}

/// Returns the paths of settings and protected files.
pub(crate) fn places(around: &ProcessEnv, project: &Path, settings: Option<&Path>) -> anyhow::Result<Places> {
    let project = absolute(around, project);
    anyhow::ensure!(
        project.is_dir(),
        "the project `{}` is not a directory; name one with `--project`",
        project.display()
    );
    Ok(Places {
        agent_directory: around.agent_directory.clone(),
        other_homes: around.account_home.iter().filter(|home| home.is_absolute()).cloned().collect(),
        state_directory: around.state.clone(),
        cache_directory: around.cache.clone(),
        programs: [around.executable.clone(), around.data.clone()]
            .into_iter()
            .chain(trust_files::signers(&around.agent_directory))
            .collect(),
        path: around.path.clone(),
        toolchains: toolchains(around, &Reach::of_project(&project, &around.homes())),
        settings: settings.map(|file| absolute(around, file)),
        ..Places::usual(&project, &around.home)
    })
}

/// Loads the policies of the settings. Also returns whether one of them uses the allow lists.
pub(crate) fn basis(
    around: &ProcessEnv,
    wanted: &Wanted,
    resolved: Resolved,
) -> anyhow::Result<(Basis, AllowLists)> {
    let named: Vec<PathBuf> = wanted.policies.iter().map(|file| absolute(around, file)).collect();
    let cache = around.cache.join("policies");
    let mut loaded = policies::load(&resolved, &named, &cache, &around.agent_directory)?;
    if wanted.purpose == Purpose::Act {
        loaded.take_snapshots_later();
    }
    Ok((Basis { resolved, chain: loaded.chain }, loaded.lists))
}

/// Builds a session from the settings.
pub(crate) fn session(
    around: &ProcessEnv,
    wanted: &Wanted,
    loaded: LoadedSettings,
    prompter: Arc<dyn Prompter>,
) -> anyhow::Result<Wired> {
    let id = random_name()?;
    let context = context(around, wanted, &loaded, &id);
    session_in(around, wanted, loaded, prompter, &id, context)
}

/// Builds a session in a given context.
pub(crate) fn session_in(
    around: &ProcessEnv,
    wanted: &Wanted,
    loaded: LoadedSettings,
    prompter: Arc<dyn Prompter>,
    id: &str,
    context: Context,
) -> anyhow::Result<Wired> {
    let keeper = Arc::new(FileKeeper::new(&loaded));
    let (basis, lists) = basis(around, wanted, loaded.resolved)?;
    keeper.learn(lists);
    let (journal, scratch): (Box<dyn Journal>, Option<Scratch>) = match wanted.purpose {
        Purpose::Judge => (Box::new(Unwritten), None),
        Purpose::Act => {
            let log = Log::open(&around.state.join("audit"), id).context("opening the audit log")?;
            let sessions = around.state.join("sessions");
            let scratch = Scratch::make(&sessions, id)
                .with_context(|| format!("making the session's directory in `{}`", sessions.display()))?;
            let is_for_commands = matches!(wanted.inmate, Inmate::Commands);
            if is_for_commands && rustix::process::geteuid().is_root() {
                // If the host is root, commands run as the owner of the project.
                scratch.give_to_owner_of(&basis.resolved.workspace)?;
            }
            (Box::new(AuditJournal::new(log)), Some(scratch))
        }
    };
    let confinement = match &scratch {
        None => Confining::NoCommands,
        Some(scratch) => Confining::Sandbox {
            executable: OWN_PROGRAM.into(),
            temp: scratch.temp(),
            order: name_order(&around.state)?,
        },
    };
    let variables: Variables = match wanted.purpose {
        Purpose::Judge => Box::new(Vec::new),
        Purpose::Act => {
            let project = &basis.resolved.workspace;
            // This applies even if the project is the home directory: a git program there is as untrusted as in any
            // project.
            let reach = Reach::of(&basis.resolved, &around.homes()).and(project);
            Box::new(git_identity::asked(around, project, reach))
        }
    };
    let setup = Setup {
        context,
        clock: Box::new(now),
        journal,
        prompter,
        keeper: Arc::clone(&keeper) as Arc<dyn GrantStore>,
        reservations: Box::new(SharedReservations::new(&around.state, id, &around.agent)),
        confinement,
        inmate: wanted.inmate.clone(),
        variables,
    };
    let session = portcullis_session::open(setup, basis).context("opening the session")?;
    let control = match &scratch {
        Some(scratch) if wanted.interactive => Some(
            control::listen_for(&session, scratch.directory())
                .context("opening the session to `portcullis asks` and `portcullis grants`")?,
        ),
        _ => None,
    };
    Ok(Wired { session, keeper, _control: control, scratch })
}

pub(crate) fn context(around: &ProcessEnv, wanted: &Wanted, loaded: &LoadedSettings, id: &str) -> Context {
    let text = |path: &Path| path_text::encode(path);
    let home = around.home.canonicalize().unwrap_or_else(|_| around.home.clone());
    let agent = around.agent_directory.canonicalize().unwrap_or_else(|_| around.agent_directory.clone());
    Context {
        session_id: id.to_owned(),
        agent: AgentInfo { directory: text(&agent), sub_agent: around.agent.clone(), ..wanted.agent.clone() },
        workspace: Workspace {
            roots: vec![text(&loaded.resolved.workspace)],
            trusted: wanted.trusted,
            vcs: None,
        },
        machine: Machine {
            os: std::env::consts::OS.to_owned(),
            arch: std::env::consts::ARCH.replace('_', "-"),
            home: text(&home),
            temp: text(&loaded.resolved.temp),
            user: around.user.clone(),
            uid: rustix::process::getuid().as_raw(),
            path: around.path.iter().map(|path| text(path)).collect(),
            toolchains: loaded.places.toolchains.iter().map(|path| text(path)).collect(),
        },
        interactive: wanted.interactive,
        now: 0,
        grants: Vec::new(),
        explain: false,
        attributes: Vec::new(),
    }
}

/// Opens the lock on name changes for all sessions of the user.
fn name_order(state: &Path) -> anyhow::Result<NameOrder> {
    let directory = state.join("names");
    NameOrder::open(&directory)
        .with_context(|| format!("opening the order of changes of names in `{}`", directory.display()))
}

fn absolute(around: &ProcessEnv, path: &Path) -> PathBuf {
    around.cwd.join(path)
}

/// The journal of a session that only decides.
#[derive(Debug)]
struct Unwritten;

impl Journal for Unwritten {
    fn before(&self, _entry: &Entry<'_>) -> Result<(), JournalError> {
        Err(JournalError("this session only says what would be decided".to_owned()))
    }

    fn after(&self, _at: std::time::SystemTime, _request: &str, _outcome: &str) {}
}
