//! Errors of packs and manifests.

/// The reason why a pack or a manifest is refused.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum PackError {
    /// The manifest is not valid TOML or has the wrong structure.
    #[error("the manifest cannot be read")]
    Manifest(#[source] Box<toml::de::Error>),
    /// A value of the manifest is invalid.
    #[error("the manifest's `{key}`: {detail}")]
    Value { key: &'static str, detail: String },
    /// The bytes are not a component.
    #[error("it is no WebAssembly component")]
    NotAComponent,
    /// The component's sections are damaged.
    #[error("the component is damaged at byte {at}")]
    Damaged { at: usize },
    /// The component has too many sections.
    #[error("the component has more than 100,000 sections")]
    TooMany,
    /// The content of a section is invalid or too large.
    #[error("the section `{name}` {detail}")]
    Section { name: String, detail: String },
}
