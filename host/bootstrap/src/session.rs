//! Opens a session from settings and policies, with its log, directory and control socket.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::{Context as _, ensure};
use portcullis_audit::Log;
use portcullis_decision::context::{AgentInfo, Machine, Workspace};
use portcullis_decision::pattern::{HostPattern, NetworkPattern, PortSet};
use portcullis_decision::{Context, Grant, GrantPattern, GrantScope, Member, path_text};
use portcullis_profile_runtime::Host;
use portcullis_sandbox::{NameOrder, Tier};
use portcullis_session::{
    Basis, BranchLayer, CommandVariables, Confining, CredentialReader, Entry, GrantStore, Journal,
    JournalError, NoCredentials, NoUser, OwnDirectories, PrivateHome, ProfilePlaces, Prompter,
    SandboxSubject, Session, Setup,
};
use portcullis_settings::{AllowLists, Resolved};
use portcullis_settings_format::{Origin, Position, Warning};

use crate::changes::{self, About, OwnChanges};
use crate::confiner::{confiner, directory_for_commands};
use crate::control::{Control, listen_for};
use crate::credential_offers::SettingsOffers;
use crate::credentials::CredentialSources;
use crate::exports::InBackground;
use crate::grant_keeper::FileKeeper;
use crate::home::{self, ProjectHome};
use crate::journal::AuditJournal;
use crate::loaded_settings::{LoadedSettings, Purpose, Wanted};
use crate::process_env::{OWN_PROGRAM, ProcessEnv, now, random_name};
use crate::reservations::SharedReservations;
use crate::running_sessions::RunningSession;
use crate::scratch::{self, Scratch};
use crate::untrusted_paths::UntrustedPaths;
use crate::{git_settings, policies};

/// Returns the additional variables of commands.
type Variables = Box<dyn Fn() -> CommandVariables + Send + Sync>;

/// A session, with the values that must live as long as it.
#[derive(Debug)]
pub struct OpenSession {
    /// The session.
    pub session: Arc<Session>,
    /// Stores answers that outlive the session.
    pub keeper: Arc<FileKeeper>,
    /// The socket for other terminals, if a user can be asked.
    _control: Option<Control>,
    // Dropped after the session, whose sandbox uses them.
    scratch: Option<Scratch>,
    /// The directories of commands under a profile.
    of_commands: Option<Scratch>,
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "kept for its end"))]
    own_changes: Option<OwnChanges>,
    _home: Option<Arc<ProjectHome>>,
    // Dropped last: the session may log its end.
    _export: Option<InBackground>,
}

impl OpenSession {
    /// Returns the host's directory that is `/tmp` inside.
    pub fn temp(&self) -> Option<PathBuf> {
        let shares_tmp = self.session.settings().shares_tmp;
        if let Some(of_commands) = &self.of_commands {
            return Some(of_commands.temp());
        }
        self.scratch.as_ref().map(|scratch| if shares_tmp { TMP.into() } else { scratch.temp() })
    }

    /// Opens the record of what the session has changed; `None` if it keeps none, or has changed nothing.
    ///
    /// # Errors
    /// If it cannot be used.
    #[cfg(target_os = "linux")]
    pub fn changes(&self, state: &Path) -> anyhow::Result<Option<crate::undo::OpenedChanges>> {
        let stored = self.own_changes.as_ref().and_then(OwnChanges::stored);
        stored.map(|stored| crate::undo::OpenedChanges::open(state, &stored)).transpose()
    }

    /// Gives a file in that directory to the user that commands run as.
    pub fn give_away(&self, file: &std::fs::File) -> std::io::Result<()> {
        use std::os::unix::fs::MetadataExt as _;
        let Some(scratch) = self.scratch.as_ref().filter(|_| rustix::process::geteuid().is_root()) else {
            return Ok(());
        };
        let owner = scratch.temp().metadata()?;
        std::os::unix::fs::fchown(file, Some(owner.uid()), Some(owner.gid()))
    }
}

impl Drop for OpenSession {
    fn drop(&mut self) {
        self.session.close();
    }
}

