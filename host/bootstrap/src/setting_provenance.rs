//! A policy whose verdicts name the line of the settings behind them.
//!
//! A policy only knows its configuration, and names a value by a JSON pointer. The host knows where that value was
//! written.

use portcullis_decision::context::VcsParts;
use portcullis_decision::profile::Profile;
use portcullis_decision::request::{ActionKinds, Request};
use portcullis_decision::verdict::{Evaluation, OutputEvaluation, ToolOutput};
use portcullis_decision::{Context, Policy, PolicyError};
use portcullis_settings_format::Sites;

/// A policy, with the origins of its configuration values.
#[derive(Debug)]
pub(crate) struct WithProvenance<P> {
    /// The policy.
    pub(crate) policy: P,
    /// Where its configuration was written.
    pub(crate) sites: Sites,
}

impl<P> WithProvenance<P> {
    fn name_line(&self, setting: &mut String) {
        if !setting.is_empty() {
            *setting = self.sites.words(setting);
        }
    }

    fn profile(&self, profile: Option<Profile>) -> Option<Profile> {
        let mut profile = profile?;
        let files = profile.files.iter_mut().map(|rule| &mut rule.setting);
        let network = profile.network.iter_mut().map(|rule| &mut rule.setting);
        let environment = profile.environment.iter_mut().map(|rule| &mut rule.setting);
        let budgets = profile.budgets.iter_mut().map(|rule| &mut rule.setting);
        files.chain(network).chain(environment).chain(budgets).for_each(|setting| self.name_line(setting));
        Some(profile)
    }
}

impl<P: Policy> Policy for WithProvenance<P> {
    fn name(&self) -> &str {
        self.policy.name()
    }

    fn digest(&self) -> &str {
        self.policy.digest()
    }

    fn handles(&self) -> ActionKinds {
        self.policy.handles()
    }

    fn vcs_parts(&self) -> VcsParts {
        self.policy.vcs_parts()
    }

    fn evaluate(&self, request: &Request, context: &Context) -> Result<Evaluation, PolicyError> {
        let mut evaluation = self.policy.evaluate(request, context)?;
        self.name_line(&mut evaluation.cause.setting);
        Ok(evaluation)
    }

    fn standing(&self, context: &Context) -> Result<Option<Profile>, PolicyError> {
        Ok(self.profile(self.policy.standing(context)?))
    }

    fn for_command(&self, request: &Request, context: &Context) -> Result<Option<Profile>, PolicyError> {
        Ok(self.profile(self.policy.for_command(request, context)?))
    }

    fn inspects(&self) -> bool {
        self.policy.inspects()
    }

    fn rewrites(&self) -> bool {
        self.policy.rewrites()
    }

    fn inspect(
        &self,
        output: &ToolOutput,
        context: &Context,
    ) -> Result<Option<OutputEvaluation>, PolicyError> {
        let mut seen = self.policy.inspect(output, context)?;
        if let Some(seen) = &mut seen {
            self.name_line(&mut seen.cause.setting);
        }
        Ok(seen)
    }

    fn brief(&self, context: &Context) -> Result<String, PolicyError> {
        self.policy.brief(context)
    }
}
