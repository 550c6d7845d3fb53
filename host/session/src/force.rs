//! What is in force: the compiled rules, the sandbox made of them, and the gate that opens files in it.

use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portcullis_confine::{NameOrder, Report, Tier, Walls};
use portcullis_decision::pattern::FilePattern;
use portcullis_decision::profile::FileRight;
use portcullis_decision::reservation::RESERVATIONS;
use portcullis_decision::rules::Place;
use portcullis_decision::{
    Base, Caller, Context, Effect, Grant, GrantPattern, Profile, Request, RuleLayer, RuleSet, path_text,
};
use portcullis_file_gate::{Gate, RootView, Views};

use crate::chain_rules;
use crate::error::{OpenError, with_causes};
use crate::executed::roots;
use crate::loose::{Loose, Surveyed};
use crate::network::{Network, Sandbox};
use crate::sandbox::{Wanted, confinement, required_tier};
use crate::session::{Basis, Setup};
use crate::user_links::UserLinks;

/// How commands are confined.
#[derive(Debug, Clone)]
pub enum Confining {
    /// In a sandbox.
    Sandbox {
        /// Our own program, which is also the keeper.
        executable: PathBuf,
        /// The host's directory that is `/tmp` inside.
        temp: PathBuf,
        /// The order in which names are changed, for all sessions of the user.
        order: NameOrder,
    },
    /// No command will be run: `check` and the like.
    NoCommands,
}

/// What holds for one command.
pub(crate) struct ForCommand {
    /// Where it runs.
    pub(crate) sandbox: Arc<Sandbox>,
    /// Its rules, where they are not those of the session.
    pub(crate) rules: Option<Arc<RuleSet>>,
}

/// What is in force at one time.
#[derive(Debug)]
pub struct Force {
    /// The rules.
    pub rules: RuleSet,
    /// The sandbox, or why there is none.
    pub confinement: Result<Arc<Sandbox>, String>,
    /// Opens files.
    pub gate: Arc<Gate>,
    /// What they were made of.
    pub basis: Arc<Basis>,
    /// The user's links as they were when the session began.
    pub(crate) links: Arc<UserLinks>,
    places: Vec<Place>,
    layers: Vec<RuleLayer>,
    /// Whether a policy wants to be told of reservations.
    pub(crate) wants_reservations: bool,
    /// What it was made with.
    grants: Vec<Grant>,
    /// What its mounts do not hold on to.
    loose: Mutex<Loose>,
}

impl Confining {
    /// The order in which names are changed; none where no command changes any.
    pub(crate) fn order(&self) -> Option<&NameOrder> {
        match self {
            Self::Sandbox { order, .. } => Some(order),
            Self::NoCommands => None,
        }
    }
}

impl Force {
    /// Compiles the rules and sets the sandbox up; what `before` has is kept where it need not change.
    pub(crate) fn build(
        setup: &Setup,
        basis: &Arc<Basis>,
        network: Option<&Network>,
        grants: &[Grant],
        before: Option<&Arc<Self>>,
    ) -> Result<Self, OpenError> {
        let (resolved, roots) = (&basis.resolved, roots(&basis.resolved));
        let links = match before {
            Some(before) if before.links.are_below(&roots) => Arc::clone(&before.links),
            Some(_) | None => Arc::new(UserLinks::find(&resolved.workspace, &resolved.homes, roots)),
        };
        let usual = (&setup.confinement, network);
        if before.is_some_and(|before| before.is_one(basis))
            && let Some(without) = Self::without_namespaces(setup, (basis, &links), grants, before)?
        {
            return Ok(without);
        }
        let built = Self::build_for(
            setup,
            (basis, &links),
            &basis.resolved.temp,
            usual,
            Walls::Namespaces,
            grants,
            before,
        )?;
        if built.confinement.is_err()
            && let Some(without) = Self::without_namespaces(setup, (basis, &links), grants, None)?
        {
            return Ok(without);
        }
        match (&built.confinement, &setup.confinement) {
            // Without a sandbox the usual temporary directory is the one that everybody shares. Only
            // the session's own is free then, under its real name.
            (Err(_), Confining::Sandbox { temp, .. }) if built.rules.base().temp != *temp => {
                let Self { confinement, .. } = built;
                let none = (&Confining::NoCommands, None);
                let without =
                    Self::build_for(setup, (basis, &links), temp, none, Walls::Namespaces, grants, None)?;
                Ok(Self { confinement, ..without })
            }
            _ => Ok(built),
        }
    }