/// Loads the policies of the settings. Also returns whether one of them uses the allow lists.
pub fn basis(
    around: &ProcessEnv,
    wanted: &Wanted,
    resolved: Resolved,
) -> anyhow::Result<(Basis, AllowLists)> {
    let named: Vec<PathBuf> = wanted.policies.iter().map(|file| around.absolute(file)).collect();
    let cache = around.cache.join("policies");
    let mut loaded = policies::load(&resolved, &named, &cache, &around.agent_directory)?;
    if wanted.purpose == Purpose::Act {
        loaded.take_snapshots_later();
    }
    let mut resolved = resolved;
    let grant = |host| Grant {
        scope: GrantScope::User,
        pattern: GrantPattern::Network(host),
        granted_at: 0,
        expires_at: 0,
    };
    if resolved.unlisted_hosts.are_allowed(wanted.interactive) {
        resolved.grants.push(grant(NetworkPattern { host: HostPattern::Any, ports: PortSet::Every }));
    }
    if loaded.lists == AllowLists::Unheard {
        // No policy asks the allow lists, so the hosts of presets are answers.
        let grants: Vec<Grant> = resolved.preset_hosts().cloned().map(grant).collect();
        resolved.grants.extend(grants);
    }
    Ok((Basis { resolved, chain: loaded.chain }, loaded.lists))
}

/// Returns changed settings with their policies.
fn changed_basis(around: &ProcessEnv, wanted: &Wanted, resolved: Resolved) -> anyhow::Result<Basis> {
    basis(around, wanted, resolved).map(|(basis, _lists)| basis)
}

/// Builds a session from the settings.
pub fn open(
    around: &ProcessEnv,
    wanted: &Wanted,
    loaded: LoadedSettings,
    prompter: Arc<dyn Prompter>,
) -> anyhow::Result<OpenSession> {
    let id = random_name()?;
    let context = context(around, wanted, &loaded, &id);
    open_in(around, wanted, loaded, prompter, &id, context)
}

/// Builds a session whose commands work in a branch of the project.
pub fn open_in_branch(
    around: &ProcessEnv,
    wanted: &Wanted,
    loaded: LoadedSettings,
    prompter: Arc<dyn Prompter>,
    branch: BranchLayer,
) -> anyhow::Result<OpenSession> {
    ensure!(
        confiner(around).is_none(),
        "branches need a sandbox with mounts, which this system does not have"
    );
    let id = random_name()?;
    let context = context(around, wanted, &loaded, &id);
    assemble(around, wanted, loaded, (prompter, None, Some(branch)), &id, context)
}

/// Builds a session in a given context.
pub fn open_in(
    around: &ProcessEnv,
    wanted: &Wanted,
    loaded: LoadedSettings,
    prompter: Arc<dyn Prompter>,
    id: &str,
    context: Context,
) -> anyhow::Result<OpenSession> {
    assemble(around, wanted, loaded, (prompter, None, None), id, context)
}

/// Builds a session that only decides, with a policy beside those of the settings.
///
/// A policy of the settings with the same component or name gives way to it.
///
/// # Errors
/// If a policy of the settings cannot be loaded, or a policy fails to return its rules.
pub fn judging_beside(
    around: &ProcessEnv,
    wanted: &Wanted,
    loaded: LoadedSettings,
    beside: Member,
) -> anyhow::Result<OpenSession> {
    let id = random_name()?;
    let context = context(around, wanted, &loaded, &id);
    assemble(around, wanted, loaded, (Arc::new(NoUser), Some(beside), None), &id, context)
}

