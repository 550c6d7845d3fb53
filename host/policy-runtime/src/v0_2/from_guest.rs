//! Converts answers of a guest to the host's types and checks each field.

use portcullis_decision::PolicyError;
use portcullis_decision::context::VcsParts;
use portcullis_decision::request::{ActionKinds, Attribute, Request};
use portcullis_decision::reservation::{MOST_PATHS, RELEASE, RESERVE};
use portcullis_decision::verdict::{
    Cause, ContentBlock, Denial, Evaluation, GrantOption, Obligation, OutputEvaluation, OutputVerdict,
    Question, Severity, ToolOutput, TraceStep, Verdict,
};
use serde_json::json;

use super::bindings::exports::portcullis::policy::lifecycle;
use super::bindings::portcullis::policy::{facts, requests, tools, verdicts as guest};
use super::grant;
use super::patterns::{attribute, setting};
use crate::check::{self, bad};
use crate::description::{Capabilities, Description, RuleInfo};
use crate::error::ConfigurationFault;

pub(super) fn description(described: lifecycle::Descriptor) -> Result<Description, PolicyError> {
    let is_id = |id: &str| {
        id.split_once(':').is_some_and(|(namespace, name)| !namespace.is_empty() && !name.is_empty())
    };
    if !is_id(&described.id) {
        return Err(bad("`descriptor.id` is not `namespace:name`"));
    }
    let schema = described.config_schema.unwrap_or_default();
    if schema.len() > check::SCHEMA {
        return Err(PolicyError::AnswerSize {
            detail: format!("a schema of more than {} bytes", check::SCHEMA),
        });
    }
    Ok(Description {
        id: check::name(described.id, "descriptor.id")?,
        version: check::name(described.version, "descriptor.version")?,
        title: check::title(described.title),
        handles: action_kinds(described.handles),
        rules: check::list(described.rules, "descriptor.rules", check::PROFILE_ENTRIES, |rule| {
            Ok(RuleInfo {
                id: check::name(rule.id, "rule-info.id")?,
                title: check::title(rule.title),
                help: rule.help.map(check::long_text).unwrap_or_default(),
            })
        })?,
        config_schema: schema,
        capabilities: Some(Capabilities {
            output: described.capabilities.contains(lifecycle::Capabilities::OUTPUT),
            rewrites: described.capabilities.contains(lifecycle::Capabilities::REWRITES),
        }),
        depends_on: vcs_parts(described.depends_on),
    })
}

fn vcs_parts(parts: facts::VcsParts) -> VcsParts {
    VcsParts {
        branch: parts.contains(facts::VcsParts::BRANCH),
        head: parts.contains(facts::VcsParts::HEAD),
        dirty: parts.contains(facts::VcsParts::DIRTY),
        remotes: parts.contains(facts::VcsParts::REMOTES),
    }
}

fn action_kinds(kinds: requests::ActionKinds) -> ActionKinds {
    let has = |kind| kinds.contains(kind);
    ActionKinds {
        file: has(requests::ActionKinds::FILE),
        command: has(requests::ActionKinds::COMMAND),
        network: has(requests::ActionKinds::NETWORK),
        network_resolved: has(requests::ActionKinds::NETWORK_RESOLVED),
        network_client_hello: has(requests::ActionKinds::NETWORK_CLIENT_HELLO),
        network_http: has(requests::ActionKinds::NETWORK_HTTP),
        socket: false,
        tool: has(requests::ActionKinds::TOOL),
        escalation: has(requests::ActionKinds::ESCALATION),
        other: has(requests::ActionKinds::OTHER),
    }
}

/// Returns the faults that `configure` reported. A rejection without faults still counts as a rejection.
pub(super) fn configuration_faults(
    errors: Vec<lifecycle::ConfigError>,
) -> Result<Vec<ConfigurationFault>, PolicyError> {
    if errors.is_empty() {
        return Err(bad("it refuses its configuration and does not say why"));
    }
    check::list(errors, "configure", check::ENTRIES, |error| {
        Ok(ConfigurationFault {
            pointer: error.pointer.map(check::line).unwrap_or_default(),
            message: check::line(error.message),
        })
    })
}

pub(super) fn evaluation(answer: guest::Evaluation, request: &Request) -> Result<Evaluation, PolicyError> {
    let (verdict, cause) = verdict(answer.verdict, request)?;
    let trace = check::list(answer.trace, "trace", check::ENTRIES, |step| {
        Ok(TraceStep {
            rule: check::name(step.rule, "trace-step.rule")?,
            matched: step.matched,
            detail: step.detail.map(check::line).unwrap_or_default(),
        })
    })?;
    Ok(Evaluation { verdict, cause, trace })
}

fn cause(cause: guest::Cause) -> Result<Cause, PolicyError> {
    Ok(Cause {
        rule: check::name(cause.rule, "cause.rule")?,
        reason: check::line(cause.reason),
        setting: setting(cause.setting),
        severity: Severity::default(),
    })
}

