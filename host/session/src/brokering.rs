//! The brokered hosts of the settings in force, and what commands get in place of credentials.

use std::io;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portcullis_approvals::question::credential_offer::CredentialOffer;
use portcullis_credential_broker::{
    Authority, AwsLimits, AwsPlaceholders, Broker, BrokeredHost, Credential, Form, PushRule, RequestLimits,
    Secret, Secrets, SeenSecrets, Ssh, SshCommand, SshHost, new_placeholder,
};
use portcullis_decision::request::Endpoint;
use portcullis_settings::Resolved;
use portcullis_settings_format::{
    BrokeredCredential, CredentialForm, HostPushes, PlaceholderPart, SignedObject, SigningCredential,
    SigningForm, SshCredential,
};

use crate::basis::Basis;
use crate::credential_reader::{CredentialReader, GitClientRole};

/// Variables by which programs find the certificates that they trust.
///
/// OpenSSL, Go, Rust and uv; curl; git; Python's requests; pip; Node; cargo; npm; the tools of AWS and Google; Deno;
/// gRPC; httplib2; Nix.
const CERTIFICATES: &[&str] = &[
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "NODE_EXTRA_CA_CERTS",
    "CARGO_HTTP_CAINFO",
    "npm_config_cafile",
    "AWS_CA_BUNDLE",
    "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
    "DENO_CERT",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    "HTTPLIB2_CA_CERTS",
    "NIX_SSL_CERT_FILE",
];

/// The user name that git sends with a token if the settings name none. The large forges accept any.
const GIT_USER: &str = "x-access-token";

/// The port of HTTPS: pushes with it in the settings are those of ssh, too.
const TLS_PORT: u16 = 443;

/// What git inside has for a key to sign with that cannot be read.
const UNREADABLE_KEY: &str = "key::unreadable";

/// The most offers of a session. Commands can seem to need any number of credentials.
const OFFERS_MAX: usize = 6;

/// Answers the clients at a socket that want signatures.
pub(crate) type Signer = Box<dyn Fn(UnixListener) -> io::Result<()> + Send + Sync>;

/// The brokered hosts of a session.
pub(crate) struct Brokering {
    reader: Arc<dyn CredentialReader>,
    state: Mutex<State>,
    /// Answers at the socket for signatures; the session, which does that, is made later.
    signer: OnceLock<Signer>,
}

#[derive(Default)]
struct State {
    authority: Option<(Arc<Authority>, PathBuf)>,
    /// The program that git uses as `ssh`, as commands see it.
    git_client: Option<PathBuf>,
    /// The socket at which signatures are made, as commands see it.
    signer: Option<PathBuf>,
    /// The programs with which git signs, as commands see them.
    signing_clients: Vec<(GitClientRole, PathBuf)>,
    /// All placeholders of the session. A credential keeps its own as long as its entry does not change.
    placeholders: Vec<(BrokeredCredential, String)>,
    /// The credentials that were read, under any settings.
    seen: SeenSecrets,
    /// The credentials that were offered.
    offered: Vec<CredentialOffer>,
    /// The broker of the settings that it was made for.
    current: Option<(Arc<Basis>, Arc<Broker>)>,
}

impl Brokering {
    pub(crate) fn new(reader: Arc<dyn CredentialReader>) -> Self {
        Self { reader, state: Mutex::default(), signer: OnceLock::new() }
    }

    /// Takes what answers at the socket for signatures.
    pub(crate) fn sign_by(&self, signer: Signer) {
        self.signer.get_or_init(|| signer);
    }

    /// Returns the broker of the settings, or `None` if they have no brokered host.
    pub(crate) fn broker(&self, basis: &Arc<Basis>) -> io::Result<Option<Arc<Broker>>> {
        if !has_any(&basis.resolved) {
            return Ok(None);
        }
        self.state().broker(basis, &self.reader).map(Some)
    }

