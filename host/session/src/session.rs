//! The session: its setup, and the single path from a request to a permit.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::SystemTime;

use portcullis_config::Resolved;
use portcullis_decision::context::{AgentInfo, Machine};
use portcullis_decision::request::{Action, FileAccess, FileOperation, Origin};
use portcullis_decision::verdict::Obligation;
use portcullis_decision::{
    AnsweredBy, Chain, Context, Decision, Effect, Grant, GrantPattern, GrantScope, Mode, Request, RuleSet,
    path_text,
};
use portcullis_file_gate::FileError;
use portcullis_text::escape;

use crate::ask::{Answer, Asks, Choice, ChoiceKind, Prompter, Question, Refusal};
use crate::authorized::Authorized;
use crate::cancel::Cancel;
use crate::effective_policy::{Confining, Force};
use crate::env_verdict_cache::EnvVerdictCache;
use crate::error::{OpenError, with_causes};
use crate::escalation;
use crate::grant_store::Keeper;
use crate::journal::{Entry, Journal};
use crate::network::{self, Network};
use crate::pending_syscalls;
use crate::provoked::fault_point;
use crate::question::question;
use crate::remembered_answers::{Denied, Kept, Memory, Remembered};
use crate::rerun_after_denial;
use crate::reservations::{self, Reservations};
use crate::sandbox_subject::Inmate;
use crate::tools::Calls;

/// Settings and policies, which are read and replaced together.
#[derive(Debug)]
pub struct Basis {
    /// The settings, resolved.
    pub resolved: Resolved,
    /// The policies, loaded and configured.
    pub chain: Chain,
}

/// The setup of a session.
pub struct Setup {
    /// The facts about this session; time and grants are filled in for each request.
    pub context: Context,
    /// The clock; the session has none of its own.
    pub clock: Box<dyn Fn() -> SystemTime + Send + Sync>,
    /// Records decisions before they take effect.
    pub journal: Box<dyn Journal>,
    /// Shows questions.
    pub prompter: Arc<dyn Prompter>,
    /// Stores answers that outlive the session.
    pub keeper: Arc<dyn Keeper>,
    /// Claims of paths, shared with other sessions.
    pub reservations: Box<dyn Reservations>,
    /// How commands are confined.
    pub confinement: Confining,
    /// The subject of the sandbox.
    pub inmate: Inmate,
    /// Returns the additional variables of commands; called once, for the first command.
    pub variables: Box<dyn Fn() -> Vec<(String, String)> + Send + Sync>,
}

impl Setup {
    pub(crate) fn is_root(&self) -> bool {
        self.context.machine.uid == 0
    }
}

impl std::fmt::Debug for Setup {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Setup").field("confinement", &self.confinement).finish_non_exhaustive()
    }
}

/// A running session.
pub struct Session {
    pub(crate) setup: Setup,
    /// Locked for moments only. A thread that holds the order of names reads it, and a new sandbox waits for that order.
    pub(crate) force: RwLock<Arc<Force>>,
    /// Held while the next value of `force` is built.
    making: Mutex<()>,
    pub(crate) memory: Memory,
    pub(crate) calls: Calls,
    pub(crate) claiming: reservations::Calls,
    /// Files of pi with the full output of commands.
    outputs: Mutex<Vec<PathBuf>>,
    pub(crate) asks: Asks,
    next_request: AtomicU64,
    pub(crate) connections: network::Memory,
    /// The gate in the networks of the sandboxes; `None` without commands.
    pub(crate) network: Option<Network>,
    variables: OnceLock<Vec<(String, String)>>,
    pub(crate) env_verdicts: EnvVerdictCache,
    /// Why the session denies everything, after a fault of the host.
    pub(crate) failure: OnceLock<String>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Session").field("id", &self.setup.context.session_id).finish_non_exhaustive()
    }
}

