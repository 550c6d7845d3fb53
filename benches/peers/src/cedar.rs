//! The rules as policies of Cedar, one for each place.

use std::fmt::Write as _;

use cedar_policy::{Authorizer, Context, Decision, Entities, EntityUid, PolicySet, Request, RestrictedExpression};

use crate::{Engine, Question, Rules};

pub(crate) struct Cedar {
    policies: PolicySet,
    entities: Entities,
    authorizer: Authorizer,
    agent: EntityUid,
    file: EntityUid,
    read: EntityUid,
    write: EntityUid,
}

impl Cedar {
    pub(crate) fn new(rules: &Rules) -> Self {
        let mut text = String::new();
        let mut permit = |actions: &str, place: &str| {
            writeln!(
                text,
                "permit(principal, action in [{actions}], resource) when {{ context.path == \"{place}\" || context.path like \"{place}/*\" }};"
            )
            .expect("a text takes more");
        };
        for place in &rules.read {
            permit("Action::\"read\"", place);
        }
        for place in &rules.write {
            permit("Action::\"read\", Action::\"write\"", place);
        }
        let name = |text: &str| text.parse::<EntityUid>().expect("a name");
        Self {
            policies: text.parse().expect("policies"),
            entities: Entities::empty(),
            authorizer: Authorizer::new(),
            agent: name("Agent::\"pi\""),
            file: name("File::\"file\""),
            read: name("Action::\"read\""),
            write: name("Action::\"write\""),
        }
    }
}

impl Engine for Cedar {
    fn allows(&mut self, question: Question<'_>) -> bool {
        let action = if question.write { &self.write } else { &self.read };
        let path = RestrictedExpression::new_string(question.path.to_owned());
        let context = Context::from_pairs([("path".to_owned(), path)]).expect("a context");
        let request = Request::new(self.agent.clone(), action.clone(), self.file.clone(), context, None);
        let request = request.expect("a request");
        let answer = self.authorizer.is_authorized(&request, &self.policies, &self.entities);
        answer.decision() == Decision::Allow
    }
}
