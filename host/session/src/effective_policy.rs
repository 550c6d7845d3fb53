//! The policy in force: the compiled rules, the sandbox built from them, and the gate that opens files.

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portcullis_decision::context::Vcs;
use portcullis_decision::pattern::{FilePattern, HostPattern, NetworkPattern, PortSet};
use portcullis_decision::profile::{FileRight, FileRights, FileRule, NetworkRule};
use portcullis_decision::reservation::RESERVATIONS;
use portcullis_decision::rules::{OwnPlaces, RulePlace};
use portcullis_decision::{
    Base, Caller, Context, Effect, Grant, GrantPattern, Profile, Request, RuleLayer, RuleSet, path_text,
};
use portcullis_file_gate::{Gate, RootView, Views};
use portcullis_sandbox::{IsolationMode, Report, Tier};
use portcullis_session_sandbox::confining::Confining;
use portcullis_session_sandbox::error::{OpenError, with_causes};
use portcullis_session_sandbox::host_sockets::HostSockets;
use portcullis_session_sandbox::network::{Network, Sandbox};
use portcullis_session_sandbox::own_directories::{BranchLayer, Changes, OwnDirectories};
use portcullis_session_sandbox::replaceable_paths::{ReplaceablePaths, Surveyed};
use portcullis_session_sandbox::requirements::{Requirements, required_tier};
use portcullis_session_sandbox::sandbox::confinement;
use portcullis_session_sandbox::user_links::{UserLinks, roots};
use portcullis_settings_format::Layer as SettingsLayer;

use crate::basis::Basis;
use crate::chain_rules;
use crate::setup::Setup;

/// The policy in force for one command.
pub(crate) struct ForCommand {
    /// Its sandbox.
    pub(crate) sandbox: Arc<Sandbox>,
    /// Its rules, if they differ from the session's.
    pub(crate) rules: Option<Arc<RuleSet>>,
}

/// The policy in force at one time.
#[derive(Debug)]
pub struct EffectivePolicy {
    /// The rules.
    pub rules: RuleSet,
    /// The sandbox, or the reason why there is none.
    pub confinement: Result<Arc<Sandbox>, String>,
    /// The gate that opens files.
    pub gate: Arc<Gate>,
    /// The settings and policies that it was built from.
    pub basis: Arc<Basis>,
    /// The user's links as they were at the start of the session.
    pub(crate) links: Arc<UserLinks>,
    places: Vec<RulePlace>,
    layers: Vec<RuleLayer>,
    /// The sandbox's own directories, before rules remove any.
    own: OwnPlaces,
    /// Whether a policy uses reservations.
    pub(crate) wants_reservations: bool,
    /// The grants that it was built with.
    grants: Vec<Grant>,
    /// Writable paths that its mounts do not pin.
    loose: Mutex<ReplaceablePaths>,
    /// The sockets that its sandbox hides.
    sockets: HostSockets,
    /// The facts about version control that its rules were made for.
    pub(crate) vcs: Option<Vcs>,
}

/// The sources of the rules.
#[derive(Clone, Copy)]
struct Source<'a> {
    basis: &'a Arc<Basis>,
    links: &'a Arc<UserLinks>,
    /// The facts about version control that policies depend on.
    vcs: Option<&'a Vcs>,
}

impl EffectivePolicy {
    /// Compiles the rules and sets up the sandbox. Reuses parts of `before` that need not change.
    pub(crate) fn build(
        setup: &Setup,
        basis: &Arc<Basis>,
        network: Option<&Network>,
        grants: &[Grant],
        (before, vcs): (Option<&Arc<Self>>, Option<Vcs>),
    ) -> Result<Self, OpenError> {
        let (resolved, roots) = (&basis.resolved, roots(&basis.resolved));
        let links = match before {
            Some(before) if before.links.are_below(&roots) => Arc::clone(&before.links),
            Some(_) | None => Arc::new(UserLinks::find(&resolved.workspace, &resolved.homes, roots)?),
        };
        let source = Source { basis, links: &links, vcs: vcs.as_ref() };
        let usual = (&setup.confinement, network);
        if let Confining::Profile(places) = &setup.confinement {
            // Without mounts every directory has the machine's name.
            let (walls, temp) = (IsolationMode::Landlock, &places.temp);
            return Self::build_for(setup, source, temp, usual, walls, grants, before);
        }
        if before.is_some_and(|before| before.is_one(basis))
            && let Some(without) = Self::without_namespaces(setup, source, grants, before)?
        {
            return Ok(without);
        }
        let built = Self::build_for(
            setup,
            source,
            &basis.resolved.temp,
            usual,
            IsolationMode::Namespaces,
            grants,
            before,
        )?;
        if built.confinement.is_err()
            && let Some(without) = Self::without_namespaces(setup, source, grants, None)?
        {
            return Ok(without);
        }
        if built.confinement.is_ok() && built.tier() < Tier::Full && built.own.home.is_some() {
            // No broker protects names in that tier.
            let temp = &basis.resolved.temp;
            let own = OwnPlaces { home: None, ..built.own.clone() };
            let homeless = Self { own, layers: layers(setup, source, temp)?, ..built };
            let walls = IsolationMode::Namespaces;
            let before = Some(&Arc::new(homeless));
            return Self::build_for(setup, source, temp, usual, walls, grants, before);
        }
        match (&built.confinement, &setup.confinement) {
            // Without a sandbox, `/tmp` is the directory that all users share. So only the session's own directory is
            // free, under its real name.
            (Err(_), Confining::Sandbox { temp, .. }) if built.rules.base().temp != *temp => {
                let Self { confinement, .. } = built;
                let none = (&Confining::NoCommands, None);
                let without =
                    Self::build_for(setup, source, temp, none, IsolationMode::Namespaces, grants, None)?;
                Ok(Self { confinement, ..without })
            }
            _ => Ok(built),
        }
    }

