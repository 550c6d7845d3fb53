//! The kinds of settings files.

use std::path::Path;

use crate::layer::Layer;

/// The content of a settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A complete set of settings, like `default.json`.
    Settings,
    /// Settings per project, like `projects.json`.
    Projects,
    /// Partial settings over the built-in ones, like `extensions/sandbox.json` in the layered layout.
    Part,
    /// Partial settings per project, like `layered.json`.
    Parts,
    /// A layer that can only tighten.
    Tightening(Layer),
}

impl FileKind {
    /// Returns the kind of a file by its usual name; any other name means complete settings.
    #[must_use]
    pub fn from_name(file: &Path) -> Self {
        let name = |path: Option<&Path>| {
            path.and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or_default().to_owned()
        };
        match (name(file.parent()).as_str(), name(Some(file)).as_str()) {
            (_, "projects.json") => Self::Projects,
            (_, "layered.json") => Self::Parts,
            ("extensions", "sandbox.json") => Self::Part,
            (".pi", "sandbox.json") => Self::Tightening(Layer::Sandbox),
            (_, "portcullis.json") => Self::Tightening(Layer::Project),
            _ => Self::Settings,
        }
    }
}
