//! Macros that declare the wire types.

/// Derives the common traits of wire types: strict field names, camel case, TypeScript on demand.
macro_rules! wire_structs {
    ($($(#[$attribute:meta])* pub struct $name:ident { $($fields:tt)* })*) => {$(
        $(#[$attribute])*
        #[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub struct $name { $($fields)* }
    )*};
}

/// The same for enums of plain words.
macro_rules! wire_words {
    ($($(#[$attribute:meta])* pub enum $name:ident { $($variants:tt)* })*) => {$(
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
        #[serde(rename_all = "camelCase")]
        pub enum $name { $($variants)* }
    )*};
}

pub(crate) use {wire_structs, wire_words};
