//! The file rules as data, for a process that must answer with the same rules.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::own_places::OwnData;
use super::{Base, RuleLayer, RuleSet};
use crate::grant::{Grant, GrantPattern, GrantScope, PathPattern};
use crate::path_text;
use crate::profile::{FileRule, Profile};

/// The data that a rule set on files is compiled from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleData {
    layers: Vec<RuleLayer>,
    workspace: Vec<String>,
    temp: String,
    closed: Vec<String>,
    own: OwnData,
    grants: Vec<PathPattern>,
    /// Writable places that do not exist, so that no mount can make them writable.
    missing: Vec<String>,
}

/// Reason why data do not encode a rule set.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// The encoding is malformed.
    #[error("reading rules that another process sent")]
    Form(#[from] serde_json::Error),
    /// A text is not a path.
    #[error("`{0}` is no path in the rules that another process sent")]
    Path(String),
}

impl RuleSet {
    /// Returns the data that the set is compiled from, as far as they concern files.
    #[must_use]
    pub fn data(&self) -> RuleData {
        let layers = self.layers.iter().map(|layer| {
            let profile = Profile { files: layer.profile.files.clone(), ..Profile::default() };
            RuleLayer { name: layer.name.clone(), profile, tightens: layer.tightens }
        });
        let grants = self.grants.iter();
        RuleData {
            layers: layers.collect(),
            workspace: texts(&self.base.workspace),
            temp: path_text::encode(&self.base.temp),
            closed: texts(&self.base.closed),
            own: OwnData::from_places(&self.base.own),
            grants: grants
                .map(|grant| PathPattern { pattern: grant.pattern.clone(), rights: grant.rights })
                .collect(),
            missing: Vec::new(),
        }
    }
}

impl RuleData {
    /// Removes the file rules of a layer for which `is_left_out` returns true.
    #[must_use]
    pub fn without(mut self, layer: &str, is_left_out: impl Fn(&FileRule) -> bool) -> Self {
        for known in self.layers.iter_mut().filter(|known| known.name == layer) {
            known.profile.files.retain(|rule| !is_left_out(rule));
        }
        self
    }

    /// Sets the places that commands may write and that do not exist yet.
    #[must_use]
    pub fn with_missing<'a>(mut self, missing: impl Iterator<Item = &'a Path>) -> Self {
        self.missing = missing.map(path_text::encode).collect();
        self
    }

    /// Returns the places set by [`RuleData::with_missing`].
    ///
    /// # Errors
    /// If a text is not a path.
    pub fn missing(&self) -> Result<Vec<PathBuf>, DataError> {
        paths(self.missing.clone())
    }

    /// Encodes the data.
    ///
    /// # Errors
    /// None that are known; the format has no limits.
    pub fn encode(&self) -> Result<Vec<u8>, DataError> {
        Ok(serde_json::to_vec(self)?)
    }

    /// Decodes the output of [`RuleData::encode`].
    ///
    /// # Errors
    /// If it is malformed.
    pub fn decode(bytes: &[u8]) -> Result<Self, DataError> {
        Ok(serde_json::from_slice(bytes)?)
    }

    /// Compiles the rules.
    ///
    /// # Errors
    /// If a text is not a path.
    pub fn compile(self) -> Result<RuleSet, DataError> {
        let grant = |pattern| Grant {
            scope: GrantScope::Session,
            pattern: GrantPattern::Path(pattern),
            granted_at: 0,
            expires_at: 0,
        };
        let grants: Vec<Grant> = self.grants.into_iter().map(grant).collect();
        let base = Base {
            workspace: paths(self.workspace)?,
            temp: path(self.temp)?,
            closed: paths(self.closed)?,
            own: self.own.places().map_err(DataError::Path)?,
        };
        Ok(RuleSet::compile(self.layers, base, &grants))
    }
}

fn texts(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(|path| path_text::encode(path)).collect()
}

fn paths(texts: Vec<String>) -> Result<Vec<PathBuf>, DataError> {
    texts.into_iter().map(path).collect()
}

fn path(text: String) -> Result<PathBuf, DataError> {
    path_text::decode(&text).ok_or(DataError::Path(text))
}