    /// A sandbox without namespaces, where that is enough for the settings and can be had. Its temporary directory has
    /// its real name.
    fn without_namespaces(
        setup: &Setup,
        (basis, links): (&Arc<Basis>, &Arc<UserLinks>),
        grants: &[Grant],
        before: Option<&Arc<Self>>,
    ) -> Result<Option<Self>, OpenError> {
        let Confining::Sandbox { temp, .. } = &setup.confinement else { return Ok(None) };
        // The agent itself would be without the network that it needs.
        if required_tier(&basis.resolved) > Tier::Landlock || setup.inmate.is_agent() {
            return Ok(None);
        }
        let usual = (&setup.confinement, None);
        let built = Self::build_for(setup, (basis, links), temp, usual, Walls::Landlock, grants, before)?;
        Ok(built.confinement.is_ok().then_some(built))
    }

    /// Whether this is a sandbox without namespaces, by the same settings.
    fn is_one(&self, basis: &Arc<Basis>) -> bool {
        self.walls() == Walls::Landlock && Arc::ptr_eq(&self.basis, basis)
    }

    fn walls(&self) -> Walls {
        if self.tier() == Tier::Landlock { Walls::Landlock } else { Walls::Namespaces }
    }

    fn build_for(
        setup: &Setup,
        (basis, links): (&Arc<Basis>, &Arc<UserLinks>),
        temp: &Path,
        (confining, network): (&Confining, Option<&Network>),
        walls: Walls,
        grants: &[Grant],
        before: Option<&Arc<Self>>,
    ) -> Result<Self, OpenError> {
        let (layers, base) = match before {
            // The standing rules were answered once; they do not change with grants.
            Some(before) if Arc::ptr_eq(&before.basis, basis) => {
                (before.layers.clone(), Self::base(basis, &before.rules.base().temp))
            }
            _ => (layers(setup, basis, temp)?, Self::base(basis, temp)),
        };
        let rules = RuleSet::compile(layers.clone(), base, grants);
        let places = rules.places();
        let loose = Loose::among(&places, rules.base());
        let surveyed = Surveyed { rules: &rules, places: &places, loose: &loose };
        let confinement = match before {
            Some(before)
                if before.confinement.is_ok()
                    && before.places == places
                    && *before.loose() == loose
                    && before.rules.data() == rules.data()
                    && before.rules.loopback_ports() == rules.loopback_ports()
                    // Beside the rules these make the sandbox.
                    && before.basis.resolved.lifted == basis.resolved.lifted
                    && before.basis.resolved.sockets == basis.resolved.sockets
                    && before.basis.resolved.ask.hold == basis.resolved.ask.hold
                    && required_tier(&before.basis.resolved) == required_tier(&basis.resolved)
                    && Arc::ptr_eq(&before.links, links) =>
            {
                before.confinement.clone()
            }
            Some(before) if before.confinement.is_err() && Arc::ptr_eq(&before.basis, basis) => {
                before.confinement.clone()
            }
            _ => {
                let wanted = Wanted::of(setup, (&basis.resolved, links), walls);
                confinement((confining, network), surveyed, None, wanted)
            }
        };
        let gate = Gate::new(views(&confinement, &basis.resolved.temp)).map_err(OpenError::Gate)?;
        let wants_reservations = layers.iter().any(wants_reservations);
        let basis = Arc::clone(basis);
        let (gate, grants) = (Arc::new(gate), grants.to_vec());
        let loose = Mutex::new(loose);
        let links = Arc::clone(links);
        Ok(Self { rules, confinement, gate, basis, links, places, layers, wants_reservations, grants, loose })
    }

    /// What holds where no rule speaks, when commands see the session's temporary directory as `temp`.
    fn base(basis: &Basis, temp: &Path) -> Base {
        Base { temp: temp.to_owned(), ..basis.resolved.base() }
    }

    /// The same without a sandbox: commands are refused for `reason`.
    pub(crate) fn refusing(self, reason: String) -> Self {
        Self { confinement: Err(reason), ..self }
    }

    /// The same with no more than `grants`, where nothing can be built with them: commands are refused for `reason`,
    /// and so is every file once the sandbox that was there has ended.
    pub(crate) fn closed(&self, grants: &[Grant], reason: String) -> Self {
        let base = Self::base(&self.basis, &self.rules.base().temp);
        Self {
            rules: RuleSet::compile(self.layers.clone(), base, grants),
            confinement: Err(reason),
            gate: Arc::clone(&self.gate),
            basis: Arc::clone(&self.basis),
            links: Arc::clone(&self.links),
            places: self.places.clone(),
            layers: self.layers.clone(),
            wants_reservations: self.wants_reservations,
            grants: grants.to_vec(),
            loose: Mutex::new(self.loose().clone()),
        }
    }

    /// Whether it permits what `grants` do not: an answer in it has ended, or was taken back.
    pub(crate) fn reaches_beyond(&self, grants: &[Grant]) -> bool {
        self.grants.iter().any(|grant| !grants.contains(grant))
    }

