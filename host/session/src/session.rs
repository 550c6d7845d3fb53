//! The session: the single path from a request to a permit.

mod answers;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use portcullis_approvals::question::connections::{
    PresetOffer, at_every_port, offer_presets, places as places_of,
};
use portcullis_approvals::question::pending_call::FOR_THIS_COMMAND;
use portcullis_approvals::question::words::Naming;
use portcullis_approvals::question::{FOR_THIS_SESSION, NOT_FOR_THIS_SESSION, question};
use portcullis_approvals::{
    Answer, Cancel, ChoiceKind, Connections, Denied, OpenQuestions, Question, Refusal, RememberedAnswers,
    SESSION, refused_because,
};
use portcullis_decision::context::{AgentInfo, Machine};
use portcullis_decision::request::{Action, NetworkAccess, Origin, OtherAction};
use portcullis_decision::reservation::Claim;
use portcullis_decision::verdict::Obligation;
use portcullis_decision::{AnsweredBy, Context, Decision, Effect, Grant, GrantScope, Mode, Request, RuleSet};
use portcullis_file_gate::FileError;
use portcullis_session_sandbox::env_verdict_cache::EnvVerdictCache;
use portcullis_session_sandbox::error::OpenError;
use portcullis_session_sandbox::network::Network;
use portcullis_settings::{Preset, shipped_presets_with};
use serde_json::json;

use crate::authorized::Authorized;
use crate::basis::Basis;
use crate::brokering::Brokering;
use crate::claims::Claims;
use crate::effective_policy::EffectivePolicy;
use crate::every_host;
use crate::exec_surface::ExecSurface;
use crate::fault::{RULE, caught};
use crate::journal::{Entry, OutputChange};
use crate::notices;
use crate::policy_in_force::PolicyInForce;
use crate::provoked::fault_point;
use crate::setup::{CommandVariables, Settings, Setup};
use crate::tool_calls::ToolCalls;

/// A running session.
pub struct Session {
    pub(crate) setup: Arc<Setup>,
    pub(crate) policy: Arc<PolicyInForce>,
    pub(crate) answers: Arc<RememberedAnswers>,
    pub(crate) claims: Claims,
    pub(crate) asks: OpenQuestions,
    pub(crate) calls: ToolCalls,
    pub(crate) connections: Connections,
    pub(crate) env_verdicts: EnvVerdictCache,
    pub(crate) brokering: Brokering,
    next_request: AtomicU64,
    variables: OnceLock<CommandVariables>,
    /// Why the session denies everything, after a fault of the host.
    failure: OnceLock<String>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Session").field("id", &self.setup.context.session_id).finish_non_exhaustive()
    }
}

impl Session {
    /// Creates a session with its first policy. `network` is the gate in the networks of its sandboxes.
    pub(crate) fn new(setup: Setup, basis: Basis, network: Option<Network>) -> Result<Self, OpenError> {
        let (setup, answers) = (Arc::new(setup), Arc::<RememberedAnswers>::default());
        let policy = PolicyInForce::build(Arc::clone(&setup), Arc::clone(&answers), network, basis)?;
        let policy = Arc::new(policy);
        Ok(Self {
            brokering: Brokering::new(Arc::clone(&setup.credentials)),
            claims: Claims::new(Arc::clone(&setup), Arc::clone(&policy)),
            setup,
            policy,
            answers,
            asks: OpenQuestions::default(),
            calls: ToolCalls::default(),
            connections: Connections::default(),
            env_verdicts: EnvVerdictCache::default(),
            next_request: AtomicU64::new(0),
            variables: OnceLock::new(),
            failure: OnceLock::new(),
        })
    }

    /// Closes the connections of commands and withdraws their questions.
    ///
    /// Otherwise threads that wait for the user would keep the session alive.
    pub fn close(&self) {
        if let Some(network) = self.network() {
            network.close();
        }
    }

    /// Returns the gate in the networks of the sandboxes; `None` without commands.
    pub(crate) fn network(&self) -> Option<&Network> {
        self.policy.network()
    }

    /// Creates a request of this session.
    #[must_use]
    pub fn request(&self, origin: Origin, action: Action) -> Request {
        let number = self.next_request.fetch_add(1, Ordering::Relaxed) + 1;
        let facts = self.claims.fact(&action).into_iter().collect();
        Request { id: format!("r{number}"), parent: None, origin, action, facts }
    }

    /// Authorizes `request`: by rules and policies, live grants, the user if necessary; records the decision.
    ///
    /// `call` is the client's call that it belongs to.
    pub fn authorize(&self, request: Request, call: Option<&str>, cancel: &Cancel) -> Authorized {
        self.authorize_under(request, None, call, cancel)
    }

