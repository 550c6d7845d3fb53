//! Parses settings.

use std::path::Path;

use crate::check::{Completeness, bad_value, check};
use crate::error::ConfigError;
use crate::extends::EXTENDS;
use crate::fault::invalid;
use crate::json::Node;
use crate::layout_choice::chooses_layered;
use crate::pointer::step;
use crate::settings::{BUILT_IN, Settings};

impl Settings {
    /// Parses the text of a settings file. Errors and origins name `file`.
    ///
    /// ```
    /// use std::path::Path;
    /// let text = r#"{ "network": { "allowedDomain": [] } }"#;
    /// let error = portcullis_settings_format::Settings::parse(text, Path::new("default.json")).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "reading settings `default.json`: line 1, column 16: \
    ///      unknown key `allowedDomain`, did you mean `allowedDomains`?",
    /// );
    /// ```
    ///
    /// # Errors
    /// When the text is not JSON, has an unknown or duplicate key, a value of the wrong type, or a field that is
    /// refused.
    pub fn parse(text: &str, file: &Path) -> Result<Self, ConfigError> {
        let document = crate::json::read(text).map_err(|fault| invalid(file, fault))?;
        Self::from_node(&document, file, "")
    }

    /// Returns the settings that apply without a settings file.
    ///
    /// # Errors
    /// Never in a build whose tests pass; the caller denies otherwise.
    pub fn built_in() -> Result<Self, ConfigError> {
        Self::parse(BUILT_IN, Path::new("<built in>"))
    }

    /// Decodes settings found at `pointer` of `file`.
    ///
    /// # Errors
    /// As for [`Settings::parse`].
    pub fn from_node(node: &Node, file: &Path, pointer: &str) -> Result<Self, ConfigError> {
        let kept = check(node, pointer, Completeness::Whole).map_err(|fault| invalid(file, fault))?;
        if chooses_layered(node) {
            let place = crate::document_value::DocumentValue::top(node, file).child("layout");
            let fault = place.fault("only `default.json` chooses the layout, and holds nothing else then");
            return Err(invalid(file, fault));
        }
        if let Some(extends) = node.member(EXTENDS) {
            let reason = "only an entry of `projects.json` extends other settings";
            return Err(invalid(file, bad_value(extends, &step(pointer, EXTENDS), reason)));
        }
        crate::decode::settings(node, file, pointer, kept).map_err(|fault| invalid(file, fault))
    }
}