fn assemble(
    around: &ProcessEnv,
    wanted: &Wanted,
    loaded: LoadedSettings,
    (prompter, beside, branch): (Arc<dyn Prompter>, Option<Member>, Option<BranchLayer>),
    id: &str,
    context: Context,
) -> anyhow::Result<OpenSession> {
    let keeper = Arc::new(FileKeeper::new(&loaded));
    let (mut basis, lists) = basis(around, wanted, loaded.resolved)?;
    keeper.learn(lists);
    if let Some(beside) = beside {
        let (name, digest) = (beside.policy.name().to_owned(), beside.policy.digest().to_owned());
        let is_other = |member: &Member| member.policy.name() != name && member.policy.digest() != digest;
        basis.chain.members.retain(is_other);
        basis.chain.members.push(beside);
    }
    let (journal, scratch): (Box<dyn Journal>, Option<Scratch>) = match wanted.purpose {
        Purpose::Judge => (Box::new(Unwritten), None),
        Purpose::Act => {
            let log = Log::open(&around.state.join("audit"), id).context("opening the audit log")?;
            let sessions = around.state.join("sessions");
            let scratch = Scratch::make(&sessions, id)
                .with_context(|| format!("making the session's directory in `{}`", sessions.display()))?;
            let is_for_commands = matches!(wanted.inmate, SandboxSubject::Commands);
            if is_for_commands && rustix::process::geteuid().is_root() {
                // If the host is root, commands run as the owner of the project.
                scratch.give_to_owner_of(&basis.resolved.workspace)?;
            }
            let journal = AuditJournal::new(log)
                .reporting(wanted.refusals.as_ref(), basis.resolved.unattended_refusals);
            (Box::new(journal), Some(scratch))
        }
    };
    let own_changes = match &scratch {
        // What changes in a branch is no change of the project; its commit is recorded.
        Some(_) if cfg!(target_os = "linux") && confiner(around).is_none() && branch.is_none() => {
            changes::remove_old(&around.state, basis.resolved.undo);
            let about = About {
                id: id.to_owned(),
                project: basis.resolved.workspace.clone(),
                agent: context.agent.name.clone(),
            };
            Some(OwnChanges::make(&around.state, &about, basis.resolved.undo)?)
        }
        Some(_) | None => None,
    };
    #[cfg(target_os = "linux")]
    if scratch.is_some() && matches!(wanted.inmate, SandboxSubject::Commands) {
        take_back_commits(&around.state, &mut basis.resolved);
    }
    let recorded = own_changes.as_ref().map(OwnChanges::open).transpose()?;
    let home = scratch.as_ref().map(|_| private_home(around, wanted, &mut basis.resolved));
    let order = || {
        let order = name_order(&around.state)?;
        Ok::<_, anyhow::Error>(match &own_changes {
            Some(own) => order.keeping_changes_in(own.store()?, own.project()?),
            None => order,
        })
    };
    let for_commands = commands_scratch(around, scratch.is_some(), id)?;
    let confinement = match (&scratch, &for_commands) {
        (None, _) => Confining::NoCommands,
        (Some(scratch), None) => {
            Confining::Sandbox { executable: OWN_PROGRAM.into(), temp: scratch.temp(), order: order()? }
        }
        (Some(scratch), Some((confiner, of_commands))) => Confining::Profile(ProfilePlaces {
            host: Host { executable: around.executable.clone(), confiner: confiner.clone() },
            files: scratch.directory().to_owned(),
            temp: of_commands.temp(),
            home: home.iter().flatten().next().map(|home| home.kept(scratch.directory()).directory),
            order: order()?,
        }),
    };
    let variables: Variables = match wanted.purpose {
        Purpose::Judge => Box::new(CommandVariables::default),
        Purpose::Act => {
            let project = &basis.resolved.workspace;
            // This applies even if the project is the home directory: a git program there is as untrusted as in any
            // project.
            let reach = UntrustedPaths::for_project(&basis.resolved, &around.homes()).and(project);
            let of_tools = [patience(around), owners()].concat();
            let temp = scratch.as_ref().map(|scratch| temp_of_commands(scratch, for_commands.as_ref()));
            let of_git = temp.map(|temp| git_settings::asked(around, reach, temp));
            Box::new(move || {
                let of_git = of_git.as_ref().map(|asked| asked()).unwrap_or_default();
                let variables = of_tools.iter().cloned().chain(of_git.variables).collect();
                CommandVariables { variables, ..of_git }
            })
        }
    };
    let credentials: Arc<dyn CredentialReader> = match &scratch {
        None => Arc::new(NoCredentials),
        Some(scratch) => Arc::new(CredentialSources::new(
            around,
            UntrustedPaths::for_project(&basis.resolved, &around.homes()),
            Some((temp_of_commands(scratch, for_commands.as_ref()), basis.resolved.temp.clone())),
        )),
    };
    let mut record = running_session(id, &context);
    let setup = Setup {
        context,
        clock: Box::new(now),
        journal,
        prompter,
        keeper: Arc::clone(&keeper) as Arc<dyn GrantStore>,
        reservations: Box::new(SharedReservations::new(&around.state, id, &around.agent)),
        changes: recorded,
        confinement,
        own: OwnDirectories {
            branch,
            ..own_directories(around, wanted, &basis.resolved, (scratch.as_ref(), home.as_ref()))
        },
        inmate: wanted.inmate.clone(),
        reader: wanted.reader,
        credentials,
        offers: Box::new(SettingsOffers::new(around, wanted, changed_basis)),
        variables,
    };
    let session = portcullis_session::open(setup, basis).context("opening the session")?;
    if let Some(scratch) = &scratch {
        let force = session.effective_policy();
        let tier = force.confinement.as_ref().map_or(Tier::None, |confinement| confinement.report().tier());
        record.tier = tier.name().to_owned();
        record
            .write(scratch.directory())
            .context("writing the record of the session for `portcullis status`")?;
    }
    let control = match &scratch {
        // The peer cannot be told elsewhere, and a long path cannot be shortened.
        Some(scratch) if wanted.interactive && cfg!(target_os = "linux") => Some(
            listen_for(&session, scratch.directory())
                .context("opening the session to `portcullis asks` and `portcullis grants`")?,
        ),
        _ => None,
    };
    let of_commands = for_commands.map(|(_, scratch)| scratch);
    let home = home.flatten();
    let export = scratch.as_ref().and_then(|_| InBackground::start(around));
    Ok(OpenSession {
        session,
        keeper,
        _control: control,
        scratch,
        of_commands,
        own_changes,
        _home: home,
        _export: export,
    })
}