    /// Returns true if a request of a command or a file tool changes the session's branch only, so that there is no
    /// question.
    pub(crate) fn is_for_branch(&self, request: &Request) -> bool {
        let branch = self.setup.own.branch.as_ref();
        matches!(request.origin, Origin::Process | Origin::Agent)
            && branch.is_some_and(|branch| branch.takes(&request.action))
    }

    /// Returns the denial of a request on a file of the project, if the branch in front of it could not be mounted.
    fn without_branch(&self, request: &Request) -> Option<Decision> {
        let branch = self.setup.own.branch.as_ref()?;
        let effective = self.effective_policy();
        let reason = effective.confinement.as_ref().err()?;
        let denial =
            || Decision::host_denial("host.no-branch", &format!("the branch is not there: {reason}"));
        branch.concerns(&request.action).then(denial)
    }

    /// Authorizes a request by the rules of one command, if it has its own.
    pub(crate) fn authorize_under(
        &self,
        request: Request,
        rules: Option<&RuleSet>,
        call: Option<&str>,
        cancel: &Cancel,
    ) -> Authorized {
        // Read first, so that a change during the decision counts as a later one.
        let mut revision = self.revision();
        let mut decision = match self.without_branch(&request) {
            Some(denial) => denial,
            None => self.decide_under(&request, rules),
        };
        if self.policy.is_own_output(&request.action) {
            decision = decision.granted(AnsweredBy::Grant, "the agent was told to read it");
        }
        if self.is_for_branch(&request) {
            decision =
                decision.granted(AnsweredBy::Grant, "the branch is reviewed before the project changes");
        }
        let mut answer = None;
        while decision.effect() == Effect::Ask {
            let refusal = if self.answers.denies(&request.action) {
                Some(Refusal::Remembered)
            } else if !self.setup.context.interactive {
                Some(Refusal::NoUser)
            } else {
                None
            };
            if let Some(refusal) = refusal {
                decision = decision.denied(refusal.by(), refusal.reason());
                break;
            }
            let question = self.question_about(&request, &decision, call);
            let is_covered = || {
                revision != self.revision()
                    && (self.answers.denies(&request.action)
                        || self.decide_under(&request, rules).effect() != Effect::Ask)
            };
            let answered = self.asks.put(&self.setup.prompter, &question, &request, cancel, is_covered);
            if answered == Answer::Covered {
                // The decision is still `ask` if the other answer does not cover this request.
                revision = self.revision();
                decision = self.decide_under(&request, rules);
            } else {
                (decision, answer) = self.answered(&request, decision, &question, answered);
            }
        }
        // A request of a running command is not the origin of the call's output.
        if let Some(call) = call.filter(|_| request.origin != Origin::Process) {
            self.calls.remember(call, &request);
        }
        Authorized { answer, ..self.record_decision(request, decision) }
    }