impl Session {
    /// Opens a session: gets the policies' standing rules, compiles the rule set, and sets up the sandbox.
    ///
    /// If the sandbox fails, the session opens anyway and refuses commands.
    ///
    /// # Errors
    /// When a policy fails to return its rules. Nothing may be allowed in that case.
    pub fn open(setup: Setup, basis: Basis) -> Result<Arc<Self>, OpenError> {
        let network = match &setup.confinement {
            Confining::Sandbox { .. } => Some(Network::start().map_err(OpenError::Network)?),
            Confining::NoCommands => None,
        };
        let grants = basis.resolved.grants.iter().filter(|grant| grant.is_live(seconds(&setup)));
        let grants: Vec<Grant> = grants.cloned().collect();
        let force = Force::build(&setup, &Arc::new(basis), network.as_ref(), &grants, None)?;
        let session = Arc::new(Self {
            setup,
            force: RwLock::new(Arc::new(force)),
            making: Mutex::default(),
            memory: Memory::default(),
            calls: Calls::default(),
            claiming: reservations::Calls::default(),
            outputs: Mutex::default(),
            asks: Asks::default(),
            next_request: AtomicU64::new(0),
            connections: network::Memory::default(),
            network,
            variables: OnceLock::new(),
            env_verdicts: EnvVerdictCache::default(),
            failure: OnceLock::new(),
        });
        if let Some(network) = &session.network {
            network.connect(&session);
        }
        Ok(session)
    }

    /// Closes the connections of commands and withdraws their questions.
    ///
    /// Otherwise threads that wait for the user would keep the session alive.
    pub fn close(&self) {
        if let Some(network) = &self.network {
            network.close();
        }
    }

    /// Creates a request of this session.
    #[must_use]
    pub fn request(&self, origin: Origin, action: Action) -> Request {
        let number = self.next_request.fetch_add(1, Ordering::Relaxed) + 1;
        let attributes = self.told_claims(&action).into_iter().collect();
        Request { id: format!("r{number}"), parent: None, origin, action, attributes }
    }

    /// Authorizes `request`: by rules and policies, live grants, the user if necessary; records the decision.
    ///
    /// `call` is the client's call that it belongs to.
    pub fn authorize(&self, request: Request, call: Option<&str>, cancel: &Cancel) -> Authorized {
        self.authorize_under(request, None, call, cancel)
    }

    /// Authorizes a request by the rules of one command, if it has its own.
    pub(crate) fn authorize_under(
        &self,
        request: Request,
        rules: Option<&RuleSet>,
        call: Option<&str>,
        cancel: &Cancel,
    ) -> Authorized {
        let mut decision = self.decide_under(&request, rules);
        if self.is_own_output(&request.action) {
            decision = decision.granted(AnsweredBy::Grant, "the agent was told to read it");
        }
        let mut answer = None;
        while decision.effect() == Effect::Ask {
            let refusal = if self.memory.denies(&request.action) {
                Some(Refusal::Remembered)
            } else if !self.setup.context.interactive {
                Some(Refusal::Nobody)
            } else {
                None
            };
            if let Some(refusal) = refusal {
                decision = decision.refused(refusal.by(), refusal.reason());
                break;
            }
            (decision, answer) = self.put_question((&request, rules), decision, call, cancel);
        }
        // A request of a running command is not the origin of the call's output.
        if let Some(call) = call.filter(|_| request.origin != Origin::Process) {
            self.calls.remember(call, &request);
        }
        Authorized { answer, ..self.settle(request, decision) }
    }

    /// Makes the claims of a decision, and records the decision.
    pub(crate) fn settle(&self, request: Request, decision: Decision) -> Authorized {
        let decision = self.reserve(&request, decision);
        let authorized = self.record(request, decision);
        if authorized.permit.is_none() {
            self.end_claims(&authorized.request);
        }
        authorized
    }

