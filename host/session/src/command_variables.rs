//! The variables of a command.

use std::sync::Arc;

use portcullis_decision::{Base, RuleSet};
use portcullis_session_sandbox::environment::{environment, environment_of_agent};
use portcullis_settings_format::BrokeredCredential;

use crate::session::Session;
use crate::setup::CommandVariables;

/// The shortest value of a source that is searched for in other variables. A shorter one is no credential.
const VALUE_MIN: usize = 6;

/// Returns the variables of a command; `given` are those that it inherits.
pub(crate) fn variables_of(
    session: &Session,
    given: Vec<(String, String)>,
    rules: &RuleSet,
    base: &Base,
) -> Vec<(String, String)> {
    let temp = base.temp.to_string_lossy();
    match session.setup.inmate.is_agent() {
        true => environment_of_agent(given, &temp),
        false => {
            let given = without_sources(&session.policy.unchecked().basis.resolved.brokered, given);
            let harmless = session.env_verdicts.verdicts(&given);
            let runtime =
                session.setup.own.runtime.as_ref().filter(|path| base.own.directories.contains(path));
            let runtime = runtime.map(|path| path.to_string_lossy());
            let CommandVariables { variables, files } = session.variables();
            let in_temp = |(name, file): &(String, String)| (name.clone(), format!("{temp}/{file}"));
            let mut added: Vec<_> = variables.iter().cloned().chain(files.iter().map(in_temp)).collect();
            added.extend(placeholders(session));
            environment(given, &harmless, &added, rules, (&temp, runtime.as_deref()))
        }
    }
}

/// Takes out the variables that credentials come from, and those that contain the value of one. No rule on variables
/// keeps them.
fn without_sources(
    credentials: &[BrokeredCredential],
    given: Vec<(String, String)>,
) -> Vec<(String, String)> {
    if credentials.is_empty() {
        return given;
    }
    let sources: Vec<String> = credentials.iter().flat_map(BrokeredCredential::source_variables).collect();
    let is_source = |name: &str| sources.iter().any(|source| source == name);
    let values: Vec<String> = given
        .iter()
        .map(|(name, value)| (name, value.trim()))
        .filter(|(name, value)| is_source(name) && value.len() >= VALUE_MIN)
        .map(|(_, value)| value.to_owned())
        .collect();
    let has_none = |(name, value): &(String, String)| {
        !is_source(name) && !values.iter().any(|known| value.contains(known.as_str()))
    };
    given.into_iter().filter(has_none).collect()
}

/// Returns the variables for brokered hosts. Without them, the gate refuses what goes there.
fn placeholders(session: &Session) -> Vec<(String, String)> {
    let basis = Arc::clone(&session.policy.unchecked().basis);
    session.brokering.variables(&basis).unwrap_or_else(|error| {
        let text = format!("the credentials of the settings cannot be set up for commands: {error}");
        session.setup.prompter.notice(&text);
        Vec::new()
    })
}

#[cfg(test)]
mod tests {
    use portcullis_decision::request::Endpoint;
    use portcullis_settings_format::{CredentialForm, CredentialSource};

    use super::*;

    fn from(source: CredentialSource) -> BrokeredCredential {
        BrokeredCredential {
            name: "forge".to_owned(),
            source,
            host: Endpoint::Domain("forge.test".to_owned()),
            port: 443,
            form: CredentialForm::Bearer,
            purpose: Vec::new(),
            variables: Vec::new(),
            is_for_git: false,
        }
    }

    fn names(credentials: &[BrokeredCredential], given: &[(&str, &str)]) -> Vec<String> {
        let given = given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        without_sources(credentials, given).into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn the_source_of_a_credential_and_its_value_are_not_inherited() {
        let of_variable = [from(CredentialSource::Variable("PLAIN".to_owned()))];
        let given =
            [("PLAIN", "hunter22\n"), ("URL", "https://me:hunter22@forge.test"), ("HOME", "/home/me")];
        assert_eq!(names(&of_variable, &given), ["HOME"]);
        assert_eq!(names(&[], &given), ["PLAIN", "URL", "HOME"], "nothing is declared");
        let aws = CredentialForm::Aws { services: Vec::new(), regions: Vec::new() };
        let of_aws = [BrokeredCredential {
            form: aws,
            ..from(CredentialSource::Variable("AWS_ACCESS_KEY_ID".to_owned()))
        }];
        let given = [
            ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
            ("AWS_SECRET_ACCESS_KEY", "hunter22"),
            ("A", "a hunter22"),
        ];
        assert!(names(&of_aws, &given).is_empty());
        let given =
            [("PLAIN", "hunter22\n"), ("URL", "https://me:hunter22@forge.test"), ("HOME", "/home/me")];
        let of_file = [from(CredentialSource::File("~/PLAIN".to_owned()))];
        assert_eq!(names(&of_file, &given), ["PLAIN", "URL", "HOME"]);
        assert_eq!(
            names(&of_variable, &[("PLAIN", "ab"), ("HOME", "/home/ab")]),
            ["HOME"],
            "too short to be one"
        );
    }
}
