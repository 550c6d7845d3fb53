//! The policy in force: built when the session opens, and again when grants, settings or files change.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use portcullis_approvals::{Kept, RememberedAnswers};
use portcullis_decision::context::Vcs;
use portcullis_decision::request::{Action, FileAccess, FileOperation};
use portcullis_decision::{Grant, path_text};
use portcullis_file_gate::FileError;
use portcullis_session_sandbox::error::{OpenError, with_causes};
use portcullis_session_sandbox::network::Network;
use portcullis_vcs::Repository;

use crate::basis::Basis;
use crate::effective_policy::EffectivePolicy;
use crate::notices;
use crate::setup::Setup;

/// Why a command does not start if no sandbox can be built that hides the present sockets.
const UNHIDDEN: &str = "a program of this machine has bound a socket that commands would see, and no sandbox can be set \
    up that hides it";

/// The policy in force, and its sources.
pub(crate) struct PolicyInForce {
    setup: Arc<Setup>,
    answers: Arc<RememberedAnswers>,
    /// The project's version control, of which policies get the parts that they depend on.
    repository: Option<Repository>,
    /// Locked for moments only. A thread that holds the order of names reads it, and a new sandbox waits for that order.
    current: RwLock<Arc<EffectivePolicy>>,
    /// Number of policies that were put in force.
    built: AtomicU64,
    /// Held while the next policy is built.
    building: Mutex<()>,
    /// The gate in the networks of the sandboxes; `None` without commands.
    network: Option<Network>,
    /// Files of pi with the full output of commands.
    outputs: Mutex<Vec<PathBuf>>,
}

impl PolicyInForce {
    /// Builds the first policy.
    pub(crate) fn build(
        setup: Arc<Setup>,
        answers: Arc<RememberedAnswers>,
        network: Option<Network>,
        basis: Basis,
    ) -> Result<Self, OpenError> {
        let grants = basis.resolved.grants.iter().filter(|grant| grant.is_live(setup.seconds()));
        let grants: Vec<Grant> = grants.cloned().collect();
        let root = setup.context.workspace.roots.first().and_then(|root| path_text::decode(root));
        let repository = root.map(|root| Repository::of(&root));
        let vcs = facts(repository.as_ref(), &basis);
        let first = EffectivePolicy::build(&setup, &Arc::new(basis), network.as_ref(), &grants, (None, vcs))?;
        let current = RwLock::new(Arc::new(first));
        Ok(Self {
            setup,
            answers,
            repository,
            network,
            current,
            built: AtomicU64::new(0),
            building: Mutex::default(),
            outputs: Mutex::default(),
        })
    }

    /// Returns the gate in the networks of the sandboxes; `None` without commands.
    pub(crate) fn network(&self) -> Option<&Network> {
        self.network.as_ref()
    }

    /// Returns the live grants, of this session and of the settings.
    pub(crate) fn live_grants(&self) -> Vec<Grant> {
        self.answers.live(&self.unchecked().basis.resolved.grants, self.setup.seconds(), Kept::InMemory)
    }

    /// Puts other settings and policies in force.
    ///
    /// # Errors
    /// When a policy fails to return its rules; the earlier ones stay in force.
    pub(crate) fn reload(&self, basis: Basis) -> Result<(), OpenError> {
        let building = self.building();
        let effective = self.unchecked();
        let grants = self.answers.live(&basis.resolved.grants, self.setup.seconds(), Kept::InFiles);
        let vcs = facts(self.repository.as_ref(), &basis);
        let built = EffectivePolicy::build(
            &self.setup,
            &Arc::new(basis),
            self.network.as_ref(),
            &grants,
            (Some(&effective), vcs),
        )?;
        let refused = built.confinement.as_ref().err().filter(|_| effective.confinement.is_ok()).cloned();
        self.put_in_force(built);
        self.answers.forget_kept();
        drop(building);
        if let Some(network) = self.network.as_ref().filter(|_| !self.opens_ports()) {
            network.open_ports().close_all();
        }
        if let Some(reason) = refused {
            self.setup.prompter.notice(&notices::edit_refuses_commands(&reason));
        }
        Ok(())
    }

    fn opens_ports(&self) -> bool {
        self.unchecked().basis.resolved.connecting.opens_ports
    }

    /// Rebuilds the rules after a grant or the end of one.
    ///
    /// Running commands keep their sandbox. If no new sandbox can be built, the old one stays: file tools get the new
    /// grant, and commands do not. A sandbox with an expired or revoked grant does not stay: commands are refused.
    pub(crate) fn rebuild(&self) {
        let _told = self.rebuild_unless(|_| false);
    }

