//! A real registry on the loopback interface.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

use crate::{Deadline, Tools, User};

/// The kind of certificate of a registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certificate {
    /// Valid.
    Good,
    /// For another host.
    OtherName,
    /// Expired yesterday.
    Expired,
}

impl Certificate {
    /// Writes `ca.pem`, `cert.pem` and `key.pem`.
    fn make(self, folder: &Path) -> Result<()> {
        let address = if self == Self::OtherName { "192.0.2.1" } else { "0.0.0.0" };
        let days = if self == Self::Expired { "-1" } else { "2" };
        fs::write(folder.join("names"), format!("subjectAltName=IP:{address}\n"))?;
        let script = format!(
            "new='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'\n\
             openssl req -x509 $new -keyout ca.key -out ca.pem -days 2 -subj /CN=authority \\\n\
               -addext basicConstraints=critical,CA:TRUE &&\n\
             openssl req $new -keyout key.pem -out request.pem -subj /CN=registry &&\n\
             openssl x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days {days} \\\n\
               -extfile names -out cert.pem\n"
        );
        let made = Command::new("sh").arg("-c").arg(script).current_dir(folder).output();
        let made = made.context("starting `openssl`")?;
        ensure!(made.status.success(), "`openssl`: {}", String::from_utf8_lossy(&made.stderr));
        Ok(())
    }
}

/// Debian's `docker-registry`; it ends when this is dropped.
#[derive(Debug)]
pub struct Registry {
    child: Child,
    folder: TempDir,
    port: u16,
}

impl Registry {
    /// Starts an empty one that admits everyone.
    ///
    /// # Errors
    ///
    /// If the program is missing or does not answer.
    pub fn start() -> Result<Self> {
        Self::with(tempfile::tempdir()?, "", "")
    }

    /// Starts an empty one that admits the users of an `htpasswd` file.
    ///
    /// # Errors
    ///
    /// If the program is missing or does not answer.
    pub fn for_those_of(htpasswd: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("htpasswd");
        fs::write(&file, htpasswd)?;
        let auth = format!("auth: {{htpasswd: {{realm: tests, path: {}}}}}\n", file.display());
        Self::with(folder, "", &auth)
    }

    /// Starts an empty one that uses TLS, with a certificate of an authority of its own.
    ///
    /// # Errors
    ///
    /// If the program or `openssl` is missing or does not answer.
    pub fn with_tls(certificate: Certificate) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        certificate.make(folder.path())?;
        let file = |name: &str| folder.path().join(name).display().to_string();
        let tls = format!(", tls: {{certificate: '{}', key: '{}'}}", file("cert.pem"), file("key.pem"));
        Self::with(folder, &tls, "")
    }

    fn with(folder: TempDir, tls: &str, auth: &str) -> Result<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let config = format!(
            "version: 0.1\nlog: {{level: error, accesslog: {{disabled: true}}}}\n\
             storage: {{filesystem: {{rootdirectory: {}}}, delete: {{enabled: true}}}}\n\
             http: {{addr: '127.0.0.1:{port}', secret: tests{tls}}}\n{auth}",
            folder.path().join("data").display()
        );
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

    /// Returns host and port.
    #[must_use]
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns host and port, with an address that leads here but is not a loopback address, so that clients use TLS.
    #[must_use]
    pub fn tls_host(&self) -> String {
        format!("0.0.0.0:{}", self.port)
    }

    /// Returns the certificate of its authority.
    ///
    /// # Errors
    ///
    /// If it does not use TLS.
    pub fn authority(&self) -> Result<String> {
        fs::read_to_string(self.folder.path().join("ca.pem")).context("reading the authority's certificate")
    }

    /// Returns the file of a blob, so that a test can tamper with it.
    #[must_use]
    pub fn blob(&self, digest: &str) -> PathBuf {
        let hex = digest.trim_start_matches("sha256:");
        let short = hex.get(..2).unwrap_or_default();
        self.folder.path().join("data/docker/registry/v2/blobs/sha256").join(short).join(hex).join("data")
    }

    /// Returns the file that says which manifest a tag names, so that a test can make the registry lie.
    #[must_use]
    pub fn tag(&self, repository: &str, tag: &str) -> PathBuf {
        let tags = self.folder.path().join("data/docker/registry/v2/repositories").join(repository);
        tags.join("_manifests/tags").join(tag).join("current/link")
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        // It contains nothing of value.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
