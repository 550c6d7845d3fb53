//! What is in force: the compiled rules, the sandbox made of them, and the gate that opens files in it.

use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portcullis_confine::{Confinement, Report};
use portcullis_decision::rules::Place;
use portcullis_decision::{Base, Context, Grant, Request, RuleLayer, RuleSet, path_text};
use portcullis_file_gate::{Gate, RootView, Views};

use crate::chain_rules;
use crate::error::{OpenError, with_causes};
use crate::profile::profile;
use crate::session::Setup;

/// How commands are confined.
#[derive(Debug, Clone)]
pub enum Confining {
    /// In a sandbox.
    Sandbox {
        /// Our own program, which is also the keeper.
        executable: PathBuf,
        /// The host's directory that is `/tmp` inside.
        temp: PathBuf,
    },
    /// No command will be run: `check` and the like.
    NoCommands,
}

/// What is in force at one time.
#[derive(Debug)]
pub struct Force {
    /// The rules.
    pub rules: RuleSet,
    /// The sandbox, or why there is none.
    pub confinement: Result<Arc<Confinement>, String>,
    /// Opens files.
    pub gate: Gate,
    places: Vec<Place>,
    layers: Vec<RuleLayer>,
    /// When the first of the grants in it ends; none when all last as long as the session.
    ends_at: Option<u32>,
}

impl Force {
    /// Compiles the rules and sets the sandbox up; what `before` has is kept where it need not change.
    pub(crate) fn build(
        setup: &Setup,
        grants: &[Grant],
        before: Option<&Arc<Self>>,
    ) -> Result<Self, OpenError> {
        let built = Self::build_for(setup, &setup.resolved.temp, &setup.confinement, grants, before)?;
        match (&built.confinement, &setup.confinement) {
            // Without a sandbox the usual temporary directory is the one that everybody shares. Only
            // the session's own is free then, under its real name.
            (Err(_), Confining::Sandbox { temp, .. }) if built.rules.base().temp != *temp => {
                let Self { confinement, .. } = built;
                let without = Self::build_for(setup, temp, &Confining::NoCommands, grants, None)?;
                Ok(Self { confinement, ..without })
            }
            _ => Ok(built),
        }
    }

    fn build_for(
        setup: &Setup,
        temp: &Path,
        confining: &Confining,
        grants: &[Grant],
        before: Option<&Arc<Self>>,
    ) -> Result<Self, OpenError> {
        let (layers, base) = match before {
            Some(before) => (before.layers.clone(), before.rules.base().clone()),
            None => (layers(setup, temp)?, Base { temp: temp.to_owned(), ..setup.resolved.base() }),
        };
        let rules = RuleSet::compile(layers.clone(), base, grants);
        let places = rules.places();
        let confinement = match before {
            Some(before)
                if before.places == places && before.rules.data() == rules.data()
                    || before.confinement.is_err() =>
            {
                before.confinement.clone()
            }
            _ => confinement(confining, &rules, &setup.resolved.lifted),
        };
        let gate = Gate::new(views(&confinement, &setup.resolved.temp)).map_err(OpenError::Gate)?;
        let ends_at = grants.iter().map(|grant| grant.expires_at).filter(|end| *end != 0).min();
        Ok(Self { rules, confinement, gate, places, layers, ends_at })
    }

    /// A sandbox for one command for which policies want stricter rules; none when they want none.
    pub(crate) fn for_command(
        &self,
        setup: &Setup,
        request: &Request,
        context: &Context,
        grants: &[Grant],
    ) -> Result<Option<Arc<Confinement>>, String> {
        let stricter =
            chain_rules::for_command(&setup.chain, request, context).map_err(|error| with_causes(&error))?;
        if stricter.is_empty() {
            return Ok(None);
        }
        let mut layers = self.layers.clone();
        layers.extend(stricter);
        let rules = RuleSet::compile(layers, self.rules.base().clone(), grants);
        confinement(&setup.confinement, &rules, &setup.resolved.lifted).map(Some)
    }

    /// Whether every grant in it is still live at `now`.
    pub(crate) fn outlives(&self, now: u32) -> bool {
        self.ends_at.is_none_or(|end| now < end)
    }

    /// Whether commands see the host's own files at `path`, below the private directory `temp`.
    pub(crate) fn shows_the_hosts(&self, path: &Path, temp: &Path) -> bool {
        let inside = |place: &&Place| place.path != temp && place.path.starts_with(temp);
        self.places.iter().filter(inside).any(|place| path.starts_with(&place.path))
    }

    /// What the kernel enforces on commands; none when there is no sandbox.
    #[must_use]
    pub fn report(&self) -> Option<&Report> {
        self.confinement.as_ref().ok().map(|confinement| confinement.report())
    }
}

fn layers(setup: &Setup, temp: &Path) -> Result<Vec<RuleLayer>, OpenError> {
    let mut context = setup.context.clone();
    context.machine.temp = path_text::encode(temp);
    let mut layers = setup.resolved.ceiling();
    layers.extend(chain_rules::standing(&setup.chain, &context)?);
    Ok(layers)
}

fn confinement(how: &Confining, rules: &RuleSet, lifted: &[String]) -> Result<Arc<Confinement>, String> {
    match how {
        Confining::NoCommands => Err("no command is run here".to_owned()),
        Confining::Sandbox { executable, temp } => {
            let profile = profile(rules, temp, lifted)?;
            Confinement::start(executable, &profile).map(Arc::new).map_err(|error| with_causes(&error))
        }
    }
}

fn views(confinement: &Result<Arc<Confinement>, String>, temp: &Path) -> Views {
    match confinement {
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
