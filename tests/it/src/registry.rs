//! A real registry on the loopback interface.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result};
use tempfile::TempDir;

use crate::{Deadline, Tools, User};

/// Debian's `docker-registry`; it ends with the value.
#[derive(Debug)]
pub struct Registry {
    child: Child,
    folder: TempDir,
    port: u16,
}

impl Registry {
    /// Starts an empty one that lets everybody in.
    ///
    /// # Errors
    ///
    /// When the program is missing or does not answer.
    pub fn start() -> Result<Self> {
        Self::with("")
    }

    /// Starts an empty one that lets in those of an `htpasswd` file.
    ///
    /// # Errors
    ///
    /// When the program is missing or does not answer.
    pub fn for_those_of(htpasswd: &str) -> Result<Self> {
        Self::with(htpasswd)
    }

    fn with(htpasswd: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut config = format!(
            "version: 0.1\nlog: {{level: error, accesslog: {{disabled: true}}}}\n\
             storage: {{filesystem: {{rootdirectory: {}}}, delete: {{enabled: true}}}}\n\
             http: {{addr: '127.0.0.1:{port}', secret: tests}}\n",
            folder.path().join("data").display()
        );
        if !htpasswd.is_empty() {
            let file = folder.path().join("htpasswd");
            fs::write(&file, htpasswd)?;
            config.push_str(&format!("auth: {{htpasswd: {{realm: tests, path: {}}}}}\n", file.display()));
        }
        let file = folder.path().join("config.yml");
        fs::write(&file, config)?;
        let program = Tools::find()?.helper("docker-registry", User::Caller)?;
        let child = Command::new(program)
            .arg("serve")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("starting `docker-registry`")?;
        let registry = Self { child, folder, port };
        Deadline::start().until("an answer of the registry", || {
            Ok(TcpStream::connect(("127.0.0.1", port)).is_ok().then_some(()))
        })?;
        Ok(registry)
    }

    /// Host and port.
    #[must_use]
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Where the bytes of a blob lie, for who tampers with them.
    #[must_use]
    pub fn blob(&self, digest: &str) -> PathBuf {
        let hex = digest.trim_start_matches("sha256:");
        let short = hex.get(..2).unwrap_or_default();
        self.folder.path().join("data/docker/registry/v2/blobs/sha256").join(short).join(hex).join("data")
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        // It holds nothing that anybody wants.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
