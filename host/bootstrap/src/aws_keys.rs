//! Reads keys of AWS in the forms in which programs write them.

use std::path::Path;

use portcullis_session::AwsKeys;
use serde::Deserialize;
use zeroize::Zeroizing;

/// The names of id, secret key and token in files of AWS.
pub(crate) const NAMES: [&str; 3] = ["aws_access_key_id", SECRET, TOKEN];
const SECRET: &str = "aws_secret_access_key";
pub(crate) const TOKEN: &str = "aws_session_token";

/// The answer of a `credential_process`, and of `aws configure export-credentials`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    access_key_id: String,
    secret_access_key: String,
    session_token: Option<String>,
    expiration: Option<String>,
}

/// Parses keys: a JSON object with `AccessKeyId` and so on, or lines such as `aws_access_key_id = …` or
/// `export AWS_ACCESS_KEY_ID=…`.
pub(crate) fn parse(text: &str) -> Result<AwsKeys, &'static str> {
    if text.trim_start().starts_with('{') {
        let answer: Answer = serde_json::from_str(text).map_err(|_error| "it has no keys of AWS")?;
        let keys = AwsKeys::new(
            &answer.access_key_id,
            Zeroizing::new(answer.secret_access_key),
            answer.session_token.map(Zeroizing::new),
        )?;
        return Ok(match &answer.expiration {
            Some(at) => keys.expiring(at),
            None => keys,
        });
    }
    let [id, secret, token] = NAMES.map(|name| text.lines().find_map(|line| value(line, name)));
    let secret = secret.ok_or("it has no secret access key").map(|text| Zeroizing::new(text.to_owned()));
    let id = id.ok_or("it has no id of an access key")?;
    AwsKeys::new(id, secret?, token.map(|text| Zeroizing::new(text.to_owned())))
}

/// Returns the value of a line with this name.
fn value<'a>(line: &'a str, wanted: &str) -> Option<&'a str> {
    let line = line.trim();
    let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
    let is_wanted = name.trim().eq_ignore_ascii_case(wanted);
    is_wanted.then(|| value.trim().trim_matches(['"', '\'']))
}

/// Returns the lines of a profile in a file with profiles.
pub(crate) fn profile(text: &str, wanted: &str) -> Option<Zeroizing<String>> {
    let is_wanted = |line: &&str| name_of_profile(line) == Some(wanted);
    let mut lines = text.lines().skip_while(|line| !is_wanted(line));
    lines.next()?;
    let own: Vec<&str> = lines.take_while(|line| name_of_profile(line).is_none()).collect();
    Some(Zeroizing::new(own.join("\n")))
}

/// A profile of AWS that has keys.
#[derive(Debug, PartialEq, Eq)]
pub struct AwsProfile {
    /// Its name.
    pub name: String,
    /// Its region, if the settings of AWS name one.
    pub region: Option<String>,
}

/// Returns the profiles that have keys in `~/.aws/credentials`, without the keys.
#[must_use]
pub fn profiles_with_keys(home: &Path) -> Vec<AwsProfile> {
    // Files that cannot be read have none.
    let read = |name: &str| Zeroizing::new(std::fs::read_to_string(home.join(name)).unwrap_or_default());
    let (keys, settings) = (read(".aws/credentials"), read(".aws/config"));
    let has_keys = |name: &&str| profile(&keys, name).is_some_and(|own| parse(&own).is_ok());
    let region = |name: &str| {
        let own = profile(&settings, &format!("profile {name}")).or_else(|| profile(&settings, name))?;
        own.lines().find_map(|line| value(line, "region")).map(str::to_owned)
    };
    let names = keys.lines().filter_map(name_of_profile).filter(has_keys);
    names.map(|name| AwsProfile { name: name.to_owned(), region: region(name) }).collect()
}

/// Returns the name in a line such as `[default]`.
fn name_of_profile(line: &str) -> Option<&str> {
    line.trim().strip_prefix('[')?.strip_suffix(']').map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

    #[test]
    fn the_forms_of_programs_are_read() {
        let text = |text: &str| text.replace('$', SECRET).replace('@', "AKIAIOSFODNN7EXAMPLE");
        for keys in [
            r#"{"Version": 1, "AccessKeyId": "@", "SecretAccessKey": "$", "SessionToken": "IQoJb3JpZ2luX2VjE",
                "Expiration": "2099-01-01T00:00:00+00:00"}"#,
            "export AWS_ACCESS_KEY_ID=@\nexport AWS_SECRET_ACCESS_KEY=\"$\"",
            "aws_access_key_id = @\naws_secret_access_key = $\n",
        ] {
            assert!(parse(&text(keys)).is_ok(), "{keys}");
        }
        for keys in ["", "{}", "@", "aws_secret_access_key = $", r#"{"AccessKeyId": "@"}"#] {
            assert!(parse(&text(keys)).is_err(), "{keys}");
        }
    }

    #[test]
    fn profiles_are_told_apart() {
        let both = format!("aws_access_key_id=AKIAIOSFODNN7EXAMPLE\naws_secret_access_key={SECRET}");
        let file = format!("# none\n[default]\n{both}\n\n[ role ]\nrole_arn = a\n[work]\n{both}\n");
        let home = tempfile::tempdir().unwrap();
        assert!(profiles_with_keys(home.path()).is_empty());
        std::fs::create_dir(home.path().join(".aws")).unwrap();
        std::fs::write(home.path().join(".aws/credentials"), &file).unwrap();
        std::fs::write(home.path().join(".aws/config"), "[default]\na = b\n[profile work]\nregion = r-1\n")
            .unwrap();
        let named = |name: &str, region: Option<&str>| AwsProfile {
            name: name.to_owned(),
            region: region.map(str::to_owned),
        };
        assert_eq!(profiles_with_keys(home.path()), [named("default", None), named("work", Some("r-1"))]);
        assert_eq!(profile(&file, "role").as_deref().map(String::as_str), Some("role_arn = a"));
        assert!(profile(&file, "other").is_none());
    }
}
