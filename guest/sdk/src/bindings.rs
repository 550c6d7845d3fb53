//! The bindings that `wit-bindgen` generates from the contract in `wit/`.
#![allow(missing_docs, reason = "the contract's own documentation is copied where it has any")]
wit_bindgen::generate!({
    path: "../../wit",
    world: "pure-full-policy",
    pub_export_macro: true,
    export_macro_name: "export_bindings",
    default_bindings_module: "portcullis_sdk::bindings",
    runtime_path: "wit_bindgen::rt",
    additional_derives: [PartialEq],
});