    /// Returns the variables of commands: placeholders, and where the certificates are.
    pub(crate) fn variables(&self, basis: &Arc<Basis>) -> io::Result<Vec<(String, String)>> {
        if !has_any(&basis.resolved) {
            return Ok(Vec::new());
        }
        let mut state = self.state();
        state.broker(basis, &self.reader)?;
        let mut variables = state.ssh_variables(&basis.resolved, &self.reader)?;
        if has_tls(&basis.resolved) {
            let certificates = state.authority.as_ref().map(|(_, file)| file.to_string_lossy().into_owned());
            let certificates = certificates.unwrap_or_default();
            variables.extend(CERTIFICATES.iter().map(|name| ((*name).to_owned(), certificates.clone())));
        }
        let mut of_git = Vec::new();
        if let Some(signing) = &basis.resolved.signing {
            let (socket, settings) = state.signing(signing, &self.reader, self.signer.get())?;
            variables.push(("PORTCULLIS_SIGNER".to_owned(), socket));
            of_git.extend(settings);
        }
        for credential in &basis.resolved.brokered {
            let placeholder = state.placeholder(credential)?;
            variables.extend(credential.variables.iter().map(|variable| {
                let text = part_of(&placeholder, variable.part);
                (variable.name.clone(), format!("{}{text}{}", variable.before, variable.after))
            }));
            of_git.extend(git_setting(credential, &placeholder));
        }
        variables.extend(git_variables(of_git));
        Ok(variables)
    }

