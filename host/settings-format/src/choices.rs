//! Settings that are one of a few words.

/// What happens to hosts that are neither allowed nor denied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UnlistedHosts {
    /// They are a question.
    #[default]
    Ask,
    /// They are allowed if there is no user to ask.
    AllowUnattended,
    /// They are allowed.
    Allow,
}

impl UnlistedHosts {
    /// Values in a settings file.
    pub const WORDS: &[&str] = &["ask", "allowUnattended", "allow"];

    /// Returns true if they are allowed in a session with or without a user.
    #[must_use]
    pub fn are_allowed(self, interactive: bool) -> bool {
        match self {
            Self::Ask => false,
            Self::AllowUnattended => !interactive,
            Self::Allow => true,
        }
    }
}

/// Values of `filesystem.tmp`.
pub(crate) const TMP_WORDS: &[&str] = &["session", "shared"];

/// What commands see outside the working directory and the allowed paths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Elsewhere {
    /// Everything but homes.
    #[default]
    Open,
    /// The directories of the system.
    Closed,
    /// Programs and libraries.
    Programs,
}

impl Elsewhere {
    /// Values in a settings file.
    pub const WORDS: &[&str] = &["open", "closed", "programs"];
}