    /// Returns the question about a request, with all places that can store the answer.
    pub(crate) fn question_about(
        &self,
        request: &Request,
        decision: &Decision,
        call: Option<&str>,
    ) -> Question {
        let ask = self.settings().ask;
        let kept_for = ask.grant_seconds.unwrap_or(0);
        let places = self.setup.keeper.places();
        let mut question = question(self.asks.next_id(), call, request, decision, &places, kept_for);
        question.timeout_ms = question.timeout_ms.or(ask.timeout_ms);
        if self.setup.inmate.is_agent() {
            question.asker = format!("pi itself: {}", question.asker);
            for choice in &mut question.choices {
                choice.label =
                    choice.label.replacen(pending_syscalls::FOR_THIS_COMMAND, "Allow as long as pi runs", 1);
            }
        }
        question
    }

    /// Asks the user.
    ///
    /// The decision is still `ask` if another answer has settled the question meanwhile. Also returns the scope of a
    /// "yes".
    fn put_question(
        &self,
        (request, rules): (&Request, Option<&RuleSet>),
        decision: Decision,
        call: Option<&str>,
        cancel: &Cancel,
    ) -> (Decision, Option<GrantScope>) {
        let question = self.question_about(request, &decision, call);
        let is_covered = || {
            self.memory.denies(&request.action) || self.decide_under(request, rules).effect() != Effect::Ask
        };
        let mut answer = None;
        let decision = match self.asks.put(&self.setup.prompter, &question, request, cancel, is_covered) {
            Answer::Covered => self.decide_under(request, rules),
            Answer::Refused(refusal) => {
                if refusal == Refusal::User {
                    self.asks.refuse_same(&self.setup.prompter, request);
                }
                decision.refused(refusal.by(), refusal.reason())
            }
            Answer::Choice(index) => match question.choices.get(index) {
                Some(choice) if choice.kind == ChoiceKind::Deny => {
                    self.memory.deny(vec![Denied::of(choice, &request.action)]);
                    self.asks.settle(&self.setup.prompter, |action| self.memory.denies(action));
                    decision.refused(AnsweredBy::User, Refusal::Remembered.reason())
                }
                Some(choice) => {
                    let decision = decision.granted(AnsweredBy::User, &choice.spoken());
                    self.remember(choice);
                    answer = Some(choice.scope);
                    decision
                }
                None => decision.refused(AnsweredBy::User, "the answer was not one of the choices"),
            },
        };
        (decision, answer)
    }

    /// Returns the decision on a request, without asking, recording or acting.
    #[must_use]
    pub fn decide(&self, request: &Request) -> Decision {
        self.decide_under(request, None)
    }

    /// Returns the decision by the rules of one command, if it has its own.
    pub(crate) fn decide_under(&self, request: &Request, rules: Option<&RuleSet>) -> Decision {
        let force = self.force();
        self.decide_by(request, &force, rules.unwrap_or(&force.rules))
    }

    /// Returns the decision in a recorded context, with only the grants that were live then.
    ///
    /// The session must have the same environment, since rules depend on it.
    #[must_use]
    pub fn decide_in(&self, request: &Request, context: Context) -> Decision {
        let (force, grants) = (self.force(), context.grants.clone());
        self.decide_with(request, (&force, &force.rules), context, &grants)
    }

    /// Returns the decision by an earlier policy in force, or by `rules` if they differ from its own.
    pub(crate) fn decide_by(&self, request: &Request, force: &Force, rules: &RuleSet) -> Decision {
        let grants = self.live_grants();
        self.decide_with(request, (force, rules), self.context_for(request, &grants), &grants)
    }

    fn decide_with(
        &self,
        request: &Request,
        (force, rules): (&Force, &RuleSet),
        context: Context,
        grants: &[Grant],
    ) -> Decision {
        if let Some(denied) = self.after_fault() {
            return denied.taken_in(context);
        }
        fault_point("decide");
        let decision = force.basis.chain.decide(request, &context, rules, grants);
        let decision = escalation::tightened(&request.action, decision);
        let rulings = [
            self.ruling_of_broker(request, force, grants),
            self.ruling_on_names(request, force, grants),
            Self::ruling_on_links(request, grants),
            rerun_after_denial::ruling(request),
        ];
        rulings.into_iter().flatten().fold(decision, Decision::tightened).taken_in(context)
    }