    /// Builds a sandbox without namespaces, if the settings accept that and it works.
    ///
    /// The temporary directory has its real name in it.
    fn without_namespaces(
        setup: &Setup,
        source: Source<'_>,
        grants: &[Grant],
        before: Option<&Arc<Self>>,
    ) -> Result<Option<Self>, OpenError> {
        let Confining::Sandbox { temp, .. } = &setup.confinement else { return Ok(None) };
        // The agent itself would lack the network that it needs, and a branch its mount.
        if required_tier(&source.basis.resolved) > Tier::Landlock
            || setup.inmate.is_agent()
            || setup.own.branch.is_some()
        {
            return Ok(None);
        }
        let usual = (&setup.confinement, None);
        let built = Self::build_for(setup, source, temp, usual, IsolationMode::Landlock, grants, before)?;
        Ok(built.confinement.is_ok().then_some(built))
    }

    /// Returns true if this is a sandbox without namespaces, built from the same settings.
    fn is_one(&self, basis: &Arc<Basis>) -> bool {
        self.walls() == IsolationMode::Landlock && Arc::ptr_eq(&self.basis, basis)
    }

    fn walls(&self) -> IsolationMode {
        match self.tier() {
            Tier::Profile | Tier::Landlock => IsolationMode::Landlock,
            Tier::None | Tier::Namespaces | Tier::Full => IsolationMode::Namespaces,
        }
    }

    fn build_for(
        setup: &Setup,
        source: Source<'_>,
        temp: &Path,
        (confining, network): (&Confining, Option<&Network>),
        walls: IsolationMode,
        grants: &[Grant],
        before: Option<&Arc<Self>>,
    ) -> Result<Self, OpenError> {
        let Source { basis, links, vcs } = source;
        let own = own_places(setup, confining, walls, before);
        let (layers, base) = match before {
            // The standing rules do not change with grants, so the earlier answers are used.
            Some(before) if Arc::ptr_eq(&before.basis, basis) && before.vcs.as_ref() == vcs => {
                (before.layers.clone(), Self::base(basis, &before.rules.base().temp, own.clone()))
            }
            _ => {
                let mut layers = layers(setup, source, temp)?;
                if own.home.is_some() {
                    layers.iter_mut().for_each(|layer| leave_programs(layer, &setup.own));
                }
                (layers, Self::base(basis, temp, own.clone()))
            }
        };
        let rules = RuleSet::compile(layers.clone(), base, grants);
        let places = rules.places();
        let loose = ReplaceablePaths::among(&places, rules.base());
        let surveyed = Surveyed { rules: &rules, places: &places, loose: &loose };
        // Before the sandbox looks for them: one that comes meanwhile is a new one for the next command.
        let sockets = HostSockets::now(&rules);
        let (confinement, sockets) = match before {
            Some(before)
                if before.confinement.is_ok()
                    // A profile is written anew, and tested: it says more than the places.
                    && before.tier() != Tier::Profile
                    && before.places == places
                    && *before.loose() == loose
                    && before.rules.data() == rules.data()
                    && before.rules.loopback_ports() == rules.loopback_ports()
                    // The other inputs of the sandbox, besides the rules.
                    && before.basis.resolved.lifted == basis.resolved.lifted
                    && before.basis.resolved.sockets == basis.resolved.sockets
                    && before.basis.resolved.shares_tmp == basis.resolved.shares_tmp
                    && before.basis.resolved.ask.hold == basis.resolved.ask.hold
                    && required_tier(&before.basis.resolved) == required_tier(&basis.resolved)
                    && before.sockets.has_all_of(&sockets)
                    && Arc::ptr_eq(&before.links, links) =>
            {
                (before.confinement.clone(), before.sockets.clone())
            }
            Some(before)
                if before.confinement.is_err()
                    && Arc::ptr_eq(&before.basis, basis)
                    && before.vcs.as_ref() == vcs =>
            {
                (before.confinement.clone(), sockets)
            }
            _ => {
                let wanted = Requirements::new(setup.inside(), (&basis.resolved, links), walls);
                (confinement((confining, network), surveyed, None, wanted), sockets)
            }
        };
        let gate = Gate::new(views(&confinement, rules.base(), setup.own.branch.as_ref()))
            .map_err(OpenError::Gate)?;
        let wants_reservations = layers.iter().any(wants_reservations);
        let basis = Arc::clone(basis);
        let (gate, grants) = (Arc::new(gate), grants.to_vec());
        let loose = Mutex::new(loose);
        let links = Arc::clone(links);
        Ok(Self {
            rules,
            confinement,
            gate,
            basis,
            links,
            places,
            layers,
            own,
            wants_reservations,
            grants,
            loose,
            sockets,
            vcs: vcs.cloned(),
        })
    }

