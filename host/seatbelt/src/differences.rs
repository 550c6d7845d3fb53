//! What the rule set allows, or Linux asks about, and the profile denies.

/// A difference between a profile and the same rules on Linux.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Difference {
    /// A call that asks the user on Linux.
    Asks,
    /// The state of tools under its name in the user's home.
    PrivateHome,
    /// Writing a path that must not be read.
    WriteOnly,
    /// Making or moving a directory on the way to a restricted path.
    Pinned,
    /// A name that a pattern restricts in one directory, in another one.
    OtherDirectory,
    /// A new name that differs from a restricted one in case only.
    Spelling,
    /// A name that the user's other programs execute.
    Protected,
    /// A path that only a pattern allows which a profile cannot say.
    Unsayable,
}

/// Every difference, with one sentence for the user.
pub const DIFFERENCES: &[(Difference, &str)] = &[
    (
        Difference::Asks,
        "what Linux asks about is refused at once; you can allow it and run the command again",
    ),
    (
        Difference::PrivateHome,
        "tools keep their state in a home of their own; under its name in your home it is closed",
    ),
    (Difference::WriteOnly, "what commands cannot read, they cannot write, move or remove"),
    (Difference::Pinned, "directories on the way to a restricted path cannot be made, moved or removed"),
    (
        Difference::OtherDirectory,
        "a pattern that restricts names below a directory restricts them elsewhere too",
    ),
    (Difference::Spelling, "new names that differ from a restricted one in case only are refused"),
    (
        Difference::Protected,
        "names that your other programs execute are refused without a question, git's index and settings included, \
         and git directories are not made",
    ),
    (Difference::Unsayable, "a pattern with unusual characters or classes in brackets allows nothing"),
];
