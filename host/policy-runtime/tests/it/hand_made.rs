//! Makes policies out of a few lines of WebAssembly text.
//!
//! The module implements the canonical ABI by hand: records are at fixed places in its memory, and a function
//! returns the address of one.

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// Address of the denial by rule `test.rule` that `evaluate` returns.
pub(crate) const DENIAL: u32 = 3072;
/// Offset of the verdict's case in an evaluation.
pub(crate) const VERDICT: u32 = 0;
/// Offsets of the address and length of the cause's strings.
pub(crate) const RULE: u32 = 40;
pub(crate) const REASON: u32 = 48;
/// Offset of the trace, a list.
pub(crate) const TRACE: u32 = 68;
/// Address of the answer of `configure`: zeros, which mean "accepted".
const CONFIGURED: u32 = 2048;
const DESCRIPTOR: u32 = 1024;
const STRINGS: u32 = 4096;
/// The text of the contract.
const CONTRACT: [&str; 4] = [
    include_str!("../../../../wit/types.wit"),
    include_str!("../../../../wit/exports.wit"),
    include_str!("../../../../wit/imports.wit"),
    include_str!("../../../../wit/world.wit"),
];

/// A builder for a policy.
pub(crate) struct HandMade {
    world: String,
    packages: String,
    track: &'static str,
    fields: String,
    imports: String,
    configure: String,
    evaluate: String,
}

impl HandMade {
    /// A policy whose `evaluate` runs these instructions before it returns the denial.
    pub(crate) fn evaluate(instructions: &str) -> Self {
        Self {
            world: "include portcullis:policy/pure-policy@0.1.0;".into(),
            packages: String::new(),
            track: "0.1.0",
            fields: String::new(),
            imports: String::new(),
            configure: String::new(),
            evaluate: instructions.into(),
        }
    }

    /// Sets the instructions of `configure`, which has the locals `$text` and `$length`.
    pub(crate) fn configure(mut self, instructions: &str) -> Self {
        self.configure = instructions.into();
        self
    }

    /// Sets further fields of the module.
    pub(crate) fn fields(mut self, fields: &str) -> Self {
        self.fields = fields.into();
        self
    }

    /// Adds items to the world, and the module's imports for them.
    pub(crate) fn imports(mut self, world: &str, module: &str) -> Self {
        self.world.push_str(world);
        self.imports.push_str(module);
        self
    }

    /// Sets the WIT packages that the world names.
    pub(crate) fn packages(mut self, packages: &str) -> Self {
        self.packages = packages.into();
        self
    }

    /// Sets the version of the contract.
    pub(crate) fn track(mut self, track: &'static str) -> Self {
        self.world = self.world.replace("@0.1.0", &format!("@{track}"));
        self.track = track;
        self
    }

    /// Builds the component.
    pub(crate) fn build(self) -> Vec<u8> {
        let mut module = wat::parse_str(self.module()).unwrap();
        let mut resolve = Resolve::default();
        let contract = CONTRACT
            .concat()
            .replace("portcullis:policy@0.1.0", &format!("portcullis:policy@{}", self.track));
        resolve.push_str("contract.wit", &contract).unwrap();
        for (number, package) in
            self.packages.split("---").filter(|package| !package.trim().is_empty()).enumerate()
        {
            resolve.push_str(format!("package-{number}.wit"), package).unwrap();
        }
        let world = format!("package test:it; world it {{ {} }}", self.world);
        let package = resolve.push_str("world.wit", &world).unwrap();
        let world = resolve.select_world(&[package], Some("it")).unwrap();
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
        let mut encoder = ComponentEncoder::default();
        encoder.validate(true).module(&module).unwrap().encode().unwrap()
    }

    fn module(&self) -> String {
        let Self { track, fields, imports, configure, evaluate, .. } = self;
        let data = data();
        format!(
            r#"(module {imports}
            (memory (export "memory") 2)
            (global $next (mut i32) (i32.const 65536))
            (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (local $at i32)
                (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
                (global.set $next (i32.add (local.get $at) (local.get 3)))
                (local.get $at))
            {fields}
            (func (export "portcullis:policy/lifecycle@{track}#describe") (result i32)
                (i32.const {DESCRIPTOR}))
            (func (export "portcullis:policy/lifecycle@{track}#configure") (param $text i32) (param $length i32) (result i32)
                {configure} (i32.const {CONFIGURED}))
            (func (export "portcullis:policy/evaluator@{track}#evaluate") (param i32) (result i32)
                {evaluate} (i32.const {DENIAL}))
            {data})"#
        )
    }
}

/// Returns instructions that store a number into the evaluation.
pub(crate) fn store(offset: u32, value: i64) -> String {
    format!("(i32.store (i32.const {}) (i32.const {value}))", DENIAL + offset)
}

/// Returns the data segments: the descriptor, the denial and their strings.
fn data() -> String {
    let mut strings = Vec::new();
    let mut text = |text: &str| {
        let at = STRINGS + u32::try_from(strings.len()).unwrap();
        strings.extend_from_slice(text.as_bytes());
        [at, u32::try_from(text.len()).unwrap()]
    };
    // Flags: the first one, `file`.
    let descriptor = [text("test:hand-made"), text("1.0.0"), text("Hand-made"), [1, 0], [0, 0], [0, 0]];
    let mut denial = [0; 19];
    denial[0] = 3;
    denial[10..12].copy_from_slice(&text("test.rule"));
    denial[12..14].copy_from_slice(&text("because"));
    let parts =
        [(DESCRIPTOR, words(descriptor.as_flattened())), (DENIAL, words(&denial)), (STRINGS, strings)];
    parts
        .into_iter()
        .map(|(at, bytes)| format!("(data (i32.const {at}) \"{}\")\n", escaped(&bytes)))
        .collect()
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn escaped(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("\\{byte:02x}")).collect()
}
