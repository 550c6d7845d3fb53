//! What can be wrong with a pack.

/// Why a pack or a manifest is refused.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// The manifest is no TOML of the right shape.
    #[error("the manifest cannot be read")]
    Manifest(#[source] Box<toml::de::Error>),
    /// A value of the manifest cannot be used.
    #[error("the manifest's `{key}`: {detail}")]
    Value {
        /// Which one.
        key: &'static str,
        /// What is wrong and what would be right.
        detail: String,
    },
    /// The bytes are no component.
    #[error("it is no WebAssembly component")]
    NotAComponent,
    /// The component is cut or broken at the level of its sections.
    #[error("the component is damaged at byte {at}")]
    Damaged {
        /// Where.
        at: usize,
    },
    /// It has more sections than any component needs.
    #[error("the component has more than 100,000 sections")]
    TooMany,
    /// There is more in the sections than a pack may carry.
    #[error("the section `{name}` {detail}")]
    Section {
        /// Its name.
        name: String,
        /// What is wrong with it.
        detail: String,
    },
}