    /// Makes the claims of a decision, and records the decision.
    pub(crate) fn record_decision(&self, request: Request, decision: Decision) -> Authorized {
        let decision = self.claims.reserve(&request, decision);
        let authorized = self.record(request, decision);
        if authorized.permit.is_none() {
            self.claims.end(&authorized.request);
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
        let basis = self.basis();
        let naming = Naming {
            home: basis.resolved.homes.first().map(PathBuf::as_path),
            program: call.and_then(|call| self.calls.program(call)),
            is_pi: self.setup.inmate.is_agent(),
        };
        let mut question = question(self.asks.next_id(), call, request, decision, &places, kept_for, &naming);
        question.timeout_ms = question.timeout_ms.or(ask.timeout_ms);
        if let Action::Network(access) = &request.action {
            if ask.every_port {
                at_every_port(&mut question, &places_of(std::iter::once(access)));
            }
            offer_presets(&mut question, &presets_with(access));
        }
        let session = self.setup.prompter.session_name();
        for choice in question.choices.iter_mut().filter(|_| session != SESSION) {
            let until = format!("ntil this {session} ends");
            choice.label = match choice.label.as_str() {
                FOR_THIS_SESSION => format!("U{until}"),
                NOT_FOR_THIS_SESSION => format!("No, u{until}"),
                label => label.to_owned(),
            };
        }
        if self.setup.inmate.is_agent() {
            question.asker = format!("pi itself: {}", question.asker);
            for choice in &mut question.choices {
                choice.label = choice.label.replacen(FOR_THIS_COMMAND, "As long as pi runs", 1);
            }
        }
        question
    }

    /// Returns the decision after an answer, and the scope of a "yes".
    fn answered(
        &self,
        request: &Request,
        decision: Decision,
        question: &Question,
        answer: Answer,
    ) -> (Decision, Option<GrantScope>) {
        let choice = match answer {
            Answer::Choice(index) => question.choices.get(index),
            Answer::Refused(refusal) => {
                if refusal == Refusal::User {
                    self.asks.refuse_same(&self.setup.prompter, request);
                }
                return (decision.denied(refusal.by(), refusal.reason()), None);
            }
            Answer::RefusedBecause(line) => {
                self.asks.refuse_same(&self.setup.prompter, request);
                return (decision.denied(AnsweredBy::User, &refused_because(&line)), None);
            }
            Answer::Covered => return (decision, None),
        };
        match choice {
            Some(choice) if choice.kind == ChoiceKind::Deny => {
                self.answers.deny(vec![Denied::from_choice(choice, &request.action)]);
                self.say_saved(choice);
                self.asks.close_settled(&self.setup.prompter, |action| self.answers.denies(action));
                (decision.denied(AnsweredBy::User, Refusal::Remembered.reason()), None)
            }
            Some(choice) => {
                let decision = decision.granted(AnsweredBy::User, &choice.spoken());
                self.remember(choice);
                (decision, Some(choice.scope))
            }
            None => (decision.denied(AnsweredBy::User, "the answer was not one of the choices"), None),
        }
    }

    /// Returns the decision on a request, without asking, recording or acting.
    #[must_use]
    pub fn decide(&self, request: &Request) -> Decision {
        self.decide_under(request, None)
    }

    /// Returns the decision by the rules of one command, if it has its own.
    pub(crate) fn decide_under(&self, request: &Request, rules: Option<&RuleSet>) -> Decision {
        let effective = self.effective_policy();
        self.decide_by(request, &effective, rules.unwrap_or(&effective.rules))
    }

    /// Returns the decision in a recorded context, with only the grants that were live then.
    ///
    /// The session must have the same environment, since rules depend on it.
    #[must_use]
    pub fn decide_in(&self, request: &Request, context: Context) -> Decision {
        let (effective, grants) = (self.effective_policy(), context.grants.clone());
        self.decide_with(request, (&effective, &effective.rules), context, &grants)
    }

    /// Returns the decision by an earlier policy in force, or by `rules` if they differ from its own.
    pub(crate) fn decide_by(
        &self,
        request: &Request,
        effective: &EffectivePolicy,
        rules: &RuleSet,
    ) -> Decision {
        let grants = every_host::applicable(self.live_grants(), request);
        self.decide_with(request, (effective, rules), self.context_for(request, &grants), &grants)
    }

    fn decide_with(
        &self,
        request: &Request,
        (effective, rules): (&EffectivePolicy, &RuleSet),
        context: Context,
        grants: &[Grant],
    ) -> Decision {
        if let Some(denied) = self.after_fault() {
            return denied.taken_in(context);
        }
        fault_point("decide");
        let decision = effective.basis.chain.decide(request, &context, rules, grants);
        self.exec_surface(effective).tightened(request, decision, grants).taken_in(context)
    }

    /// Returns a number that grows whenever something changes that decisions depend on: policies, settings, answers.
    ///
    /// With the same number, the same request is asked about again.
    pub(crate) fn revision(&self) -> u64 {
        let changes = [self.policy.revision(), self.answers.revision(), self.connections.revision()];
        changes.iter().sum::<u64>() + u64::from(self.failure.get().is_some())
    }

    /// Returns the context for deciding on `request`.
    pub(crate) fn context_for(&self, request: &Request, grants: &[Grant]) -> Context {
        let grants = grants.iter().filter(|grant| grant.covers(request)).cloned().collect();
        Context { grants, ..self.context_now() }
    }

    /// Returns the context of this moment, without grants.
    fn context_now(&self) -> Context {
        let mut context = Context { now: self.setup.seconds(), ..self.setup.context.clone() };
        context.workspace.vcs = self.policy.vcs();
        context
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
                    self.setup.prompter.notice(&notices::of_policy(decision.policy(), text));
                }
            }
        }
        Authorized { decision, permit, request, answer: None }
    }

    /// Records the outcome of an allowed request.
    pub fn outcome(&self, request: &Request, outcome: &str) {
        self.setup.journal.after((self.setup.clock)(), &request.id, outcome);
        self.claims.end(request);
    }

    /// Records that a policy changed the output of a request.
    pub(crate) fn output_changed(&self, request: &Request, change: &OutputChange<'_>) {
        self.setup.journal.output_changed((self.setup.clock)(), &request.id, change);
    }

    /// Puts other settings and policies in force, for all decisions and commands from now on.
    ///
    /// Answers for this session stay; those that were stored in files are part of the new settings.
    ///
    /// # Errors
    /// When a policy fails to return its rules; the earlier ones stay in force. If only their sandbox fails, commands
    /// are refused: rights that the new rules remove must not stay.
    pub fn reload(&self, basis: Basis) -> Result<(), OpenError> {
        self.policy.reload(basis)?;
        // The new rules can settle open questions.
        self.asks.review(&self.setup.prompter, |request| self.decide(request).effect() != Effect::Ask);
        Ok(())
    }

    /// Returns the policy in force.
    #[must_use]
    pub fn effective_policy(&self) -> Arc<EffectivePolicy> {
        self.policy.current()
    }

    /// Returns the policy in force for a command that starts now, or says why there is no sandbox for it.
    pub(crate) fn policy_for_start(&self) -> Result<Arc<EffectivePolicy>, String> {
        self.policy.for_start()
    }

    /// Allows reading a file with a command's full output, which pi has written, by its exact name.
    ///
    /// # Errors
    /// When its name is not of the form that pi uses for such files.
    pub fn register_output(&self, path: &Path) -> Result<(), FileError> {
        self.policy.register_output(path)
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
        Arc::clone(&self.policy.unchecked().basis)
    }

    /// Returns the settings in force.
    #[must_use]
    pub fn settings(&self) -> Settings {
        Settings(self.basis())
    }

    /// Returns the user's home directories and the project, which are never opened as a whole.
    pub(crate) fn own_places(&self) -> Vec<PathBuf> {
        let settings = self.settings();
        settings.homes.iter().chain([&settings.workspace]).cloned().collect()
    }

    /// Returns the names that the user's other programs execute, as a policy in force sees them.
    pub(crate) fn exec_surface<'a>(&self, effective: &'a EffectivePolicy) -> ExecSurface<'a> {
        ExecSurface::new(effective, self.settings())
    }

    /// Returns the agent of the session.
    #[must_use]
    pub fn agent(&self) -> &AgentInfo {
        &self.setup.context.agent
    }

    /// Returns the additional variables of commands.
    pub(crate) fn variables(&self) -> &CommandVariables {
        self.variables.get_or_init(|| (self.setup.variables)())
    }

    /// Returns the policies' texts for the model, each with the policy's name.
    ///
    /// A policy that can only tighten has none, since it must not influence the model.
    #[must_use]
    pub fn briefs(&self) -> Vec<(String, String)> {
        let context = self.context_now();
        let basis = self.basis();
        let members = basis.chain.members.iter().filter(|member| member.mode != Mode::Tighten);
        members
            .filter_map(|member| {
                let brief = member.policy.brief(&context).ok()?;
                (!brief.trim().is_empty()).then(|| (member.policy.name().to_owned(), brief))
            })
            .collect()
    }

    /// Refuses a request for a reason of the host.
    pub fn refuse(&self, request: Request, rule: &str, reason: &str) -> Authorized {
        self.record(request, Decision::host_denial(rule, reason))
    }

    /// Returns all claims in force, of all sessions of the user.
    ///
    /// # Errors
    /// When they cannot be read; the text says why.
    pub fn claims(&self) -> Result<Vec<Claim>, String> {
        self.setup.reservations.claims()
    }

    /// Returns true if a policy uses claims.
    #[must_use]
    pub fn wants_reservations(&self) -> bool {
        self.claims.are_wanted()
    }

    /// Runs `work`. If it panics, the session fails closed, and `denied` turns the reason into the result.
    ///
    /// `doing` describes the work, as in "reading a file".
    pub fn guarded<T>(&self, doing: &str, work: impl FnOnce() -> T, denied: impl FnOnce(String) -> T) -> T {
        caught(work).unwrap_or_else(|panic| denied(self.fail(doing, &panic)))
    }

    /// Denies all further requests because of a panic, logs it and tells the user. Returns the reason.
    pub fn fail(&self, doing: &str, panic: &str) -> String {
        let reason = notices::failed(doing, panic);
        if self.failure.set(reason.clone()).is_ok() {
            let input = json!({ "doing": doing, "panic": panic }).to_string();
            let action = Action::Other(OtherAction { kind: RULE.to_owned(), input });
            // The log itself may have failed. In that case the denials apply without a record.
            let _written = caught(|| {
                let request = self.request(Origin::Process, action);
                self.record(request, Decision::host_denial(RULE, &reason));
            });
            let _told = caught(|| self.setup.prompter.notice(&reason));
        }
        reason
    }

    /// Returns why the session allows nothing any more, or `None` without a fault.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// Returns the decision for all requests after a fault, or `None` without a fault.
    pub(crate) fn after_fault(&self) -> Option<Decision> {
        self.failure.get().map(|reason| Decision::host_denial(RULE, reason))
    }
}
/// Returns the presets that hold the place of a connection.
fn presets_with(access: &NetworkAccess) -> Vec<PresetOffer> {
    let presets = shipped_presets_with(|host| host.matches(&access.target, access.port));
    let offer = |preset: Preset| PresetOffer {
        holds: match preset.includes.as_slice() {
            [] => preset.hosts.iter().map(|host| host.pattern.to_string()).collect(),
            presets => presets.iter().map(|line| line.value.clone()).collect(),
        },
        name: preset.name,
        title: preset.title,
    };
    presets.into_iter().map(offer).collect()
}
