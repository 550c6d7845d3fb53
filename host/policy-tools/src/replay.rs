//! Repeats the decisions of a log with other settings or policies.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::bail;
use portcullis_bootstrap::loaded_settings::{self, Purpose, Wanted};
use portcullis_bootstrap::process_env::{ProcessEnv, random_name};
use portcullis_bootstrap::session::{self, OpenSession};
use portcullis_bootstrap::streams::say;
use portcullis_decision::context::{AgentInfo, VcsParts};
use portcullis_decision::{Context, Member, Reader, path_text};
use portcullis_session::NoUser;
use portcullis_text::escape;
use portcullis_vcs::Repository;
use serde::Serialize;

use crate::corpus::{Change, PolicyAnswer};
use crate::logged::{self, Lacks};

/// A request with a different decision.
#[derive(Debug, Serialize)]
pub struct Difference {
    #[serde(flatten)]
    /// The two decisions.
    pub change: Change,
    /// The parts missing in the log, which may explain the difference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lacks: Option<Lacks>,
}

/// The result of repeating decisions.
#[derive(Debug)]
pub struct Comparison {
    /// Those that came out differently.
    pub differences: Vec<Difference>,
    /// The number of decisions.
    pub total: usize,
}

/// The settings and policies to replay a log with.
#[derive(Debug)]
pub struct ReplayWith {
    /// The project; by default the current directory.
    pub project: Option<PathBuf>,
    /// A settings file in place of the user's.
    pub settings: Option<PathBuf>,
    /// Policies in place of the configured ones.
    pub policies: Vec<PathBuf>,
}

/// Repeats the decisions of a log. `progress` gets the number of finished decisions and that of all.
///
/// # Errors
/// If the log or the settings cannot be read, or the log holds no decision.
pub fn replay(
    around: &ProcessEnv,
    log: &Path,
    with: ReplayWith,
    mut progress: impl FnMut(usize, usize),
) -> anyhow::Result<Comparison> {
    let logged = logged::read(log)?;
    let wanted = Wanted {
        settings: with.settings,
        policies: with.policies,
        project: with.project.unwrap_or_else(|| around.cwd.clone()),
        ..usual(around, "portcullis")
    };
    let loaded = loaded_settings::load(around, &wanted)?;
    let workspace = path_text::encode(&loaded.resolved.workspace);
    let now = session::context(around, &wanted, &loaded, "replay");
    let total = logged.len();
    if total == 0 {
        bail!("the log `{}` holds no decision that can be taken again", log.display());
    }
    let mut differences = Vec::new();
    // Rules depend on the context, which seldom changes within a log.
    let mut judge: Option<(Context, OpenSession)> = None;
    for (done, logged) in logged.into_iter().enumerate() {
        progress(done, total);
        let context = logged.context_or(&now);
        let facts = Context { now: 0, grants: Vec::new(), ..context.clone() };
        if judge.as_ref().is_none_or(|(known, _)| *known != facts) {
            tell_project(&facts, &workspace);
            let loaded = loaded_settings::load(around, &wanted)?;
            let (id, nobody) = (random_name()?, Arc::new(NoUser));
            judge = Some((facts.clone(), session::open_in(around, &wanted, loaded, nobody, &id, facts)?));
        }
        let Some((_, wired)) = &judge else { continue };
        let decision = wired.session.decide_in(&logged.request, context);
        let cause = decision.cause();
        let new = PolicyAnswer::new(&decision.effect().to_string(), &cause.rule, &cause.reason);
        let lacks = logged.lacks();
        let change = Change::between(logged.name, logged.said, new);
        differences.extend(change.map(|change| Difference { change, lacks }));
    }
    Ok(Comparison { differences, total })
}

/// Says whose settings decide: a log can be replayed in any project.
fn tell_project(facts: &Context, workspace: &str) {
    let Some(root) = facts.workspace.roots.first().filter(|root| *root != workspace) else { return };
    say(&escape(&format!(
        "the log is of the project `{root}`, and the settings are those of `{workspace}`; name another with `--project`"
    )));
}

/// Returns the session of the current directory's settings, with a policy beside the configured ones. It only decides.
///
/// # Errors
/// If the settings or their policies cannot be read, or a policy fails to return its rules.
pub fn session_here(around: &ProcessEnv, beside: Member) -> anyhow::Result<OpenSession> {
    let wanted = usual(around, "pi");
    let loaded = loaded_settings::load(around, &wanted)?;
    session::judging_beside(around, &wanted, loaded, beside)
}

/// Returns the setup of a session that only decides, in the current directory.
fn usual(around: &ProcessEnv, agent: &str) -> Wanted {
    Wanted {
        project: around.cwd.clone(),
        settings: None,
        policies: Vec::new(),
        agent: AgentInfo { name: agent.to_owned(), ..AgentInfo::default() },
        trusted: false,
        interactive: true,
        purpose: Purpose::Judge,
        inmate: portcullis_session::SandboxSubject::Commands,
        reader: Reader::Model,
        refusals: None,
    }
}

/// Returns the context of this directory, for requests without one.
///
/// # Errors
/// If the settings cannot be read.
pub fn context_here(around: &ProcessEnv) -> anyhow::Result<Context> {
    let wanted = usual(around, "pi");
    let loaded = loaded_settings::load(around, &wanted)?;
    let mut context = session::context(around, &wanted, &loaded, "replay");
    // The runtime passes each policy only the parts that it declares.
    context.workspace.vcs = Repository::of(&loaded.resolved.workspace).facts(VcsParts::ALL);
    Ok(context)
}