/// Returns the record of a session that starts now.
fn running_session(id: &str, context: &Context) -> RunningSession {
    let since = now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    RunningSession {
        id: id.to_owned(),
        pid: std::process::id(),
        agent: context.agent.name.clone(),
        agent_version: context.agent.version.clone(),
        project: context.workspace.roots.first().cloned().unwrap_or_default(),
        interactive: context.interactive,
        started_at_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
        tier: Tier::None.name().to_owned(),
    }
}

/// Returns the context of a session's decisions.
#[must_use]
pub fn context(around: &ProcessEnv, wanted: &Wanted, loaded: &LoadedSettings, id: &str) -> Context {
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

/// Returns variables for programs that take a refused connection for a fault that passes, unless the user sets them.
///
/// npm tries twice more after any error, 10 and 60 seconds later; with these it does one and three seconds later.
fn patience(around: &ProcessEnv) -> Vec<(String, String)> {
    let usual =
        [("npm_config_fetch_retry_mintimeout", "1000"), ("npm_config_fetch_retry_maxtimeout", "3000")];
    let is_set = |wanted: &str| around.variables.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted));
    let unset = usual.into_iter().filter(|(name, _)| !is_set(name));
    unset.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Returns the variable that keeps tar from giving files to the users that an archive names, as it does for root.
///
/// In the sandbox there is no other user, and tar would fail.
fn owners() -> Vec<(String, String)> {
    let options = || ("TAR_OPTIONS".to_owned(), "--no-same-owner".to_owned());
    rustix::process::geteuid().is_root().then(options).into_iter().collect()
}

/// Returns the directories that the sandbox for commands has of its own. Without `scratch` no command runs.
fn own_directories(
    around: &ProcessEnv,
    wanted: &Wanted,
    resolved: &Resolved,
    (scratch, home): (Option<&Scratch>, Option<&Option<Arc<ProjectHome>>>),
) -> OwnDirectories {
    if !matches!(wanted.inmate, SandboxSubject::Commands) {
        return OwnDirectories::default();
    }
    let runtime = around.runtime_directory();
    let source = |name| scratch.map(|scratch| scratch.own(name)).unwrap_or_default();
    let mut directories = vec![(runtime.clone(), source(scratch::RUNTIME))];
    // Who works in it has more there than the project.
    if !around.homes().iter().any(|home| home.starts_with(VAR_TMP))
        && !resolved.workspace.starts_with(VAR_TMP)
    {
        directories.push((VAR_TMP.into(), source(scratch::VAR_TMP)));
    }
    let kept = match (scratch, home) {
        (Some(scratch), Some(Some(home))) => Some(home.kept(scratch.directory())),
        (None, _) => None,
        // It could not be opened.
        (Some(_), _) => {
            return OwnDirectories { directories, runtime: Some(runtime), home: None, branch: None };
        }
    };
    let home = resolved.homes.first().map(|path| PrivateHome {
        path: path.clone(),
        caches: home::caches(path),
        kept,
    });
    OwnDirectories { directories, runtime: Some(runtime), home, branch: None }
}

