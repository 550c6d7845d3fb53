//! Where credentials come from, and the variables of commands that hold their placeholders.

/// Where a credential comes from. It is read outside the sandbox, when it is first needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialSource {
    /// A variable in the environment of the host.
    Variable(String),
    /// A file, absolute or below `~`.
    File(String),
    /// The output of a program with its arguments.
    Command(Vec<String>),
    /// The first line of an entry of `pass`.
    Pass(String),
    /// Attributes and values for `secret-tool lookup`.
    SecretTool(Vec<String>),
    /// A profile in `~/.aws/credentials`.
    AwsProfile(String),
}

/// The placeholder that a variable holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceholderPart {
    /// The one of the credential, or of the id of an access key of AWS.
    First,
    /// The one of a secret access key of AWS.
    AwsSecret,
    /// The one of a session token of AWS.
    AwsToken,
}

/// A variable of commands that holds a placeholder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceholderVariable {
    /// The name of the variable.
    pub name: String,
    /// The placeholder.
    pub part: PlaceholderPart,
    /// The text before the placeholder.
    pub before: String,
    /// The text after it.
    pub after: String,
}
