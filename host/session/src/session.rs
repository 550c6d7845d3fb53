//! The session itself: what it was set up with, and the single path from a request to a permit.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::SystemTime;

use portcullis_config::Resolved;
use portcullis_decision::context::AgentInfo;
use portcullis_decision::request::{Action, Origin};
use portcullis_decision::verdict::Obligation;
use portcullis_decision::{
    AnsweredBy, Chain, Context, Decision, Effect, Grant, GrantScope, Permit, Request, RuleSet,
};
use portcullis_file_gate::FileError;

use crate::ask::{Answer, Asks, Choice, Desk};
use crate::cancel::Cancel;
use crate::error::{OpenError, with_causes};
use crate::force::{Confining, Force};
use crate::journal::{Entry, Journal};
use crate::network::{Memory, Network};
use crate::question::question;
use crate::tools::Calls;
use crate::visible::visible;

/// What a session is set up with.
pub struct Setup {
    /// The settings, resolved.
    pub resolved: Resolved,
    /// The policies, loaded and configured.
    pub chain: Chain,
    /// The facts of this session; time and grants are filled in for each request.
    pub context: Context,
    /// The clock; the session has none of its own.
    pub clock: Box<dyn Fn() -> SystemTime + Send + Sync>,
    /// Where decisions are recorded before they are acted on.
    pub journal: Box<dyn Journal>,
    /// Where questions are shown.
    pub desk: Arc<dyn Desk>,
    /// How commands are confined.
    pub confinement: Confining,
    /// Says what commands are given beside their environment; asked once, at the first command.
    pub variables: Box<dyn Fn() -> Vec<(String, String)> + Send + Sync>,
}

impl Setup {
    pub(crate) fn is_root(&self) -> bool {
        self.context.machine.uid == 0
    }
}

impl std::fmt::Debug for Setup {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Setup")
            .field("chain", &self.chain)
            .field("confinement", &self.confinement)
            .finish_non_exhaustive()
    }
}

/// A running session.
pub struct Session {
    pub(crate) setup: Setup,
    pub(crate) force: RwLock<Arc<Force>>,
    grants: Mutex<Vec<Grant>>,
    pub(crate) calls: Calls,
    /// Files of pi's with the whole output of commands.
    outputs: Mutex<Vec<PathBuf>>,
    pub(crate) asks: Asks,
    next_request: AtomicU64,
    pub(crate) connections: Memory,
    /// The gate in the networks of the sandboxes; none where there are no commands.
    pub(crate) network: Option<Network>,
    variables: OnceLock<Vec<(String, String)>>,
}

/// What became of a request.
#[derive(Debug)]
pub struct Authorized {
    /// The final decision; never `ask`.
    pub decision: Decision,
    /// The proof, if it was allowed.
    pub permit: Option<Permit>,
    /// The request as it was judged.
    pub request: Request,
}

/// A request that was allowed.
#[derive(Debug)]
pub struct Granted {
    /// The proof.
    pub permit: Permit,
    /// The request as it was judged.
    pub request: Request,
    /// What policies want the model to be told with the result.
    pub advice: Vec<String>,
}

impl Authorized {
    /// The permit, or the decision that refused it.
    ///
    /// # Errors
    /// When it was not allowed.
    pub fn granted(self) -> Result<Granted, Box<Decision>> {
        match self.permit {
            Some(permit) => Ok(Granted { permit, request: self.request, advice: advice(&self.decision) }),
            None => Err(Box::new(self.decision)),
        }
    }
}

/// What policies want the model to be told with the result, safe to show.
#[must_use]
pub fn advice(decision: &Decision) -> Vec<String> {
    let advise = |obligation: &Obligation| match obligation {
        Obligation::Advise(text) => Some(visible(text)),
        Obligation::Notify(_)
        | Obligation::RewriteScript(_)
        | Obligation::RewriteInput(_)
        | Obligation::Other(_) => None,
    };
    decision.obligations().iter().filter_map(advise).collect()
}

impl std::fmt::Debug for Session {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Session").field("id", &self.setup.context.session_id).finish_non_exhaustive()
    }
}

