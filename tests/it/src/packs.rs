//! A pack from a file, for tests that need any.

use std::fs;

use anyhow::Context as _;

use crate::{Scene, User, guest};

/// The id of the pack: that of the guest, which denies one file.
const ID: &str = "test:deny-one";

impl Scene {
    /// Builds a pack and adds it to the user's lock, without a signature; returns its id.
    ///
    /// # Errors
    ///
    /// When the guest or the binary is missing, or the pack is refused.
    pub fn install_pack(&self) -> anyhow::Result<&'static str> {
        let folder = self.at("pack");
        let manifest = format!(
            "[policy]\nid = \"{ID}\"\nversion = \"0.1.0\"\ntitle = \"One file\"\n[contract]\nversion = \"0.1\"\n"
        );
        self.write(&folder.join("policy.toml"), &manifest)?;
        let component = folder.join("component.wasm");
        fs::copy(guest("deny-one", User::Caller)?, &component).context("copying a guest")?;
        self.user().own(&component)?;
        let (folder, pack) = (folder.display().to_string(), self.at("pack/pack.wasm").display().to_string());
        self.portcullis(&["policy", "build", &folder, "-o", &pack])?.ended_with(0)?;
        self.portcullis(&["policy", "add", &pack, "--unsigned"])?.ended_with(0)?;
        Ok(ID)
    }
}
