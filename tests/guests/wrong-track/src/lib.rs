//! Implements `portcullis:policy@9.0.0`. A host reads that from the exports, without running anything, and reports
//! which versions it supports.

wit_bindgen::generate!({
    inline: "
        package portcullis:policy@9.0.0;

        interface lifecycle {
            describe: func() -> string;
            configure: func(config: string) -> result<_, string>;
        }

        interface evaluator {
            evaluate: func(request: string) -> string;
        }

        world policy {
            export lifecycle;
            export evaluator;
        }
    ",
});

use exports::portcullis::policy::{evaluator, lifecycle};

struct Component;

impl lifecycle::Guest for Component {
    fn describe() -> String {
        "test:wrong-track".into()
    }

    fn configure(_config: String) -> Result<(), String> {
        Ok(())
    }
}

impl evaluator::Guest for Component {
    fn evaluate(_request: String) -> String {
        "allow".into()
    }
}

export!(Component);