    /// Returns the context for deciding on `request`.
    pub(crate) fn context_for(&self, request: &Request, grants: &[Grant]) -> Context {
        Context {
            now: self.seconds(),
            grants: grants.iter().filter(|grant| grant.covers(request)).cloned().collect(),
            ..self.setup.context.clone()
        }
    }

    /// Records the decision before any action. If that fails, the request is denied.
    pub(crate) fn record(&self, request: Request, decision: Decision) -> Authorized {
        let entry = Entry { at: (self.setup.clock)(), request: &request, decision: &decision };
        let decision = match self.setup.journal.before(&entry) {
            Ok(()) => decision,
            Err(error) => Decision::host_denial("host.audit-failed", &error.to_string()),
        };
        let permit = decision.permit(&request);
        if permit.is_some() {
            for obligation in decision.obligations() {
                if let Obligation::Notify(text) = obligation {
                    self.setup.prompter.notice(&format!("{}: {}", escape(decision.policy()), escape(text)));
                }
            }
        }
        Authorized { decision, permit, request, answer: None }
    }

    /// Records the outcome of an allowed request.
    pub fn outcome(&self, request: &Request, outcome: &str) {
        self.setup.journal.after((self.setup.clock)(), &request.id, outcome);
        self.end_claims(request);
    }

    /// Records a grant or a denial: in memory at once, and also in a file if it outlives the session.
    pub(crate) fn remember(&self, choice: &Choice) {
        self.remember_all(choice, std::slice::from_ref(&choice.pattern));
    }

    /// Records an answer that covers several patterns; it is listed and revoked as one.
    pub(crate) fn remember_all(&self, choice: &Choice, patterns: &[GrantPattern]) {
        let now = self.seconds();
        if choice.scope == GrantScope::Once {
            return;
        }
        let expires_at = if choice.lifetime == 0 { 0 } else { now.saturating_add(choice.lifetime) };
        let grant = |pattern: &GrantPattern| Grant {
            scope: choice.scope,
            pattern: pattern.clone(),
            granted_at: now,
            expires_at,
        };
        let grants: Vec<Grant> = patterns.iter().map(grant).collect();
        let id = self.memory.grant(&grants);
        self.rebuild();
        let covers = |action: &Action| grants.iter().any(|grant| grant.pattern.covers(action));
        self.asks.settle(&self.setup.prompter, covers);
        let Some(place) = choice.place.as_deref() else { return };
        let kept = grants.iter().try_for_each(|grant| self.setup.keeper.keep(place, grant));
        if let Err(error) = kept {
            self.memory.hold_for_session(id);
            let text =
                format!("the answer holds for this session only, it could not be kept: {}", escape(&error));
            self.setup.prompter.notice(&text);
        }
    }

    /// Puts other settings and policies in force, for all decisions and commands from now on.
    ///
    /// Answers for this session stay; those that were stored in files are part of the new settings.
    ///
    /// # Errors
    /// When a policy fails to return its rules; the earlier ones stay in force. If only their sandbox fails, commands
    /// are refused: rights that the new rules remove must not stay.
    pub fn reload(&self, basis: Basis) -> Result<(), OpenError> {
        let making = self.making();
        let force = self.force_unchecked();
        let grants = self.memory.live(&basis.resolved, self.seconds(), Kept::InFiles);
        let built =
            Force::build(&self.setup, &Arc::new(basis), self.network.as_ref(), &grants, Some(&force))?;
        let refused = built.confinement.as_ref().err().filter(|_| force.confinement.is_ok()).cloned();
        self.put_in_force(built);
        self.memory.forget_kept();
        drop(making);
        if let Some(network) = self.network.as_ref().filter(|_| !self.settings().connecting.opens_ports) {
            network.close_ports();
        }
        if let Some(reason) = refused {
            self.setup
                .prompter
                .notice(&format!("commands are refused by the edited settings: {}", escape(&reason)));
        }
        // The new rules can settle open questions.
        self.asks.review(&self.setup.prompter, |request| self.decide(request).effect() != Effect::Ask);
        Ok(())
    }

