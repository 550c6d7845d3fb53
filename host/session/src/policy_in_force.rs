//! The policy in force: built when the session opens, and again when grants, settings or files change.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use portcullis_approvals::{Kept, RememberedAnswers};
use portcullis_decision::request::{Action, FileAccess, FileOperation};
use portcullis_decision::{Grant, path_text};
use portcullis_file_gate::FileError;

use crate::basis::Basis;
use crate::effective_policy::EffectivePolicy;
use crate::error::{OpenError, with_causes};
use crate::network::Network;
use crate::notices;
use crate::setup::Setup;

/// Why a command does not start if no sandbox can be built that hides the present sockets.
const UNHIDDEN: &str = "a program of this machine has bound a socket that commands would see, and no sandbox can be set \
    up that hides it";

/// The policy in force, and its sources.
pub(crate) struct PolicyInForce {
    setup: Arc<Setup>,
    answers: Arc<RememberedAnswers>,
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
        let first = EffectivePolicy::build(&setup, &Arc::new(basis), network.as_ref(), &grants, None)?;
        let current = RwLock::new(Arc::new(first));
        Ok(Self {
            setup,
            answers,
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
        let built = EffectivePolicy::build(
            &self.setup,
            &Arc::new(basis),
            self.network.as_ref(),
            &grants,
            Some(&effective),
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
        let built = EffectivePolicy::build(
            &self.setup,
            &effective.basis,
            self.network.as_ref(),
            &grants,
            Some(&effective),
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

    /// Returns the policy in force, rebuilt if a grant has ended or its files have changed.
    pub(crate) fn current(&self) -> Arc<EffectivePolicy> {
        let known = self.unchecked();
        if known.outlives(self.setup.seconds()) {
            return known;
        }
        let _told = self.rebuild_unless(|effective| effective.outlives(self.setup.seconds()));
        self.unchecked()
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
            effective.outlives(self.setup.seconds()) && effective.hides_sockets()
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
