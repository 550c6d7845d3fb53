//! Proposes entries for the keys of AWS that the user has.

use portcullis_bootstrap::aws_keys::{AwsProfile, profiles_with_keys};
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_settings_format::AWS_CREDENTIALS;

use super::proposal::Proposal;

/// The region if the user's settings of AWS name none.
const AWS_REGION: &str = "us-east-1";

/// Proposes S3 with the keys in the environment and in each profile of `~/.aws/credentials`.
pub(super) fn proposals(around: &ProcessEnv) -> Vec<Proposal> {
    let is_word = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    let variable = |wanted: &str| {
        let found = around.variables.iter().find(|(name, value)| name == wanted && !value.is_empty());
        found.map(|(_, value)| value.as_str())
    };
    let proposal = |name: String, (seen, option): (String, String), region: &str| Proposal {
        name: name.clone(),
        seen,
        command: format!(
            "portcullis credentials add {name} --form aws {option} --host s3.{region}.amazonaws.com --for 'GET,HEAD /**'"
        ),
        allows: format!("s3.{region}.amazonaws.com: GET,HEAD /**"),
    };
    let of_variable = variable("AWS_ACCESS_KEY_ID").map(|_id| {
        let region = ["AWS_REGION", "AWS_DEFAULT_REGION"]
            .into_iter()
            .find_map(variable)
            .filter(|region| is_word(region));
        let option = "--env AWS_ACCESS_KEY_ID".to_owned();
        let seen = "AWS_ACCESS_KEY_ID is set".to_owned();
        proposal("aws".to_owned(), (seen, option), region.unwrap_or(AWS_REGION))
    });
    let profiles = profiles_with_keys(&around.home).into_iter();
    let of_profiles =
        profiles.filter(|one| is_word(&one.name)).map(|AwsProfile { name: profile, region }| {
            let name = if profile == "default" { "aws".to_owned() } else { format!("aws-{profile}") };
            let seen = format!("{AWS_CREDENTIALS} has the profile {profile}");
            let region = region.filter(|region| is_word(region));
            let option = format!("--aws-profile {profile}");
            proposal(name, (seen, option), region.as_deref().unwrap_or(AWS_REGION))
        });
    let mut all: Vec<Proposal> = of_variable.into_iter().collect();
    for proposal in of_profiles {
        if !all.iter().any(|known| known.name == proposal.name) {
            all.push(proposal);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_of_aws_are_proposed_without_their_keys() {
        let directory = tempfile::tempdir().unwrap();
        let own = ProcessEnv {
            home: directory.path().to_owned(),
            variables: Vec::new(),
            ..ProcessEnv::read().unwrap()
        };
        assert!(proposals(&own).is_empty());
        let keys = "aws_access_key_id = AKIAIOSFODNN7EXAMPLE\naws_secret_access_key = wJalrXUtnFEMIK7MDENG\n";
        std::fs::create_dir(directory.path().join(".aws")).unwrap();
        let profiles = format!("[default]\n{keys}[work]\n{keys}[role]\nrole_arn = a\n[b'd]\n{keys}");
        std::fs::write(directory.path().join(".aws/credentials"), profiles).unwrap();
        std::fs::write(directory.path().join(".aws/config"), "[profile work]\nregion = eu-central-1\n")
            .unwrap();
        let all = proposals(&own);
        let commands: Vec<&str> = all.iter().map(|one| one.command.as_str()).collect();
        assert_eq!(
            commands,
            [
                "portcullis credentials add aws --form aws --aws-profile default --host s3.us-east-1.amazonaws.com --for 'GET,HEAD /**'",
                "portcullis credentials add aws-work --form aws --aws-profile work --host s3.eu-central-1.amazonaws.com --for 'GET,HEAD /**'",
            ]
        );
        assert!(all.iter().all(|one| !format!("{}{}", one.seen, one.command).contains("AKIA")));
        let variables = vec![("AWS_ACCESS_KEY_ID".to_owned(), "AKIAIOSFODNN7EXAMPLE".to_owned())];
        let with_variable = proposals(&ProcessEnv { variables, ..own });
        assert!(with_variable.iter().map(|one| one.name.as_str()).eq(["aws", "aws-work"]));
        assert!(with_variable.iter().any(|one| one.command.contains("--env AWS_ACCESS_KEY_ID ")));
    }
}
