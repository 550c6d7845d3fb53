//! Machine code embedded in the program, so that the shipped policies are never compiled at run time.

#[cfg(feature = "compiler")]
pub use compiling::{THIS_TARGET, embedded_name, precompile};

use crate::digest::ComponentDigest;

/// The machine code of one component, made by [`precompile`](crate::precompile) before the program was built.
#[derive(Debug, Clone, Copy)]
pub struct Embedded {
    name: &'static str,
    code: &'static [u8],
}

impl Embedded {
    /// Wraps embedded machine code under its name from [`embedded_name`](crate::embedded_name).
    ///
    /// The host executes these bytes. Pass only the `include_bytes!` of a file that [`precompile`](crate::precompile) wrote.
    #[must_use]
    pub const fn in_this_program(name: &'static str, code: &'static [u8]) -> Self {
        Self { name, code }
    }

    pub(crate) fn is_of(&self, digest: ComponentDigest) -> bool {
        self.name.strip_prefix(&digest.to_string()).is_some_and(|rest| rest.starts_with('-'))
    }

    pub(crate) fn code(&self) -> &'static [u8] {
        self.code
    }
}

#[cfg(feature = "compiler")]
mod compiling {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};

    use wasmtime::Engine;

    use crate::digest::ComponentDigest;
    use crate::engine::config;
    use crate::error::LoadError;

    /// Returns the name of a component's machine code.
    ///
    /// It consists of the component's SHA-256 digest, and a hash that changes with the compiler and its settings.
    ///
    /// # Errors
    /// Fails when there is no compiler for `target`.
    pub fn embedded_name(component: &[u8], target: &str) -> Result<String, LoadError> {
        let mut hasher = DefaultHasher::new();
        engine(target)?.precompile_compatibility_hash().hash(&mut hasher);
        Ok(format!("{}-{:016x}", ComponentDigest::compute(component), hasher.finish()))
    }

    /// Compiles a component for every processor of an architecture, to be embedded in the program for `target`: Rust's
    /// name of a system with this machine's architecture.
    ///
    /// # Errors
    /// Fails when the component does not compile.
    pub fn precompile(component: &[u8], target: &str) -> Result<Vec<u8>, LoadError> {
        engine(target)?.precompile_component(component).map_err(|source| LoadError::Compile { source })
    }

    /// Returns an engine that compiles for every processor of an architecture. It runs nothing.
    fn engine(target: &str) -> Result<Engine, LoadError> {
        let start = || {
            let mut config = config();
            // With an explicit target the compiler does not use features of this particular processor.
            config.target(target)?;
            Engine::new(&config)
        };
        start().map_err(|source| LoadError::Engine { source })
    }

    /// Rust's name of this system, as the engine knows it.
    pub const THIS_TARGET: &str = if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        "x86_64-unknown-linux-gnu"
    } else if cfg!(all(target_os = "linux", target_arch = "aarch64")) {
        "aarch64-unknown-linux-gnu"
    } else if cfg!(all(target_os = "macos", target_arch = "aarch64")) {
        "aarch64-apple-darwin"
    } else {
        "x86_64-apple-darwin"
    };
}