    /// As `rebuild`, unless the policy in force `is_current` when it is this thread's turn. An error says why the old
    /// sandbox stays; the user has been told.
    fn rebuild_unless(&self, is_current: impl Fn(&EffectivePolicy) -> bool) -> Result<(), String> {
        let _making = self.building();
        let effective = self.unchecked();
        if is_current(&effective) {
            return Ok(());
        }
        let grants =
            self.answers.live(&effective.basis.resolved.grants, self.setup.seconds(), Kept::InMemory);
        let vcs = facts(self.repository.as_ref(), &effective.basis);
        let built = EffectivePolicy::build(
            &self.setup,
            &effective.basis,
            self.network.as_ref(),
            &grants,
            (Some(&effective), vcs.clone()),
        );
        let failed = match &built {
            Err(error) => Some(with_causes(error)),
            Ok(built) => built.confinement.as_ref().err().filter(|_| effective.confinement.is_ok()).cloned(),
        };
        match (built, failed) {
            (Ok(built), None) => {
                self.put_in_force(built);
                Ok(())
            }
            // The earlier rules were made for other facts.
            (built, Some(reason)) if effective.vcs != vcs => {
                let text = notices::no_rules_for_facts(&reason);
                let closed = match built {
                    Ok(built) => built.refusing(text.clone()),
                    Err(_) => effective.without_rules(&grants, text.clone(), vcs),
                };
                self.put_in_force(closed);
                self.setup.prompter.notice(&text);
                Ok(())
            }
            (built, reason) if effective.reaches_beyond(&grants) => {
                let text = notices::answer_ended(&reason.unwrap_or_default());
                let closed = match built {
                    Ok(built) => built.refusing(text.clone()),
                    Err(_) => effective.closed(&grants, text.clone()),
                };
                self.put_in_force(closed);
                self.setup.prompter.notice(&text);
                Ok(())
            }
            // A command that is about to start is refused for it.
            (_, Some(reason)) if !effective.hides_sockets() => Err(reason),
            (_, reason) => {
                effective.accept_current_files();
                let reason = reason.unwrap_or_default();
                self.setup.prompter.notice(&notices::not_for_commands(&reason));
                Err(reason)
            }
        }
    }

    /// Waits for the turn to build rules and a sandbox.
    fn building(&self) -> MutexGuard<'_, ()> {
        self.building.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a built policy in force, with pi's own files: one that is registered meanwhile is not missed.
    fn put_in_force(&self, made: EffectivePolicy) {
        let mut effective = self.current.write().unwrap_or_else(PoisonError::into_inner);
        self.accept_outputs(&made);
        *effective = Arc::new(made);
        self.built.fetch_add(1, Ordering::SeqCst);
    }

    /// Returns a number that grows with each policy that is put in force.
    pub(crate) fn revision(&self) -> u64 {
        self.built.load(Ordering::SeqCst)
    }

    /// Returns the policy in force, rebuilt if a grant has ended, its files have changed, or a fact about version
    /// control that its policies depend on.
    pub(crate) fn current(&self) -> Arc<EffectivePolicy> {
        self.current_if(|effective| {
            effective.outlives(self.setup.seconds()) && self.has_current_facts(effective)
        })
    }

    /// Returns the policy in force for a connection: rebuilt only if a fact has changed that its policies depend on.
    pub(crate) fn for_connection(&self) -> Arc<EffectivePolicy> {
        self.current_if(|effective| self.has_current_facts(effective))
    }

    fn current_if(&self, is_current: impl Fn(&EffectivePolicy) -> bool) -> Arc<EffectivePolicy> {
        let known = self.unchecked();
        if is_current(&known) {
            return known;
        }
        let _told = self.rebuild_unless(is_current);
        self.unchecked()
    }

    /// Returns true if the rules were made for the facts as they are now. Without a policy that depends on any, it is.
    fn has_current_facts(&self, effective: &EffectivePolicy) -> bool {
        effective.vcs == facts(self.repository.as_ref(), &effective.basis)
    }

    /// Returns the parts of the project's version control that policies in force depend on.
    pub(crate) fn vcs(&self) -> Option<Vcs> {
        facts(self.repository.as_ref(), &self.unchecked().basis)
    }

    /// Returns the policy in force for a command that starts now: its sandbox hides the sockets that the host's programs
    /// had bound when the command was requested.
    ///
    /// # Errors
    /// When no such sandbox can be built.
    pub(crate) fn for_start(&self) -> Result<Arc<EffectivePolicy>, String> {
        let known = self.current();
        if known.hides_sockets() {
            return Ok(known);
        }
        let is_current = |effective: &EffectivePolicy| {
            effective.outlives(self.setup.seconds())
                && self.has_current_facts(effective)
                && effective.hides_sockets()
        };
        // Others can come while it is built; the next command gets a sandbox that hides them.
        self.rebuild_unless(is_current).map_err(|reason| format!("{UNHIDDEN}: {reason}"))?;
        Ok(self.unchecked())
    }

    /// Returns the policy in force as it was built.
    ///
    /// It does not check that its sandbox shows the current files or that its grants are live. For callers that need
    /// neither, such as decisions about connections: each check costs a system call per file.
    pub(crate) fn unchecked(&self) -> Arc<EffectivePolicy> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Allows reading a file with a command's full output, which pi has written, by its exact name.
    ///
    /// # Errors
    /// When its name is not of the form that pi uses for such files.
    pub(crate) fn register_output(&self, path: &Path) -> Result<(), FileError> {
        let effective = self.current.read().unwrap_or_else(PoisonError::into_inner);
        effective.gate.register_output(path)?;
        self.lock_outputs().push(path.to_owned());
        Ok(())
    }

    /// Registers pi's output files with a new gate.
    fn accept_outputs(&self, effective: &EffectivePolicy) {
        for path in self.lock_outputs().iter() {
            // Each name was accepted before.
            let _accepted = effective.gate.register_output(path);
        }
    }

    /// Returns true for reading such a file by exactly its registered name.
    pub(crate) fn is_own_output(&self, action: &Action) -> bool {
        let Action::File(FileAccess { path, operation: FileOperation::Read, .. }) = action else {
            return false;
        };
        let is_it = |output: &PathBuf| path_text::encode(output) == path.canonical;
        self.lock_outputs().iter().any(is_it)
    }

    fn lock_outputs(&self) -> MutexGuard<'_, Vec<PathBuf>> {
        self.outputs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the facts that the policies of `basis` depend on; nothing is read if they depend on none.
fn facts(repository: Option<&Repository>, basis: &Basis) -> Option<Vcs> {
    repository?.facts(basis.chain.vcs_parts())
}