    /// Returns true for an offer that was not made yet in this session, as long as there were not too many.
    pub(crate) fn is_new_offer(&self, offer: &CredentialOffer) -> bool {
        let offered = &mut self.state().offered;
        let is_new = !offered.contains(offer) && offered.len() < OFFERS_MAX;
        if is_new {
            offered.push(offer.clone());
        }
        is_new
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn has_any(resolved: &Resolved) -> bool {
    has_tls(resolved) || !resolved.ssh.is_empty() || resolved.signing.is_some()
}

/// Returns true if there is a host whose TLS the gate ends.
fn has_tls(resolved: &Resolved) -> bool {
    !resolved.brokered.is_empty() || !resolved.requests.is_empty() || !resolved.pushes.is_empty()
}

impl State {
    fn broker(&mut self, basis: &Arc<Basis>, reader: &Arc<dyn CredentialReader>) -> io::Result<Arc<Broker>> {
        if let Some((known, broker)) = &self.current
            && Arc::ptr_eq(known, basis)
        {
            return Ok(Arc::clone(broker));
        }
        let authority = self.authority(reader)?;
        let hosts = self.hosts(&basis.resolved)?;
        let is_current = |placeholder: &String| {
            hosts.iter().flat_map(|host| &host.credentials).any(|one| one.placeholder == *placeholder)
        };
        let earlier = self.placeholders.iter().filter(|(_, placeholder)| !is_current(placeholder));
        let earlier = earlier.flat_map(|(credential, placeholder)| match credential.form {
            CredentialForm::Aws { .. } => Vec::from(AwsPlaceholders::of(placeholder).into_texts()),
            CredentialForm::Bearer | CredentialForm::Basic { .. } | CredentialForm::Header(_) => {
                vec![placeholder.clone()]
            }
        });
        let earlier = earlier.collect();
        let credentials = basis.resolved.brokered.clone();
        let secrets = Box::new(Sources { credentials, reader: Arc::clone(reader) });
        let broker = Broker::new(authority, hosts, earlier, (secrets, self.seen.clone()));
        let broker = broker.with_ssh(ssh_hosts(&basis.resolved), Arc::new(OutsideSsh(Arc::clone(reader))));
        let broker = Arc::new(broker);
        self.current = Some((Arc::clone(basis), Arc::clone(&broker)));
        Ok(broker)
    }

    /// Returns the variables by which git finds its way to the hosts of ssh.
    fn ssh_variables(
        &mut self,
        resolved: &Resolved,
        reader: &Arc<dyn CredentialReader>,
    ) -> io::Result<Vec<(String, String)>> {
        if resolved.ssh.is_empty() {
            return Ok(Vec::new());
        }
        let client = match &self.git_client {
            Some(known) => known.clone(),
            None => self.git_client.insert(reader.publish_git_client(GitClientRole::Ssh)?).clone(),
        };
        let hosts: Vec<String> =
            resolved.ssh.iter().map(|one| format!("{}:{}", one.host, one.port)).collect();
        let variables = [
            ("GIT_SSH_COMMAND", client.to_string_lossy().into_owned()),
            ("GIT_SSH_VARIANT", "ssh".to_owned()),
            ("PORTCULLIS_SSH_HOSTS", hosts.join(" ")),
        ];
        Ok(variables.map(|(name, value)| (name.to_owned(), value)).into())
    }

    /// Returns the socket at which signatures are made, and the settings by which git uses it.
    fn signing(
        &mut self,
        signing: &SigningCredential,
        reader: &Arc<dyn CredentialReader>,
        signer: Option<&Signer>,
    ) -> io::Result<(String, Vec<(String, String)>)> {
        let socket = match &self.signer {
            Some(known) => known.clone(),
            None => {
                let (listener, socket) = reader.publish_signer()?;
                let missing = || io::Error::other("the session is not open yet");
                signer.ok_or_else(missing)?(listener)?;
                self.signer.insert(socket).clone()
            }
        };
        let (role, format, program) = match &signing.form {
            SigningForm::Ssh { .. } => (GitClientRole::SshKeygen, "ssh", "gpg.ssh.program"),
            SigningForm::Gpg { .. } => (GitClientRole::Gpg, "openpgp", "gpg.program"),
        };
        let known = self.signing_clients.iter().find(|(known, _)| *known == role);
        let client = match known {
            Some((_, known)) => known.clone(),
            None => {
                let made = reader.publish_git_client(role)?;
                self.signing_clients.push((role, made.clone()));
                made
            }
        };
        // If it cannot be read, the host says why as soon as git signs.
        let key = reader.signing_key(&signing.form).unwrap_or_else(|_why| UNREADABLE_KEY.to_owned());
        let mut settings = vec![
            ("gpg.format", format.to_owned()),
            (program, client.to_string_lossy().into_owned()),
            ("user.signingKey", key),
        ];
        for object in signing.objects.iter().filter(|_| signing.always) {
            let name = match object {
                SignedObject::Commit => "commit.gpgSign",
                SignedObject::Tag => "tag.gpgSign",
            };
            settings.push((name, "true".to_owned()));
        }
        let settings = settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Ok((socket.to_string_lossy().into_owned(), settings))
    }

    fn authority(&mut self, reader: &Arc<dyn CredentialReader>) -> io::Result<Arc<Authority>> {
        if let Some((authority, _)) = &self.authority {
            return Ok(Arc::clone(authority));
        }
        let authority = Arc::new(Authority::new()?);
        let file = reader.publish(&authority.bundle())?;
        self.authority = Some((Arc::clone(&authority), file));
        Ok(authority)
    }

    fn placeholder(&mut self, credential: &BrokeredCredential) -> io::Result<String> {
        let is_its_own =
            |known: &BrokeredCredential| known == credential || known.shares_placeholders(credential);
        if let Some((_, known)) = self.placeholders.iter().find(|(known, _)| is_its_own(known)) {
            return Ok(known.clone());
        }
        let made = new_placeholder()?;
        self.placeholders.push((credential.clone(), made.clone()));
        Ok(made)
    }

    fn hosts(&mut self, resolved: &Resolved) -> io::Result<Vec<BrokeredHost>> {
        let mut hosts: Vec<BrokeredHost> = Vec::new();
        for entry in &resolved.requests {
            let limits = RequestLimits {
                allow: entry.allow.clone(),
                headers: entry.headers.clone(),
                body_max: entry.body_max_kib.map(|kib| u64::from(kib) << 10),
                own_account_only: entry.own_account_only,
            };
            at(&mut hosts, &entry.host, entry.port).requests = Some(limits);
        }
        for entry in &resolved.pushes {
            at(&mut hosts, &entry.host, entry.port).pushes.push(push_rule(entry));
        }
        for entry in &resolved.brokered {
            let form = match &entry.form {
                CredentialForm::Bearer => Form::Bearer,
                CredentialForm::Basic { user } => Form::Basic { user: user.clone() },
                CredentialForm::Header(name) => Form::Header(name.clone()),
                CredentialForm::Aws { services, regions } => {
                    Form::Aws(AwsLimits { services: services.clone(), regions: regions.clone() })
                }
            };
            let credential = Credential {
                name: entry.name.clone(),
                placeholder: self.placeholder(entry)?,
                form,
                purpose: entry.purpose.clone(),
            };
            at(&mut hosts, &entry.host, entry.port).credentials.push(credential);
        }
        Ok(hosts)
    }
}

/// Returns the placeholder that a variable holds.
fn part_of(placeholder: &str, part: PlaceholderPart) -> String {
    match part {
        PlaceholderPart::First => placeholder.to_owned(),
        PlaceholderPart::AwsSecret => AwsPlaceholders::of(placeholder).secret,
        PlaceholderPart::AwsToken => AwsPlaceholders::of(placeholder).token,
    }
}

fn push_rule(entry: &HostPushes) -> PushRule {
    PushRule {
        requests: entry.requests.clone(),
        refs: entry.refs.clone(),
        force: entry.force,
        delete: entry.delete,
        secrets: entry.secrets,
        bytes_max: u64::from(entry.max_kib) << 10,
    }
}

/// Returns the hosts of ssh, with the pushes that may be sent there.
fn ssh_hosts(resolved: &Resolved) -> Vec<SshHost> {
    let host = |entry: &SshCredential| {
        let is_meant = |push: &&HostPushes| {
            push.host == entry.host && (push.port == entry.port || push.port == TLS_PORT)
        };
        SshHost {
            name: entry.name.clone(),
            host: entry.host.clone(),
            port: entry.port,
            user: entry.user.clone(),
            fetch: entry.fetch.clone(),
            pushes: resolved.pushes.iter().filter(is_meant).map(push_rule).collect(),
        }
    };
    resolved.ssh.iter().map(host).collect()
}

/// The user's own `ssh`.
struct OutsideSsh(Arc<dyn CredentialReader>);

impl Ssh for OutsideSsh {
    fn start(&self, command: &SshCommand) -> io::Result<std::process::Child> {
        self.0.start_ssh(command)
    }
}

/// Returns the entry of a host, made if there is none.
fn at<'a>(hosts: &'a mut Vec<BrokeredHost>, host: &Endpoint, port: u16) -> &'a mut BrokeredHost {
    let found = hosts.iter().position(|known| known.host == *host && known.port == port);
    let index = found.unwrap_or(hosts.len());
    if found.is_none() {
        hosts.push(BrokeredHost {
            host: host.clone(),
            port,
            credentials: Vec::new(),
            requests: None,
            pushes: Vec::new(),
        });
    }
    #[expect(clippy::indexing_slicing, reason = "the index is that of the entry found or just added")]
    &mut hosts[index]
}