impl Session {
    /// Opens a session: asks the policies for their standing rules, compiles the rule set, and sets
    /// the sandbox up. A sandbox that cannot be set up does not keep the session from opening;
    /// commands are refused in it.
    ///
    /// # Errors
    /// When a policy does not answer for its rules; then nothing may be allowed.
    pub fn open(setup: Setup) -> Result<Arc<Self>, OpenError> {
        let network = match &setup.confinement {
            Confining::Sandbox { .. } => Some(Network::start().map_err(OpenError::Network)?),
            Confining::NoCommands => None,
        };
        let force = Force::build(&setup, network.as_ref(), &[], None)?;
        let session = Arc::new(Self {
            setup,
            force: RwLock::new(Arc::new(force)),
            grants: Mutex::default(),
            calls: Calls::default(),
            outputs: Mutex::default(),
            asks: Asks::default(),
            next_request: AtomicU64::new(0),
            connections: Memory::default(),
            network,
            variables: OnceLock::new(),
        });
        if let Some(network) = &session.network {
            network.connect(&session);
        }
        Ok(session)
    }

    /// Closes the connections of commands, and takes back what they wait for: whoever waits for the user keeps the
    /// session alive.
    pub fn close(&self) {
        if let Some(network) = &self.network {
            network.close();
        }
    }

    /// Makes a request of this session.
    #[must_use]
    pub fn request(&self, origin: Origin, action: Action) -> Request {
        let number = self.next_request.fetch_add(1, Ordering::Relaxed) + 1;
        Request { id: format!("r{number}"), parent: None, origin, action, attributes: Vec::new() }
    }

    /// Takes `request` the whole way: rules and policies, live grants, the user where needed, the
    /// journal. `call` names the client's call that it belongs to.
    pub fn authorize(&self, request: Request, call: Option<&str>, cancel: &Cancel) -> Authorized {
        let mut decision = self.decide(&request);
        while decision.effect() == Effect::Ask {
            if !self.setup.context.interactive {
                decision = decision.refused(crate::ask::Refusal::Nobody.reason());
                break;
            }
            let mut question = question(self.asks.next_id(), call, &request, &decision);
            question.timeout_ms = question.timeout_ms.or(self.setup.resolved.ask.timeout_ms);
            let is_covered = || self.decide(&request).effect() != Effect::Ask;
            match self.asks.put(&self.setup.desk, &question, &request, cancel, is_covered) {
                Answer::Covered => decision = self.decide(&request),
                Answer::Refused(refusal) => decision = decision.refused(refusal.reason()),
                Answer::Choice(index) => match question.choices.get(index) {
                    Some(choice) => {
                        decision = decision.granted(AnsweredBy::User, &choice.label);
                        self.remember(choice);
                    }
                    None => decision = decision.refused("the answer was not one of the choices"),
                },
            }
        }
        if let Some(call) = call {
            self.calls.remember(call, &request);
        }
        self.record(request, decision)
    }

    /// What would be decided, without asking, recording or acting.
    #[must_use]
    pub fn decide(&self, request: &Request) -> Decision {
        self.decide_by(request, &self.force().rules)
    }

    /// The same with other rules than those of the session.
    pub(crate) fn decide_by(&self, request: &Request, rules: &RuleSet) -> Decision {
        let grants = self.live_grants();
        let context = self.context_for(request, &grants);
        let decision = self.setup.chain.decide(request, &context, rules, &grants);
        match self.ruling_on_names(request, &self.force(), &grants) {
            Some(ruling) => decision.tightened(ruling),
            None => decision,
        }
    }

    /// The context in which `request` is judged.
    pub(crate) fn context_for(&self, request: &Request, grants: &[Grant]) -> Context {
        Context {
            now: self.seconds(),
            grants: grants.iter().filter(|grant| grant.covers(request)).cloned().collect(),
            ..self.setup.context.clone()
        }
    }

