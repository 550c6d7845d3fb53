//! The report: which layers are truly in force.

use std::fmt;

use crate::Controller;

/// A kernel mechanism.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Layer {
    /// User, mount, pid, ipc, uts and network namespaces.
    Namespaces,
    /// Connections lead to the host, or fail.
    Network,
    /// Hidden, read-only and writable places.
    Mounts,
    /// Rules on files that bind below the mounts.
    Landlock,
    /// Rules over names, whether they exist or not.
    Names,
    /// The seccomp filter.
    Seccomp,
    /// No capabilities, and no way to gain any.
    Privileges,
    /// A profile of `sandbox-exec`, which has passed its self-test.
    Profile,
    /// Resource limits of each command.
    Limits,
    /// Resource limits of all commands together.
    ControlGroup,
}

/// The degree to which a layer is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Force {
    /// As the profile wants it.
    Full,
    /// Less than wanted; the text says what is missing.
    Partial(String),
    /// Not in force; the text says why.
    None(String),
}

/// The layers that confine the commands of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Every layer once, outermost first.
    pub layers: Vec<(Layer, Force)>,
    /// The controllers of the control group of all commands; empty if there is none.
    pub controllers: Vec<Controller>,
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (layer, force) in &self.layers {
            writeln!(formatter, "{layer}: {force}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Namespaces => "namespaces",
            Self::Network => "network",
            Self::Mounts => "mounts",
            Self::Landlock => "landlock",
            Self::Names => "names",
            Self::Seccomp => "seccomp",
            Self::Privileges => "privileges",
            Self::Profile => "profile",
            Self::Limits => "limits",
            Self::ControlGroup => "control group",
        })
    }
}

impl fmt::Display for Force {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => formatter.write_str("full"),
            Self::Partial(missing) => write!(formatter, "partial: {missing}"),
            Self::None(why) => write!(formatter, "none: {why}"),
        }
    }
}