    /// Returns the base rules, with `temp` as the session's temporary directory as commands see it.
    fn base(basis: &Basis, temp: &Path, own: OwnPlaces) -> Base {
        Base { temp: temp.to_owned(), own, ..basis.resolved.base() }
    }

    /// Returns the base rules of this policy, before rules and grants have taken anything from them.
    fn own_base(&self) -> Base {
        Self::base(&self.basis, &self.rules.base().temp, self.own.clone())
    }

    /// Returns the same policy without a sandbox: commands are refused for `reason`.
    pub(crate) fn refusing(self, reason: String) -> Self {
        Self { confinement: Err(reason), ..self }
    }

    /// Returns a policy with only `grants`, for use if a build with them fails.
    ///
    /// Commands are refused for `reason`, and so is each file once the earlier sandbox has ended.
    pub(crate) fn closed(&self, grants: &[Grant], reason: String) -> Self {
        let base = self.own_base();
        Self {
            rules: RuleSet::compile(self.layers.clone(), base, grants),
            confinement: Err(reason),
            gate: Arc::clone(&self.gate),
            basis: Arc::clone(&self.basis),
            links: Arc::clone(&self.links),
            places: self.places.clone(),
            layers: self.layers.clone(),
            own: self.own.clone(),
            wants_reservations: self.wants_reservations,
            grants: grants.to_vec(),
            loose: Mutex::new(self.loose().clone()),
            sockets: self.sockets.clone(),
            vcs: self.vcs.clone(),
        }
    }

    /// Returns a policy that denies everything, for use if a policy fails to return its rules for `vcs`.
    pub(crate) fn without_rules(&self, grants: &[Grant], reason: String, vcs: Option<Vcs>) -> Self {
        let mut layers = self.layers.clone();
        layers.push(deny_all(&reason));
        let rules = RuleSet::compile(layers.clone(), self.own_base(), grants);
        Self { rules, layers, vcs, ..self.closed(grants, reason) }
    }

    /// Returns true if it was built with a grant that is not in `grants`.
    ///
    /// Such a grant has expired or was revoked.
    pub(crate) fn reaches_beyond(&self, grants: &[Grant]) -> bool {
        self.grants.iter().any(|grant| !grants.contains(grant))
    }

