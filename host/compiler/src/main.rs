//! The `portcullis-compile` program: the WebAssembly compiler, apart from the host.
//!
//! The host starts it for a component that has no machine code yet, see `portcullis_policy_runtime::Compiler`. A
//! release also uses it to compile the shipped policies, whose machine code is embedded in the host.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use portcullis_policy_runtime::{COMPILER_ARGUMENT, THIS_TARGET, embedded_name, precompile};

/// Compiles policies for `portcullis`, which starts this program itself
#[derive(Debug, Parser)]
#[command(name = "portcullis-compile", version)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Writes the machine code of components, to be embedded in `portcullis` when it is built
    #[command(
        after_help = "Examples:\n  portcullis-compile precompile target/release/precompiled policies/*/policy.wasm"
    )]
    Precompile {
        /// The system, by Rust's name; it needs a processor of this kind
        #[arg(long, value_name = "TRIPLE", default_value = THIS_TARGET)]
        target: String,
        /// The directory to write to; other files in it are removed
        directory: PathBuf,
        /// The components
        #[arg(required = true)]
        components: Vec<PathBuf>,
    },
}

fn main() -> ExitCode {
    // This must come before any other code starts a thread or opens a file descriptor.
    if std::env::args_os().nth(1).is_some_and(|first| first == COMPILER_ARGUMENT) {
        return portcullis_policy_runtime::compiler_main();
    }
    let Verb::Precompile { target, directory, components } = Arguments::parse().verb;
    match write_machine_code(&target, &directory, &components) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&error);
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, reason = "this is where the program reports its errors")]
fn report(error: &anyhow::Error) {
    eprintln!("portcullis-compile: {error:#}");
}

/// Compiles `components` for a system into `directory`. Existing files are kept, and others removed.
fn write_machine_code(target: &str, directory: &Path, components: &[PathBuf]) -> anyhow::Result<()> {
    let mut wanted: Vec<(String, Vec<u8>)> = Vec::new();
    for file in components {
        let component = std::fs::read(file).with_context(|| format!("reading `{}`", file.display()))?;
        wanted.push((format!("{}.cwasm", embedded_name(&component, target)?), component));
    }
    let failed = || format!("writing to `{}`", directory.display());
    std::fs::create_dir_all(directory).with_context(failed)?;
    for entry in std::fs::read_dir(directory).with_context(failed)? {
        let entry = entry.with_context(failed)?;
        if !wanted.iter().any(|(name, _)| entry.file_name() == name.as_str()) {
            std::fs::remove_file(entry.path()).with_context(failed)?;
        }
    }
    for (name, component) in wanted {
        let path = directory.join(name);
        if !path.exists() {
            std::fs::write(path, precompile(&component, target)?).with_context(failed)?;
        }
    }
    Ok(())
}
