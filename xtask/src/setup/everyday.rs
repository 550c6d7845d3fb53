//! Programs for the tasks of `everyday`, beside those of the system: from Debian, PyPI and npm, into the cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::debian::{self, Program, Start};
use super::node;
use crate::cache::Cache;
use crate::run::{find_program, quiet, say};

/// Programs from Debian, if the system has none of the name.
const FROM_DEBIAN: [Program; 10] = [
    script(
        "go",
        "golang-1.19-go",
        "export GOROOT=\"$root/usr/lib/go-1.19\"\nunset LD_LIBRARY_PATH\nexec \"$GOROOT/bin/go\" \"$@\"",
    ),
    script("ruby", "ruby", RUBY),
    script("gem", "rubygems", GEM),
    script("php", "php8.2-cli", "exec \"$root/usr/bin/php8.2\" -n \"$@\""),
    plain("redis-server", "redis-server", "usr/bin/redis-server"),
    plain("redis-cli", "redis-tools", "usr/bin/redis-cli"),
    plain("nginx", "nginx-light", "usr/sbin/nginx"),
    plain("ccache", "ccache", "usr/bin/ccache"),
    script(
        "nvim",
        "neovim",
        "export VIMRUNTIME=\"$root/usr/share/nvim/runtime\"\nexec \"$root/usr/bin/nvim\" \"$@\"",
    ),
    BROWSER,
];

/// A browser without a window.
const BROWSER: Program = Program {
    with: Some("chromium-common"),
    ..script("headless-shell", "chromium-headless-shell", CHROMIUM)
};

const CHROMIUM: &str = "export LD_LIBRARY_PATH=\"$libraries:$libraries/pulseaudio\"\n\
    exec \"$root/usr/lib/chromium/chromium-headless-shell\" \"$@\"";
const RUBY: &str = "lib=$root/usr/lib\n\
    export RUBYLIB=\"$lib/ruby/3.1.0:$libraries/ruby/3.1.0:$lib/ruby/vendor_ruby:$root/usr/share/rubygems-integration/all\"\n\
    exec \"$root/usr/bin/ruby3.1\" \"$@\"";
const GEM: &str = "lib=$root/usr/lib\n\
    export RUBYLIB=\"$lib/ruby/3.1.0:$libraries/ruby/3.1.0:$lib/ruby/vendor_ruby\"\n\
    exec \"$root/usr/bin/ruby3.1\" \"$root/usr/bin/gem3.1\" \"$@\"";

/// Packages of PyPI, in one directory; change its name with the list.
const PYTHON: &str = "everyday-python-1";
const FROM_PYPI: [&str; 14] = [
    "uv==0.9.7",
    "poetry==2.2.1",
    "pytest==8.4.2",
    "ruff==0.14.3",
    "mypy==1.18.2",
    "cmake==4.1.2",
    "ninja==1.13.0",
    "meson==1.9.1",
    "ansible-core==2.19.4",
    "jupyter-core==5.9.1",
    "sphinx==8.2.3",
    "imageio-ffmpeg==0.6.0",
    "pypandoc-binary==1.15",
    "pre-commit==4.3.0",
];

/// Packages of npm, in one directory; change its name with the list.
const NODE: &str = "everyday-node-1";
const FROM_NPM: [&str; 5] =
    ["pnpm@10.20.0", "yarn@1.22.22", "typescript@5.9.3", "prettier@3.6.2", "eslint@9.39.1"];

/// Starts a program of Python's with the modules beside it, without showing them to the programs that it starts.
const WITH_MODULES: &str = "import sys, runpy; lib, program = sys.argv[1:3]; sys.path.insert(0, lib); \
    sys.argv = [program] + sys.argv[3:]; runpy.run_path(program, run_name='__main__')";

const fn plain(name: &'static str, package: &'static str, path: &'static str) -> Program {
    Program { name, package, with: None, path, start: Start::Plain }
}

const fn script(name: &'static str, package: &'static str, lines: &'static str) -> Program {
    Program { name, package, with: None, path: "", start: Start::Script(lines) }
}

/// Returns the directories of the programs, and fetches missing ones. Programs that cannot be fetched are reported and
/// left out.
pub(crate) fn programs(cache: &Cache) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    let mut add = |what: &str, folder: Result<PathBuf>| match folder {
        Ok(folder) => folders.push(folder),
        Err(error) => say(format_args!("no {what} for everyday tasks: {error:#}")),
    };
    for program in FROM_DEBIAN.iter().filter(|program| find_program(program.name).is_none()) {
        add(program.name, program.provide(cache).map(|script| script.with_file_name("")));
    }
    add("programs of PyPI", python(cache));
    add("programs of npm", from_npm(cache));
    folders
}

/// Returns the program of a browser without a window, fetching it if it is missing.
pub(crate) fn browser(cache: &Cache) -> Result<PathBuf> {
    BROWSER.provide(cache)
}

fn python(cache: &Cache) -> Result<PathBuf> {
    let root = cache.directory(PYTHON, |root| {
        let mut pip = Command::new("/usr/bin/python3");
        pip.args(["-m", "pip", "install", "--quiet", "--no-compile", "--target"]).arg(root.join("lib"));
        quiet(pip.args(FROM_PYPI)).context("asking PyPI")?;
        fs::create_dir(root.join("scripts"))?;
        for entry in fs::read_dir(root.join("lib/bin"))? {
            let name = entry?.file_name();
            start_script(root, Path::new("lib/bin").join(&name).as_path(), &name.to_string_lossy())?;
        }
        let binaries = root.join("lib/imageio_ffmpeg/binaries");
        for entry in fs::read_dir(binaries)?.flatten() {
            let name = entry.file_name();
            if name.to_string_lossy().starts_with("ffmpeg-") {
                start_script(root, Path::new("lib/imageio_ffmpeg/binaries").join(&name).as_path(), "ffmpeg")?;
            }
        }
        start_script(root, Path::new("lib/pypandoc/files/pandoc"), "pandoc")
    })?;
    Ok(root.join("scripts"))
}

/// Writes the script that starts a program of Python's packages: a machine's own, or one of Python's.
fn start_script(root: &Path, program: &Path, name: &str) -> Result<()> {
    let bytes = fs::read(root.join(program)).with_context(|| format!("reading `{}`", program.display()))?;
    let program = program.display();
    let line = if bytes.starts_with(b"\x7fELF") {
        format!("exec \"$root/{program}\" \"$@\"")
    } else {
        format!("exec /usr/bin/python3 -c \"{WITH_MODULES}\" \"$root/lib\" \"$root/{program}\" \"$@\"")
    };
    let body = format!("root=$(dirname \"$(dirname \"$(readlink -f \"$0\")\")\")\n{line}\n");
    debian::write_script(&root.join("scripts").join(name), &body)
}

fn from_npm(cache: &Cache) -> Result<PathBuf> {
    let root = cache.directory(NODE, |root| {
        node::install(root, &FROM_NPM)?;
        fs::create_dir(root.join("scripts"))?;
        for name in ["pnpm", "yarn", "tsc", "prettier", "eslint"] {
            let body = format!(
                "root=$(dirname \"$(dirname \"$(readlink -f \"$0\")\")\")\nexec \"$root/node_modules/.bin/{name}\" \"$@\"\n"
            );
            debian::write_script(&root.join("scripts").join(name), &body)?;
        }
        Ok(())
    })?;
    Ok(root.join("scripts"))
}
