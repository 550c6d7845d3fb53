//! Converts facts about a request to the types of the contract.

use portcullis_decision::request::Attribute;
use portcullis_decision::{ContentVerdict, Fact, KnownPlaceKind, path_text};

use super::bindings::portcullis::policy::{facts, requests as guest};

pub(super) fn fact(fact: &Fact) -> guest::Fact {
    match fact {
        Fact::Claims(claims) => guest::Fact::Claims(claims.as_ref().map(|claims| {
            claims
                .iter()
                .map(|claim| guest::Claim {
                    path: path_text::encode(&claim.path),
                    agent: claim.agent.clone(),
                    by_this_session: claim.own,
                })
                .collect()
        })),
        Fact::QuestionPlace(place) => guest::Fact::QuestionPlace(path_text::encode(place)),
        Fact::KnownPlace(place) => guest::Fact::KnownPlace(guest::KnownPlace {
            top: path_text::encode(&place.top),
            kind: match place.kind {
                KnownPlaceKind::Repository => guest::PlaceKind::Repository,
                KnownPlaceKind::Project => guest::PlaceKind::Project,
                KnownPlaceKind::Directory => guest::PlaceKind::Directory,
            },
            wider: place.wider.as_deref().map(path_text::encode),
        }),
        Fact::OtherNames(names) => guest::Fact::OtherNames(guest::OtherNames {
            denied: names.is_denied,
            reason: names.reason.clone(),
        }),
        Fact::Content(verdict) => guest::Fact::GitContent(match verdict {
            ContentVerdict::Harmless => guest::GitContent::Harmless,
            ContentVerdict::Asks(reason) => guest::GitContent::Asks(reason.clone()),
            ContentVerdict::Unreadable(reason) => guest::GitContent::Unreadable(reason.clone()),
        }),
        Fact::NamedBeforeFailure(path) => guest::Fact::NamedBeforeFailure(path.clone()),
        Fact::RunAgain(paths) => guest::Fact::RunAgain(paths.clone()),
        Fact::Provider(program) => guest::Fact::Provider(program.clone()),
        Fact::SandboxTier(name) => match tier(name) {
            Some(tier) => guest::Fact::SandboxTier(tier),
            None => guest::Fact::Other(attribute(fact.attribute())),
        },
        Fact::Contained(program) => guest::Fact::Contained(program.clone()),
        Fact::SentBytes(bytes) => {
            guest::Fact::SentKib(u32::try_from(bytes.div_ceil(1 << 10)).unwrap_or(u32::MAX))
        }
        Fact::Credential(name) => guest::Fact::Credential(name.clone()),
        // These are for people who read the log.
        Fact::BrokerRule(_) | Fact::ControlGroup(_) | Fact::Other(_) => {
            guest::Fact::Other(attribute(fact.attribute()))
        }
    }
}

fn tier(name: &str) -> Option<guest::SandboxTier> {
    Some(match name {
        "none" => guest::SandboxTier::None,
        "profile" => guest::SandboxTier::Profile,
        "landlock" => guest::SandboxTier::Landlock,
        "namespaces" => guest::SandboxTier::Namespaces,
        "full" => guest::SandboxTier::Full,
        _ => return None,
    })
}

pub(super) fn attribute(Attribute { name, value }: Attribute) -> facts::Attribute {
    facts::Attribute { name, value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_have_types() {
        assert!(matches!(fact(&Fact::SentBytes(1025)), guest::Fact::SentKib(2)));
        assert!(matches!(fact(&Fact::SentBytes(u64::MAX)), guest::Fact::SentKib(u32::MAX)));
        assert!(matches!(
            fact(&Fact::SandboxTier("full".into())),
            guest::Fact::SandboxTier(guest::SandboxTier::Full)
        ));
        let odd = fact(&Fact::SandboxTier("new".into()));
        assert!(matches!(odd, guest::Fact::Other(attribute) if attribute.name == "host:sandbox-tier"));
    }
}
