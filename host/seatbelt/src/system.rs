//! What every program needs of the system, whatever the rules say.

use std::path::PathBuf;

use crate::error::CompileError;
use crate::pattern::text;
use crate::statement::write_with;

/// The beginning of every profile. Whatever is not named stays denied: mach services, devices, kernel extensions,
/// other processes, set-id programs.
pub(crate) const BEGINNING: &str = r#"(version 1)
(deny default)

; processes of the same sandbox
(allow process-fork)
(allow process-info* (target same-sandbox))
(allow signal (target same-sandbox))
(allow ipc-posix-sem)
(allow sysctl-read)

; services without which programs do not start
(allow mach-lookup
  (global-name "com.apple.logd")
  (global-name "com.apple.system.DirectoryService.libinfo_v1")
  (global-name "com.apple.system.logger")
  (global-name "com.apple.system.notification_center")
  (global-name "com.apple.system.opendirectoryd.libinfo"))
"#;

/// Devices that every program may use; the last statement about them.
pub(crate) const DEVICES: &str = r#"
; devices that every program expects, and no others
(deny file-read* file-write* file-ioctl process-exec*
  (subpath "/dev"))
(allow file-read* file-write-data file-ioctl
  (literal "/dev/dtracehelper")
  (literal "/dev/null")
  (literal "/dev/tty")
  (literal "/dev/zero"))
(allow file-read*
  (literal "/dev/random")
  (literal "/dev/urandom"))
(allow file-read-metadata
  (literal "/dev"))
"#;

/// Writes which connections leave: to the gate's ports, and to sockets that the settings name.
pub(crate) fn network(text_of: &mut String, ports: &[u16], sockets: &[PathBuf]) -> Result<(), CompileError> {
    if !ports.is_empty() {
        text_of.push_str("\n; the gate, which decides about connections\n(allow network-outbound");
        for port in ports {
            text_of.push_str(&format!("\n  (remote tcp \"localhost:{port}\")"));
        }
        text_of.push_str(")\n");
    }
    if !sockets.is_empty() {
        text_of.push_str("\n; sockets that the settings name\n(allow network-outbound");
        for socket in sockets {
            let path = text(socket).map_err(|_| CompileError::Path { path: socket.clone() })?;
            write_with(text_of, "\n  (remote unix-socket (path-literal ", path, "))");
        }
        text_of.push_str(")\n");
    }
    Ok(())
}