    /// What holds for one command: the rules and the sandbox of the session, or others, where policies want stricter
    /// rules for it or the user has `opened` something that is not open to others.
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
        // What bounds the process and its environment needs no other sandbox.
        let is_same_sandbox = is_all_open && !stricter.iter().any(shapes_sandbox);
        let grants = &[grants, opened].concat();
        let mut layers = self.layers.clone();
        layers.extend(setup.inmate.relaxed(stricter));
        let base = Self::base(&self.basis, &self.rules.base().temp);
        let rules = Arc::new(RuleSet::compile(layers, base, grants));
        if is_same_sandbox {
            return Ok(ForCommand { sandbox: self.confinement.clone()?, rules: Some(rules) });
        }
        let places = rules.places();
        let loose = Loose::among(&places, rules.base());
        let surveyed = Surveyed { rules: &rules, places: &places, loose: &loose };
        let how = (&setup.confinement, network);
        let wanted = Wanted::of(setup, (&self.basis.resolved, &self.links), self.walls());
        let sandbox = confinement(how, surveyed, Some(&rules), wanted)?;
        Ok(ForCommand { sandbox, rules: Some(rules) })
    }

    /// The rules of one command where policies want stricter ones for it than for the session; none where they want
    /// none, or do not answer.
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
        let base = Self::base(&self.basis, &self.rules.base().temp);
        Some(RuleSet::compile(layers, base, &self.grants))
    }

    /// Whether commands may write what a grant speaks of without it.
    fn is_open(&self, grant: &Grant) -> bool {
        let GrantPattern::Path(granted) = &grant.pattern else { return false };
        let (FilePattern::Exact(path) | FilePattern::Tree(path)) = &granted.pattern else { return false };
        self.rules.answer(path, FileRight::Write, Caller::Command).effect == Effect::Allow
    }

    /// Whether every grant in it is still live at `now`, and its sandbox shows what is there.
    pub(crate) fn outlives(&self, now: u32) -> bool {
        self.grants.iter().all(|grant| grant.is_live(now))
            && (self.confinement.is_err() || self.loose().is_as_it_was())
    }

    /// No other sandbox can be had: this one is as good as any until something else changes.
    pub(crate) fn settle(&self) {
        *self.loose() = Loose::among(&self.places, self.rules.base());
    }

    fn loose(&self) -> MutexGuard<'_, Loose> {
        self.loose.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How much of the sandbox commands have.
    #[must_use]
    pub fn tier(&self) -> Tier {
        self.report().map_or(Tier::None, Report::tier)
    }

    /// What a control group bounds for all commands together, in words of the kernel's; `none` where there is none.
    pub(crate) fn controllers(&self) -> String {
        let names = self.report().into_iter().flat_map(|report| &report.controllers);
        let names: Vec<&str> = names.map(|controller| controller.name()).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(" ") }
    }

    /// What the kernel enforces on commands; none when there is no sandbox.
    #[must_use]
    pub fn report(&self) -> Option<&Report> {
        self.confinement.as_ref().ok().map(|confinement| confinement.report())
    }
}

/// Whether a layer says anything that a sandbox is made of; limits and the environment are each command's own.
fn shapes_sandbox(layer: &RuleLayer) -> bool {
    let Profile { files, network, budgets, environment: _, variables: _, limits: _, attributes: _ } =
        &layer.profile;
    !(files.is_empty() && network.is_empty() && budgets.is_empty())
}

fn layers(setup: &Setup, basis: &Basis, temp: &Path) -> Result<Vec<RuleLayer>, OpenError> {
    let mut context = setup.context.clone();
    context.machine.temp = path_text::encode(temp);
    let mut layers = basis.resolved.ceiling();
    layers.extend(chain_rules::standing(&basis.chain, &context)?);
    layers.iter_mut().for_each(|layer| name_temp(layer, &basis.resolved.temp, temp));
    Ok(setup.inmate.rules(layers))
}

/// Has what a layer allows in the session's temporary directory, which settings and policies call `usual`, hold where
/// that directory goes by the name `temp`. The machine's own directory of the usual name is then not meant.
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

fn wants_reservations(layer: &RuleLayer) -> bool {
    layer.profile.attributes.iter().any(|attribute| attribute.name == RESERVATIONS)
}

fn views(confinement: &Result<Arc<Sandbox>, String>, temp: &Path) -> Views {
    match confinement {
        // Nothing stands between names and files there, and the rules are asked in any case.
        Ok(confinement) if confinement.report().tier() == Tier::Landlock => Views::Host,
        Ok(confinement) => Views::Session {
            root: Box::new(SessionRoot(confinement.view())),
            private_temp: Some(temp.to_owned()),
        },
        Err(_) => Views::Host,
    }
}

/// The sandbox's root, as the file gate wants it.
struct SessionRoot(portcullis_confine::View);

impl RootView for SessionRoot {
    fn root(&self) -> std::io::Result<BorrowedFd<'_>> {
        self.0.root().map_err(std::io::Error::other)
    }
}
