//! A registry of npm packages on loopback, with nothing but ours.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::dist::tools;
use crate::project;
use crate::run::quiet;

const PATIENCE: Duration = Duration::from_secs(60);

/// The running registry; it ends with this value.
#[derive(Debug)]
pub(super) struct Registry {
    /// Its address, with a slash at the end.
    pub(super) address: String,
    server: Child,
    directory: PathBuf,
}

impl Registry {
    /// Starts a registry and publishes all npm packages of a release.
    pub(super) fn with_packages_of(out: &Path) -> Result<Self> {
        let directory = project::target_directory()?.join("dist-registry");
        if directory.exists() {
            fs::remove_dir_all(&directory).context("removing the registry of an earlier proof")?;
        }
        fs::create_dir_all(&directory)?;
        let listen = format!("127.0.0.1:{}", free_port()?);
        fs::write(directory.join("config.yaml"), configuration(&directory))
            .context("configuring the registry")?;
        let mut command = Command::new("node");
        command.arg(tools::verdaccio()?).arg("--config").arg(directory.join("config.yaml"));
        command.args(["--listen", &listen]).stdin(Stdio::null()).stdout(Stdio::null());
        let server = command.spawn().context("starting the registry")?;
        let registry = Self { address: format!("http://{listen}/"), server, directory };
        registry.wait(&listen)?;
        registry.publish(out)?;
        Ok(registry)
    }

    fn wait(&self, listen: &str) -> Result<()> {
        let start = Instant::now();
        while TcpStream::connect(listen).is_err() {
            if start.elapsed() > PATIENCE {
                bail!("the registry does not answer");
            }
            thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    fn publish(&self, out: &Path) -> Result<()> {
        let host = self.address.trim_start_matches("http:");
        // npm publishes only with a token; this registry accepts any.
        let settings = self.directory.join("npmrc");
        fs::write(&settings, format!("registry={}\n{host}:_authToken=anybody\n", self.address))?;
        let entries = fs::read_dir(out).with_context(|| format!("listing `{}`", out.display()))?;
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.extension().is_some_and(|extension| extension == "tgz") {
                let mut npm = Command::new("npm");
                npm.arg("publish").arg(&path).args(["--access", "public", "--userconfig"]).arg(&settings);
                quiet(&mut npm).with_context(|| format!("publishing `{}`", path.display()))?;
            }
        }
        Ok(())
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        // It may have ended already.
        let _ended = self.server.kill();
        let _status = self.server.wait();
        let _leftover = fs::remove_dir_all(&self.directory);
    }
}

fn configuration(directory: &Path) -> String {
    format!(
        "storage: {}\n\
         auth:\n  htpasswd:\n    file: {}\n\
         packages:\n  '**':\n    access: $all\n    publish: $all\n\
         max_body_size: 500mb\n\
         log: {{ type: stdout, format: pretty, level: error }}\n",
        directory.join("storage").display(),
        directory.join("htpasswd").display()
    )
}

fn free_port() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context("finding a free port")?;
    Ok(listener.local_addr()?.port())
}
