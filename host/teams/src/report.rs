//! A machine's report on what is in force, signed with a key of the machine.

use portcullis_packs::Seconds;
use serde::{Deserialize, Serialize};
use ssh_key::private::{Ed25519Keypair, PrivateKey};
use ssh_key::{HashAlg, LineEnding};

use crate::stage::StagedMode;

/// The namespace of signatures of reports: `ssh-keygen -Y verify -n portcullis-report`.
pub const REPORT_PURPOSE: &str = "portcullis-report";

/// What is in force on a machine.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// A stable name of the machine: a hash of its id.
    pub machine: String,
    /// The name of the user.
    pub user: String,
    /// The team.
    pub team: String,
    /// Whether the machine's file requires the bundle.
    pub mandatory: bool,
    /// The version of this program.
    pub program: String,
    /// The tier of the sandbox.
    pub tier: String,
    /// The version of the newest root.
    pub root: u64,
    /// The version of the bundle in force, if there is one.
    pub bundle: Option<u64>,
    /// The digest of the bundle in force.
    pub digest: Option<String>,
    /// When the bundle in force was accepted.
    pub since: Seconds,
    /// When the bundle in force expires.
    pub expires_at: Option<Seconds>,
    /// When the registry or an archive last confirmed what is in force.
    pub checked_at: Seconds,
    /// The packs of the bundle and how they run here.
    pub packs: Vec<PackInForce>,
    /// When the report was made.
    pub made_at: Seconds,
}

/// A pack of the bundle in force.
#[derive(Debug, Clone, Serialize)]
pub struct PackInForce {
    /// The id.
    pub id: String,
    /// The version.
    pub version: String,
    /// The digest.
    pub digest: String,
    /// How it runs here.
    pub mode: StagedMode,
}

/// A report with its signature.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SignedReport {
    /// The report, as JSON.
    pub report: String,
    /// The machine's public key.
    pub key: String,
    /// An ssh signature over the exact text of `report`.
    pub signature: String,
}

/// The key with which a machine signs its reports.
#[derive(Debug)]
pub struct MachineKey(PrivateKey);

impl MachineKey {
    /// Makes a key from 32 random bytes.
    #[must_use]
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self(PrivateKey::from(Ed25519Keypair::from_seed(seed)))
    }

    /// Returns the public key, as a line of `authorized_keys`.
    ///
    /// # Errors
    /// When it cannot be encoded.
    pub fn public(&self) -> Result<String, ssh_key::Error> {
        self.0.public_key().to_openssh()
    }

    /// Signs a report.
    ///
    /// # Errors
    /// When it cannot be encoded.
    pub fn sign(&self, report: &Report) -> Result<SignedReport, ssh_key::Error> {
        let text = serde_json::to_string(report).map_err(|_| ssh_key::Error::FormatEncoding)?;
        let signature = self.0.sign(REPORT_PURPOSE, HashAlg::Sha512, text.as_bytes())?;
        Ok(SignedReport { report: text, key: self.public()?, signature: signature.to_pem(LineEnding::LF)? })
    }
}

#[cfg(test)]
mod tests {
    use portcullis_packs::{Key, SignatureState, Signatures};

    use super::*;

    #[test]
    fn a_report_is_signed_by_the_machine() {
        let report = Report {
            machine: "m".to_owned(),
            user: "ann".to_owned(),
            team: "acme".to_owned(),
            mandatory: true,
            program: "0.1.0".to_owned(),
            tier: "full".to_owned(),
            root: 1,
            bundle: Some(2),
            digest: None,
            since: 0,
            expires_at: None,
            checked_at: 0,
            packs: Vec::new(),
            made_at: 5,
        };
        let signed = MachineKey::from_seed(&[7; 32]).sign(&report).unwrap();
        let key = Key::parse(&signed.key).unwrap();
        let state = |text: &str, purpose: &str| {
            let signatures = Signatures::parse(&signed.signature, "").unwrap();
            signatures.check_for(purpose, text.as_bytes(), &[&key])[0].state.clone()
        };
        assert_eq!(state(&signed.report, REPORT_PURPOSE), SignatureState::Good);
        assert_eq!(state(&signed.report.replace("ann", "eve"), REPORT_PURPOSE), SignatureState::Broken);
        assert!(matches!(state(&signed.report, crate::TEAM_PURPOSE), SignatureState::OtherPurpose(_)));
    }
}
