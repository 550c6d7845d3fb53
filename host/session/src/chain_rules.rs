//! The declarative rules of a policy chain: the standing rules, and stricter ones for one command.

use portcullis_decision::{Chain, Context, Mode, PolicyError, Profile, Request, RuleLayer};
use portcullis_session_sandbox::error::OpenError;

use crate::rule_symlinks::followed;

/// Returns the standing rules of all policies whose verdicts count.
pub(crate) fn standing(chain: &Chain, context: &Context) -> Result<Vec<RuleLayer>, OpenError> {
    layers(chain, |policy| policy.standing(context))
}

/// Returns the stricter rules for one command from all policies whose verdicts count.
///
/// These rules only tighten, however much the policy is trusted: rules that allow must be standing rules, which the
/// user can inspect. Variables that a policy sets for commands are not permissions and are kept.
pub(crate) fn for_command(
    chain: &Chain,
    request: &Request,
    context: &Context,
) -> Result<Vec<RuleLayer>, OpenError> {
    let asked = layers(chain, |policy| policy.for_command(request, context))?;
    Ok(asked.into_iter().flat_map(tightening).collect())
}

/// Splits a layer into its rules, which only tighten, and the variables that it sets.
fn tightening(layer: RuleLayer) -> impl Iterator<Item = RuleLayer> {
    let RuleLayer { name, mut profile, tightens } = layer;
    let variables = std::mem::take(&mut profile.variables);
    let given = Profile { variables, ..Profile::default() };
    let given = RuleLayer { name: name.clone(), profile: given, tightens };
    let given = Some(given).filter(|layer| !layer.profile.variables.is_empty());
    std::iter::once(RuleLayer { name, profile, tightens: true }).chain(given)
}

fn layers(
    chain: &Chain,
    ask: impl Fn(&dyn portcullis_decision::Policy) -> Result<Option<Profile>, PolicyError>,
) -> Result<Vec<RuleLayer>, OpenError> {
    let mut layers = Vec::new();
    for member in chain.members.iter().filter(|member| member.mode != Mode::Observe) {
        let name = member.policy.name().to_owned();
        match ask(member.policy.as_ref()) {
            Ok(Some(profile)) => {
                let tightens = member.mode == Mode::Tighten;
                layers.push(RuleLayer { name, profile: followed(profile), tightens });
            }
            Ok(None) => {}
            Err(source) => return Err(OpenError::Rules { policy: name, source }),
        }
    }
    Ok(layers)
}
