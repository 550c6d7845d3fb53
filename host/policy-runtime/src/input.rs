//! First checks of components and configurations, before they are parsed.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

use crate::error::{ConfigurationFault, LoadError};
use crate::limits;

/// Reads a component file.
///
/// # Errors
/// Fails when the file cannot be read or is larger than [`limits::COMPONENT`].
pub fn read_component(path: &Path) -> Result<Vec<u8>, LoadError> {
    let failed = |source| LoadError::Read { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    // Without `O_NONBLOCK`, opening a FIFO at this path would block the host forever.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)
        .map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(failed(std::io::Error::new(std::io::ErrorKind::InvalidInput, "it is no regular file")));
    }
    file.take(limits::COMPONENT + 1).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// Checks the size and the first eight bytes.
pub(crate) fn check_bytes(component: &[u8]) -> Result<(), LoadError> {
    if component.len() as u64 > limits::COMPONENT {
        return Err(LoadError::Size { limit: limits::COMPONENT });
    }
    match component.first_chunk::<8>() {
        Some([0, b'a', b's', b'm', _, _, 1, 0]) => Ok(()),
        Some([0, b'a', b's', b'm', _, _, 0, 0]) => Err(LoadError::CoreModule),
        _ => Err(LoadError::NotWebAssembly),
    }
}

/// Checks that the configuration is a JSON object within the size limit.
pub(crate) fn check_configuration(configuration: &str) -> Result<(), LoadError> {
    let refused = |message: String| {
        let errors = vec![ConfigurationFault { pointer: String::new(), message }];
        Err(LoadError::Configuration { errors })
    };
    if configuration.len() > limits::CONFIGURATION {
        return refused(format!("it is larger than {} bytes", limits::CONFIGURATION));
    }
    match serde_json::from_str::<serde_json::Value>(configuration) {
        Ok(serde_json::Value::Object(_)) => Ok(()),
        Ok(_) => refused("it is not a JSON object".to_owned()),
        Err(error) => refused(format!("it is not JSON: {error}")),
    }
}