    /// Writes the decision down before anything is done; what cannot be written down is not done.
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
                    self.setup.desk.notice(&format!("{}: {}", visible(decision.policy()), visible(text)));
                }
            }
        }
        Authorized { decision, permit, request }
    }

    /// Writes down what came of a request that was allowed.
    pub fn outcome(&self, request: &Request, outcome: &str) {
        self.setup.journal.after((self.setup.clock)(), &request.id, outcome);
    }

    pub(crate) fn remember(&self, choice: &Choice) {
        if choice.scope != GrantScope::Session {
            return;
        }
        let now = self.seconds();
        let expires_at = if choice.lifetime == 0 { 0 } else { now.saturating_add(choice.lifetime) };
        let grant =
            Grant { scope: choice.scope, pattern: choice.pattern.clone(), granted_at: now, expires_at };
        self.lock_grants().push(grant.clone());
        self.rebuild();
        self.asks.settle(&self.setup.desk, &grant);
    }

    /// Puts the rules in force anew, after a grant. Running commands keep the sandbox they have. Where no
    /// new sandbox can be had the old one stays: commands do not see the grant then, file tools do.
    fn rebuild(&self) {
        let mut force = self.force.write().unwrap_or_else(PoisonError::into_inner);
        // The standing rules were answered once; they do not change with grants.
        let built = Force::build(&self.setup, self.network.as_ref(), &self.live_grants(), Some(&force));
        let failed = match &built {
            Err(error) => Some(with_causes(error)),
            Ok(built) => built.confinement.as_ref().err().filter(|_| force.confinement.is_ok()).cloned(),
        };
        match (built, failed) {
            (Ok(built), None) => {
                for path in self.lock_outputs().iter() {
                    // Each was accepted before, by its name alone.
                    let _accepted = built.gate.register_output(path);
                }
                *force = Arc::new(built);
            }
            (_, reason) => {
                let reason = reason.unwrap_or_default();
                self.setup
                    .desk
                    .notice(&format!("the sandbox of commands stays as it was: {}", visible(&reason)));
            }
        }
    }

    /// What is in force now.
    #[must_use]
    pub fn force(&self) -> Arc<Force> {
        let force = || Arc::clone(&self.force.read().unwrap_or_else(PoisonError::into_inner));
        let known = force();
        if known.outlives(self.seconds()) {
            return known;
        }
        self.rebuild();
        force()
    }

    /// Lets a file into which pi put the whole output of a command be read by exactly its name.
    ///
    /// # Errors
    /// When it is not called as pi calls such files.
    pub fn register_output(&self, path: &Path) -> Result<(), FileError> {
        let force = self.force.read().unwrap_or_else(PoisonError::into_inner);
        force.gate.register_output(path)?;
        self.lock_outputs().push(path.to_owned());
        Ok(())
    }

    fn lock_outputs(&self) -> std::sync::MutexGuard<'_, Vec<PathBuf>> {
        self.outputs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The grants that live now.
    #[must_use]
    pub fn live_grants(&self) -> Vec<Grant> {
        let now = self.seconds();
        self.lock_grants().iter().filter(|grant| grant.is_live(now)).cloned().collect()
    }

    /// How many questions wait for an answer.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.asks.waiting()
    }

    /// The settings of the session.
    #[must_use]
    pub fn settings(&self) -> &Resolved {
        &self.setup.resolved
    }

    /// The agent of the session.
    #[must_use]
    pub fn agent(&self) -> &AgentInfo {
        &self.setup.context.agent
    }

    /// What commands are given beside their environment.
    pub(crate) fn variables(&self) -> &[(String, String)] {
        self.variables.get_or_init(|| (self.setup.variables)())
    }

    /// The policies' lines for the model, each under the name of its policy.
    #[must_use]
    pub fn briefs(&self) -> Vec<(String, String)> {
        let mut context = self.setup.context.clone();
        context.now = self.seconds();
        let members = self.setup.chain.members.iter();
        members
            .filter_map(|member| {
                let brief = member.policy.brief(&context).ok()?;
                (!brief.trim().is_empty()).then(|| (member.policy.name().to_owned(), brief))
            })
            .collect()
    }

    fn seconds(&self) -> u32 {
        // With a clock that makes no sense every grant that expires has expired.
        let since = (self.setup.clock)().duration_since(SystemTime::UNIX_EPOCH);
        since.ok().and_then(|since| u32::try_from(since.as_secs()).ok()).unwrap_or(u32::MAX)
    }

    fn lock_grants(&self) -> std::sync::MutexGuard<'_, Vec<Grant>> {
        self.grants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