    /// Returns the policy in force for one command.
    ///
    /// It has rules and sandbox of the session, or others if policies have stricter rules for it or the user has
    /// granted it `opened`.
    pub(crate) fn for_command(
        &self,
        setup: &Setup,
        network: Option<&Network>,
        request: &Request,
        context: &Context,
        (grants, opened): (&[Grant], &[Grant]),
    ) -> Result<ForCommand, String> {
        let stricter = chain_rules::for_command(&self.basis.chain, request, context)
            .map_err(|error| with_causes(&error))?;
        let is_all_open = opened.iter().all(|grant| self.is_open(grant));
        if stricter.is_empty() && is_all_open {
            return Ok(ForCommand { sandbox: self.confinement.clone()?, rules: None });
        }
        // Process limits and environment need no other sandbox.
        let is_same_sandbox = is_all_open && !stricter.iter().any(shapes_sandbox);
        let grants = &[grants, opened].concat();
        let mut layers = self.layers.clone();
        layers.extend(setup.inmate.relaxed(stricter));
        let base = self.own_base();
        let rules = Arc::new(RuleSet::compile(layers, base, grants));
        if is_same_sandbox {
            return Ok(ForCommand { sandbox: self.confinement.clone()?, rules: Some(rules) });
        }
        let places = rules.places();
        let loose = ReplaceablePaths::among(&places, rules.base());
        let surveyed = Surveyed { rules: &rules, places: &places, loose: &loose };
        let how = (&setup.confinement, network);
        // The session's own sandbox has the directories of changes in use.
        let wanted = Requirements {
            changes: Changes::Passing,
            ..Requirements::new(setup.inside(), (&self.basis.resolved, &self.links), self.walls())
        };
        let sandbox = confinement(how, surveyed, Some(&rules), wanted)?;
        Ok(ForCommand { sandbox, rules: Some(rules) })
    }

    /// Returns the rules of one command, if policies have stricter ones for it than for the session.
    ///
    /// `None` if they have none or fail.
    pub(crate) fn stricter_rules(
        &self,
        setup: &Setup,
        request: &Request,
        context: &Context,
    ) -> Option<RuleSet> {
        let stricter = chain_rules::for_command(&self.basis.chain, request, context).ok()?;
        if stricter.is_empty() {
            return None;
        }
        let mut layers = self.layers.clone();
        layers.extend(setup.inmate.relaxed(stricter));
        let base = self.own_base();
        Some(RuleSet::compile(layers, base, &self.grants))
    }

    /// Returns true if commands may use the path of a grant without it.
    fn is_open(&self, grant: &Grant) -> bool {
        let GrantPattern::Path(granted) = &grant.pattern else { return false };
        let (FilePattern::Exact(path) | FilePattern::Tree(path)) = &granted.pattern else { return false };
        let right = if granted.rights.write { FileRight::Write } else { FileRight::Read };
        self.rules.answer(path, right, Caller::Command).effect == Effect::Allow
    }

    /// Returns true if each of its grants is live at `now`, and its sandbox shows the current files.
    pub(crate) fn outlives(&self, now: u32) -> bool {
        self.grants.iter().all(|grant| grant.is_live(now))
            && (self.confinement.is_err() || self.loose().is_as_it_was())
    }

    /// Returns true if its sandbox hides all sockets of the host that exist now.
    pub(crate) fn hides_sockets(&self) -> bool {
        // A profile refuses all sockets that the settings do not name.
        let needs_none = self.confinement.is_err() || self.tier() == Tier::Profile;
        needs_none || self.sockets.has_all_of(&HostSockets::now(&self.rules))
    }

    /// Accepts the current state of the files, because no better sandbox can be built until something else changes.
    pub(crate) fn accept_current_files(&self) {
        *self.loose() = ReplaceablePaths::among(&self.places, self.rules.base());
    }

    fn loose(&self) -> MutexGuard<'_, ReplaceablePaths> {
        self.loose.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the tier of the sandbox for commands.
    #[must_use]
    pub fn tier(&self) -> Tier {
        self.report().map_or(Tier::None, Report::tier)
    }

    /// Returns the control group controllers that bound all commands together, or `none`.
    ///
    /// The names are the kernel's.
    pub(crate) fn controllers(&self) -> String {
        let names = self.report().into_iter().flat_map(|report| &report.controllers);
        let names: Vec<&str> = names.map(|controller| controller.name()).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(" ") }
    }

    /// Returns the report on the enforcement by the kernel, or `None` without a sandbox.
    #[must_use]
    pub fn report(&self) -> Option<&Report> {
        self.confinement.as_ref().ok().map(|confinement| confinement.report())
    }
}

/// Returns true if a layer has rules that shape the sandbox; limits and environment are per command.
fn shapes_sandbox(layer: &RuleLayer) -> bool {
    let Profile { files, network, budgets, environment: _, variables: _, limits: _, attributes: _ } =
        &layer.profile;
    !(files.is_empty() && network.is_empty() && budgets.is_empty())
}