    /// Revokes a grant or denial of this session, see [`Session::remembered`].
    ///
    /// New connections of running commands are affected too.
    pub fn forget(&self, id: u64) -> bool {
        let covered = self.memory.forget(id);
        if covered.is_empty() {
            return false;
        }
        for pattern in &covered {
            if let GrantPattern::Network(network) = pattern {
                self.connections.forget_allowed(|target, port| network.matches(target, port));
            }
        }
        self.rebuild();
        true
    }

    /// Rebuilds the rules after a grant or the end of one.
    ///
    /// Running commands keep their sandbox. If no new sandbox can be built, the old one stays: file tools get the new
    /// grant, and commands do not. A sandbox with an expired or revoked grant does not stay: commands are refused.
    fn rebuild(&self) {
        self.rebuild_unless(|_| false);
    }

    /// As `rebuild`, unless the policy in force `is_current` when it is this thread's turn.
    fn rebuild_unless(&self, is_current: impl Fn(&Force) -> bool) {
        let _making = self.making();
        let force = self.force_unchecked();
        if is_current(&force) {
            return;
        }
        let grants = self.memory.live(&force.basis.resolved, self.seconds(), Kept::InMemory);
        let built = Force::build(&self.setup, &force.basis, self.network.as_ref(), &grants, Some(&force));
        let failed = match &built {
            Err(error) => Some(with_causes(error)),
            Ok(built) => built.confinement.as_ref().err().filter(|_| force.confinement.is_ok()).cloned(),
        };
        match (built, failed) {
            (Ok(built), None) => self.put_in_force(built),
            (built, reason) if force.reaches_beyond(&grants) => {
                let reason = escape(&reason.unwrap_or_default());
                let text = format!(
                    "commands are refused, as no sandbox can be made without an answer that has ended: {reason}"
                );
                let closed = match built {
                    Ok(built) => built.refusing(text.clone()),
                    Err(_) => force.closed(&grants, text.clone()),
                };
                self.put_in_force(closed);
                self.setup.prompter.notice(&text);
            }
            (_, reason) => {
                force.settle();
                let reason = escape(&reason.unwrap_or_default());
                self.setup.prompter.notice(&format!("the sandbox of commands stays as it was: {reason}"));
            }
        }
    }

    /// Waits for the turn to build rules and a sandbox.
    fn making(&self) -> std::sync::MutexGuard<'_, ()> {
        self.making.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a built policy in force, with pi's own files: one that is registered meanwhile is not missed.
    fn put_in_force(&self, made: Force) {
        let mut force = self.force.write().unwrap_or_else(PoisonError::into_inner);
        self.accept_outputs(&made);
        *force = Arc::new(made);
    }

    /// Returns the policy in force.
    #[must_use]
    pub fn force(&self) -> Arc<Force> {
        let known = self.force_unchecked();
        if known.outlives(self.seconds()) {
            return known;
        }
        self.rebuild_unless(|force| force.outlives(self.seconds()));
        self.force_unchecked()
    }