/// Takes back commits of the project's branches that were interrupted, and warns of them.
#[cfg(target_os = "linux")]
fn take_back_commits(state: &Path, resolved: &mut Resolved) {
    let project = &resolved.workspace;
    let all = crate::branches::stored(state, Some(project));
    let texts = match all.and_then(|all| crate::branches::finish_interrupted(state, &all)) {
        Ok(names) => names
            .iter()
            .map(|name| format!("a commit of branch `{name}` was interrupted, and is taken back"))
            .collect(),
        Err(error) => vec![format!("{error:#}")],
    };
    let origin = || Origin { file: state.join("branches"), pointer: String::new(), at: Position::default() };
    resolved.warnings.extend(texts.into_iter().map(|text| Warning { text, origin: origin() }));
}

/// Makes the directories that commands write under a profile, and returns the confiner; `None` for other sandboxes.
fn commands_scratch(
    around: &ProcessEnv,
    runs_commands: bool,
    id: &str,
) -> anyhow::Result<Option<(PathBuf, Scratch)>> {
    let Some(confiner) = confiner(around).filter(|_| runs_commands) else { return Ok(None) };
    let sessions = directory_for_commands(around).join("sessions");
    let made = Scratch::make(&sessions, id)
        .with_context(|| format!("making a directory for commands in `{}`", sessions.display()))?;
    Ok(Some((confiner, made)))
}

/// Returns the temporary directory of commands as the machine names it.
fn temp_of_commands(scratch: &Scratch, of_commands: Option<&(PathBuf, Scratch)>) -> PathBuf {
    of_commands.map_or_else(|| scratch.temp(), |(_, scratch)| scratch.temp())
}

/// Opens the private home for the session's commands. Where that fails the session goes on without, with a warning.
fn private_home(around: &ProcessEnv, wanted: &Wanted, resolved: &mut Resolved) -> Option<Arc<ProjectHome>> {
    if !matches!(wanted.inmate, SandboxSubject::Commands) {
        return None;
    }
    let owner = resolved.workspace.metadata().ok().map(|found| (found.uid(), found.gid()));
    let owner = owner.filter(|(uid, _)| rustix::process::geteuid().is_root() && *uid != 0);
    let most = resolved.home_mib.saturating_mul(1 << 20);
    let state = match confiner(around) {
        Some(_) => directory_for_commands(around),
        None => around.state.clone(),
    };
    match ProjectHome::open(&state, &resolved.workspace, owner, most) {
        Ok(home) => {
            let home = Arc::new(home);
            let measured = Arc::clone(&home);
            // It takes long where there is much, and the session does not need it.
            let _runs_beside = std::thread::spawn(move || measured.note_size());
            Some(home)
        }
        Err(error) => {
            let text = format!(
                "the private home of this project cannot be used, so the home directory is closed to commands: \
                 {error:#}; `portcullis home clear` removes it"
            );
            let file = state.join("homes");
            resolved.warnings.push(Warning {
                text,
                origin: Origin { file, pointer: String::new(), at: Position::default() },
            });
            None
        }
    }
}

/// The machine's directory for temporary files.
const TMP: &str = "/tmp";

/// The machine's directory for temporary files that outlive a restart.
const VAR_TMP: &str = "/var/tmp";

/// Opens the lock on name changes for all sessions of the user.
fn name_order(state: &Path) -> anyhow::Result<NameOrder> {
    let directory = state.join("names");
    NameOrder::open(&directory)
        .with_context(|| format!("opening the order of changes of names in `{}`", directory.display()))
}

/// The journal of a session that only decides.
#[derive(Debug)]
struct Unwritten;

impl Journal for Unwritten {
    fn before(&self, _entry: &Entry<'_>) -> Result<(), JournalError> {
        Err(JournalError("this session only says what would be decided".to_owned()))
    }

    fn after(&self, _at: SystemTime, _request: &str, _outcome: &str) {}
}
