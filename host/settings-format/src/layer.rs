//! The owners of settings.

/// The owner of a layer of settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Layer {
    /// The protections of Portcullis itself.
    Host,
    /// The user's settings.
    User,
    /// The machine's.
    Machine,
    /// The bundle's of the machine's or the user's team.
    Team,
    /// The project's.
    Project,
    /// The project's file in the layered layout, with the name and format of `@sysid/pi-sandbox`.
    Sandbox,
}

impl Layer {
    /// Returns the name in decisions and logs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::User => "settings",
            Self::Machine => "machine-settings",
            Self::Team => "team-settings",
            Self::Project => "project-settings",
            Self::Sandbox => "project-sandbox",
        }
    }
}