    /// Returns the policy in force as it was built.
    ///
    /// It does not check that its sandbox shows the current files or that its grants are live. For callers that need
    /// neither, such as decisions about connections: each check costs a system call per file.
    pub(crate) fn force_unchecked(&self) -> Arc<Force> {
        Arc::clone(&self.force.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Allows reading a file with a command's full output, which pi has written, by its exact name.
    ///
    /// # Errors
    /// When its name is not of the form that pi uses for such files.
    pub fn register_output(&self, path: &Path) -> Result<(), FileError> {
        let force = self.force.read().unwrap_or_else(PoisonError::into_inner);
        force.gate.register_output(path)?;
        self.lock_outputs().push(path.to_owned());
        Ok(())
    }

    /// Registers pi's output files with a new gate.
    fn accept_outputs(&self, force: &Force) {
        for path in self.lock_outputs().iter() {
            // Each name was accepted before.
            let _accepted = force.gate.register_output(path);
        }
    }

    /// Returns true for reading such a file by exactly its registered name.
    fn is_own_output(&self, action: &Action) -> bool {
        let Action::File(FileAccess { path, operation: FileOperation::Read, .. }) = action else {
            return false;
        };
        let is_it = |output: &PathBuf| path_text::encode(output) == path.canonical;
        self.lock_outputs().iter().any(is_it)
    }

    fn lock_outputs(&self) -> std::sync::MutexGuard<'_, Vec<PathBuf>> {
        self.outputs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the live grants, of this session and of the settings.
    #[must_use]
    pub fn live_grants(&self) -> Vec<Grant> {
        self.memory.live(&self.force_unchecked().basis.resolved, self.seconds(), Kept::InMemory)
    }

    /// Returns the answers that the session remembers, with the ids for [`Session::forget`].
    #[must_use]
    pub fn remembered(&self) -> Vec<Remembered> {
        self.memory.list(self.seconds())
    }

    /// Returns the open questions, the oldest first.
    #[must_use]
    pub fn questions(&self) -> Vec<Question> {
        self.asks.questions()
    }

    /// Answers a question without its prompter. Returns false if it is no longer open.
    pub fn answer_question(&self, id: u64, answer: Answer) -> bool {
        self.asks.answer(&self.setup.prompter, id, answer)
    }

    /// Returns the number of open questions.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.asks.waiting()
    }

    /// Returns the session's id, which is also in its log.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.setup.context.session_id
    }

    /// Returns true if a user can answer questions.
    #[must_use]
    pub fn is_interactive(&self) -> bool {
        self.setup.context.interactive
    }

    /// Returns the facts about the machine that policies get.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        &self.setup.context.machine
    }

    /// Returns the settings and policies in force.
    #[must_use]
    pub fn basis(&self) -> Arc<Basis> {
        Arc::clone(&self.force_unchecked().basis)
    }

    /// Returns the settings in force.
    #[must_use]
    pub fn settings(&self) -> Settings {
        Settings(self.basis())
    }

    /// Returns the agent of the session.
    #[must_use]
    pub fn agent(&self) -> &AgentInfo {
        &self.setup.context.agent
    }

    /// Returns the additional variables of commands.
    pub(crate) fn variables(&self) -> &[(String, String)] {
        self.variables.get_or_init(|| (self.setup.variables)())
    }

    /// Returns the policies' texts for the model, each with the policy's name.
    ///
    /// A policy that can only tighten has none, since it must not influence the model.
    #[must_use]
    pub fn briefs(&self) -> Vec<(String, String)> {
        let mut context = self.setup.context.clone();
        context.now = self.seconds();
        let basis = self.basis();
        let members = basis.chain.members.iter().filter(|member| member.mode != Mode::Tighten);
        members
            .filter_map(|member| {
                let brief = member.policy.brief(&context).ok()?;
                (!brief.trim().is_empty()).then(|| (member.policy.name().to_owned(), brief))
            })
            .collect()
    }

    fn seconds(&self) -> u32 {
        seconds(&self.setup)
    }
}

/// The settings in force. A reload does not change a value of this type.
#[derive(Debug, Clone)]
pub struct Settings(Arc<Basis>);

impl std::ops::Deref for Settings {
    type Target = Resolved;

    fn deref(&self) -> &Resolved {
        &self.0.resolved
    }
}

fn seconds(setup: &Setup) -> u32 {
    // If the clock is invalid, all grants with an expiry have expired.
    let since = (setup.clock)().duration_since(SystemTime::UNIX_EPOCH);
    since.ok().and_then(|since| u32::try_from(since.as_secs()).ok()).unwrap_or(u32::MAX)
}