/// Returns the setting by which git sends the placeholder to its host, and to no other.
fn git_setting(credential: &BrokeredCredential, placeholder: &str) -> Option<(String, String)> {
    let CredentialForm::Basic { user } = credential.form.clone() else { return None };
    if !credential.is_for_git {
        return None;
    }
    let place = match (&credential.host, credential.port) {
        (Endpoint::Domain(name), 443) => name.clone(),
        (host, port) => host.with_port(port),
    };
    let both = format!("{}:{placeholder}", user.as_deref().unwrap_or(GIT_USER));
    let header = format!("Authorization: Basic {}", STANDARD.encode(both));
    Some((format!("http.https://{place}/.extraHeader"), header))
}

/// Returns the variables that give settings to git.
fn git_variables(settings: Vec<(String, String)>) -> Vec<(String, String)> {
    if settings.is_empty() {
        return Vec::new();
    }
    let count = ("GIT_CONFIG_COUNT".to_owned(), settings.len().to_string());
    let each = settings.into_iter().enumerate().flat_map(|(index, (key, value))| {
        [(format!("GIT_CONFIG_KEY_{index}"), key), (format!("GIT_CONFIG_VALUE_{index}"), value)]
    });
    std::iter::once(count).chain(each).collect()
}

/// The sources of the credentials in the settings.
struct Sources {
    credentials: Vec<BrokeredCredential>,
    reader: Arc<dyn CredentialReader>,
}

impl Secrets for Sources {
    fn read(&self, name: &str) -> Result<Secret, String> {
        match self.credentials.iter().find(|credential| credential.name == name) {
            Some(credential) => self.reader.read(&credential.source, &credential.form),
            None => Err("the settings no longer have it".to_owned()),
        }
    }
}