fn verdict(verdict: guest::Verdict, request: &Request) -> Result<(Verdict, Cause), PolicyError> {
    Ok(match verdict {
        guest::Verdict::Abstain => (Verdict::Abstain, Cause::default()),
        guest::Verdict::Allow(allowance) => {
            let duties = check::list(allowance.obligations, "obligations", check::ENTRIES, obligation)?;
            (Verdict::Allow(duties), cause(allowance.cause)?)
        }
        guest::Verdict::Ask(asked) => {
            let reason = cause(asked.cause.clone())?;
            (Verdict::Ask(question(asked, request)?), reason)
        }
        guest::Verdict::Deny(denial) => {
            let hint = denial.hint.map(check::line);
            (Verdict::Deny(Denial { hint, overridable: false }), cause(denial.cause)?)
        }
    })
}

/// An unknown obligation stays `other`, which the chain turns into a denial.
fn obligation(obligation: guest::Obligation) -> Result<Obligation, PolicyError> {
    Ok(match obligation {
        guest::Obligation::RewriteScript(script) => {
            Obligation::RewriteScript(check::data(script, "rewrite-script")?)
        }
        guest::Obligation::RewriteInput(input) => {
            Obligation::RewriteInput(check::data(input, "rewrite-input")?)
        }
        guest::Obligation::Notify(text) => Obligation::Notify(check::line(text)),
        guest::Obligation::Advise(text) => Obligation::Advise(check::long_text(text)),
        guest::Obligation::Reserve(wanted) => {
            let until = match wanted.until {
                guest::ReservedUntil::Call => "call",
                guest::ReservedUntil::Session => "session",
            };
            let value = json!({ "paths": paths(wanted.paths)?, "until": until }).to_string();
            Obligation::Other(Attribute { name: RESERVE.to_owned(), value })
        }
        guest::Obligation::Release(released) => {
            let value = json!({ "paths": paths(released)? }).to_string();
            Obligation::Other(Attribute { name: RELEASE.to_owned(), value })
        }
        guest::Obligation::Other(extension) => Obligation::Other(attribute(extension)?),
    })
}

fn paths(paths: Vec<String>) -> Result<Vec<String>, PolicyError> {
    check::list(paths, "reservation.paths", MOST_PATHS, |path| check::data(path, "reservation.paths"))
}

fn question(question: guest::Question, request: &Request) -> Result<Question, PolicyError> {
    Ok(Question {
        title: check::line(question.title),
        details: question.details.map(check::long_text),
        options: check::list(question.options, "question.options", check::OPTIONS, |option| {
            Ok(GrantOption {
                label: check::title(option.label),
                scope: grant::scope(option.scope),
                pattern: grant::from_guest(option.pattern, request)?,
                lifetime: option.lifetime.unwrap_or(0),
            })
        })?,
        timeout_ms: question.timeout_ms,
    })
}

/// Checks that a replacement has as many blocks as the original, of the same kinds.
pub(super) fn output_evaluation(
    answer: guest::OutputVerdict,
    output: &ToolOutput,
) -> Result<OutputEvaluation, PolicyError> {
    let (verdict, cause) = match answer {
        guest::OutputVerdict::Abstain => (OutputVerdict::Abstain, Cause::default()),
        guest::OutputVerdict::Allow(why) => (OutputVerdict::Pass, cause(why)?),
        guest::OutputVerdict::Replace(replacement) => {
            let blocks = replaced(replacement.content, output)?;
            (OutputVerdict::Replace(blocks), cause(replacement.cause)?)
        }
        guest::OutputVerdict::Deny(why) => (OutputVerdict::Withhold, cause(why)?),
    };
    Ok(OutputEvaluation { verdict, cause })
}

fn replaced(blocks: Vec<tools::ContentBlock>, output: &ToolOutput) -> Result<Vec<ContentBlock>, PolicyError> {
    let blocks = check::list(blocks, "replace", output.content.len().max(1), content_block)?;
    let same_kind = |(new, old): (&ContentBlock, &ContentBlock)| {
        std::mem::discriminant(new) == std::mem::discriminant(old)
    };
    if blocks.len() != output.content.len() || !blocks.iter().zip(&output.content).all(same_kind) {
        return Err(bad("`replace` has other blocks than the output"));
    }
    Ok(blocks)
}

fn content_block(block: tools::ContentBlock) -> Result<ContentBlock, PolicyError> {
    Ok(match block {
        tools::ContentBlock::Text(text) => ContentBlock::Text(check::data(text, "content-block.text")?),
        tools::ContentBlock::Image(image) => {
            ContentBlock::Image(check::name(image.media_type, "content-block.image")?, image.size)
        }
        tools::ContentBlock::Other(json) => ContentBlock::Other(check::data(json, "content-block.other")?),
    })
}