/// Returns a layer that denies all files and connections.
fn deny_all(reason: &str) -> RuleLayer {
    let file = FileRule {
        id: "host.no-rules".to_owned(),
        pattern: FilePattern::Tree("/".into()),
        rights: FileRights { read: true, write: true, execute: true },
        effect: Effect::Deny,
        conceal: false,
        condition: String::new(),
        reason: reason.to_owned(),
        setting: String::new(),
    };
    let network = NetworkRule {
        id: file.id.clone(),
        target: NetworkPattern { host: HostPattern::Any, ports: PortSet::Every },
        program: "*".to_owned(),
        effect: Effect::Deny,
        reason: reason.to_owned(),
        setting: String::new(),
    };
    let profile = Profile { files: vec![file], network: vec![network], ..Profile::default() };
    RuleLayer { name: "host".to_owned(), profile, tightens: true }
}

fn layers(setup: &Setup, source: Source<'_>, temp: &Path) -> Result<Vec<RuleLayer>, OpenError> {
    let basis = source.basis;
    let mut context = setup.context.clone();
    context.machine.temp = path_text::encode(temp);
    context.workspace.vcs = source.vcs.cloned();
    let mut layers = basis.resolved.ceiling();
    layers.extend(chain_rules::standing(&basis.chain, &context)?);
    layers.iter_mut().for_each(|layer| name_temp(layer, &basis.resolved.temp, temp));
    Ok(setup.inmate.rules(layers))
}

/// Applies the layer's permissions on the session's temporary directory to its name in the sandbox.
///
/// Settings and policies call the directory `usual`; in the sandbox it is `temp`. The machine's own directory named
/// `usual` is not meant.
fn name_temp(layer: &mut RuleLayer, usual: &Path, temp: &Path) {
    for rule in layer.profile.files.iter_mut().filter(|rule| rule.effect == Effect::Allow) {
        match &mut rule.pattern {
            FilePattern::Tree(path) | FilePattern::Exact(path) if path == usual => {
                temp.clone_into(path);
            }
            FilePattern::Tree(_)
            | FilePattern::Exact(_)
            | FilePattern::Glob(_)
            | FilePattern::Name { .. } => {}
        }
    }
}

/// Returns the sandbox's own directories, as far as they are possible.
fn own_places(
    setup: &Setup,
    confining: &Confining,
    walls: IsolationMode,
    before: Option<&Arc<EffectivePolicy>>,
) -> OwnPlaces {
    match (&setup.confinement, confining, walls, before) {
        (Confining::Profile(places), ..) => {
            OwnPlaces { directories: places.home.iter().cloned().collect(), home: None }
        }
        // Without mounts every directory is the machine's.
        (_, _, IsolationMode::Landlock, _) | (Confining::Sandbox { .. }, Confining::NoCommands, ..) => {
            OwnPlaces::default()
        }
        (.., Some(before)) if before.tier() == Tier::Namespaces => before.own.clone(),
        _ => setup.own.places(),
    }
}

/// Removes a layer's rules on directories of programs in the private home, in which the user's own do not change. Rules
/// from the settings stay.
fn leave_programs(layer: &mut RuleLayer, own: &OwnDirectories) {
    let settings = [
        SettingsLayer::User,
        SettingsLayer::Machine,
        SettingsLayer::Team,
        SettingsLayer::Project,
        SettingsLayer::Sandbox,
    ];
    if settings.iter().any(|known| known.name() == layer.name) {
        return;
    }
    let is_left = |path: &Path| own.programs().any(|programs| programs == path);
    layer.profile.files.retain(|rule| !rule.pattern.literal().is_some_and(is_left));
}

fn wants_reservations(layer: &RuleLayer) -> bool {
    layer.profile.attributes.iter().any(|attribute| attribute.name == RESERVATIONS)
}

fn views(confinement: &Result<Arc<Sandbox>, String>, base: &Base, branch: Option<&BranchLayer>) -> Views {
    match confinement {
        // In this tier no mounts change the files behind names, and the rules are evaluated in any case.
        Ok(confinement) if confinement.report().tier() == Tier::Landlock => Views::Host,
        Ok(confinement) => {
            let (base, branch) = (base.clone(), branch.cloned());
            let Some(view) = confinement.view() else { return Views::Host };
            Views::Session {
                root: Box::new(SessionRoot(view)),
                // No file of the machine is opened in the temporary directory, even one that is shown there.
                // In a branch, no file of the project itself is either.
                is_own: Box::new(move |path| {
                    path.starts_with(&base.temp)
                        || base.is_own(path)
                        || branch.as_ref().is_some_and(|branch| branch.holds(path))
                }),
            }
        }
        Err(_) => Views::Host,
    }
}

/// The sandbox's root, in the form that the file gate needs.
struct SessionRoot(portcullis_sandbox_runtime::View);

impl RootView for SessionRoot {
    fn root(&self) -> std::io::Result<BorrowedFd<'_>> {
        self.0.root().map_err(std::io::Error::other)
    }
}
