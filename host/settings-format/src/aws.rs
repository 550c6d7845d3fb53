//! Keys of AWS among the credentials that the gate uses: their sources, variables and scopes.

use crate::check;
use crate::credential_source::{CredentialSource, PlaceholderPart, PlaceholderVariable};
use crate::document_value::DocumentValue;
use crate::fault::Fault;

/// The file with the profiles of AWS.
pub const AWS_CREDENTIALS: &str = "~/.aws/credentials";

/// How the variables with the id of an access key end.
const ID: &str = "ACCESS_KEY_ID";

/// Returns the variables with id, secret key and session token of AWS, given the one with the id.
#[must_use]
pub fn aws_variables(id: &str) -> [String; 3] {
    let before = id.strip_suffix(ID).unwrap_or(id);
    [id.to_owned(), format!("{before}SECRET_ACCESS_KEY"), format!("{before}SESSION_TOKEN")]
}

/// Checks that a variable is one with an id.
pub(crate) fn is_variable_of_id(name: &str) -> Result<(), &'static str> {
    let reason = "write the variable of the id, such as `AWS_ACCESS_KEY_ID`; the secret key and the token are read from \
                  the variables beside it";
    name.ends_with(ID).then_some(()).ok_or(reason)
}

/// Reads the name of a profile in `~/.aws/credentials`.
pub(crate) fn profile(place: &DocumentValue<'_>, is_aws: bool) -> Result<Option<CredentialSource>, Fault> {
    let Some(name) = place.text() else { return Ok(None) };
    if !is_aws {
        return Err(place.fault("only the form `aws` has a profile"));
    }
    let fits = |letter: char| !letter.is_control() && !"[]".contains(letter);
    if name.is_empty() || !name.chars().all(fits) {
        return Err(place.fault("write the name of a profile, such as `default`"));
    }
    Ok(Some(CredentialSource::AwsProfile(name.to_owned())))
}

/// Reads the names of services or regions of AWS.
pub(crate) fn scope_names(place: &DocumentValue<'_>) -> Result<Vec<String>, Fault> {
    let names = place.texts();
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    match names.iter().find(|name| name.is_empty() || !name.bytes().all(fits)) {
        Some(_) => Err(place.fault("such a name has small letters, digits and `-`")),
        None => Ok(names),
    }
}

/// The variables with keys of AWS that its programs read.
const VARIABLES: [(&str, PlaceholderPart); 3] = [
    ("AWS_ACCESS_KEY_ID", PlaceholderPart::First),
    ("AWS_SECRET_ACCESS_KEY", PlaceholderPart::AwsSecret),
    ("AWS_SESSION_TOKEN", PlaceholderPart::AwsToken),
];

/// Returns the variables of commands if the settings name none.
pub(crate) fn usual_variables() -> Vec<PlaceholderVariable> {
    let variable = |(name, part): (&str, PlaceholderPart)| PlaceholderVariable {
        name: name.to_owned(),
        part,
        before: String::new(),
        after: String::new(),
    };
    VARIABLES.map(variable).into()
}

/// Parses `NAME={id}`, `NAME={secret}` or `NAME={token}`.
pub(crate) fn variable(item: &DocumentValue<'_>) -> Result<PlaceholderVariable, Fault> {
    let (name, hole) = item.text().unwrap_or_default().split_once('=').unwrap_or_default();
    let part = match hole {
        "{id}" => PlaceholderPart::First,
        "{secret}" => PlaceholderPart::AwsSecret,
        "{token}" => PlaceholderPart::AwsToken,
        _ => {
            return Err(
                item.fault("for the form `aws`, write `NAME={id}`, `NAME={secret}` or `NAME={token}`")
            );
        }
    };
    check::variable(name, "").map_err(|reason| item.fault(reason))?;
    Ok(PlaceholderVariable { name: name.to_owned(), part, before: String::new(), after: String::new() })
}
