//! Asks the kernel for all unix sockets with a name in the file system, and for the file that each is bound to, see
//! sock_diag(7). The name alone can be that of another file by now.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use rustix::io::Errno;
use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with};

/// `SOCK_DIAG_BY_FAMILY`, `NLMSG_ERROR` and `NLMSG_DONE`.
const BY_FAMILY: u16 = 20;
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// `NLM_F_REQUEST` and `NLM_F_DUMP`.
const DUMP: u16 = 0x301;
/// Sizes of `struct nlmsghdr`, `struct unix_diag_req`, `struct unix_diag_msg` and `struct nlattr`.
const HEADER: usize = 16;
const REQUEST: usize = 24;
const MESSAGE: usize = 16;
const ATTRIBUTE: usize = 4;
/// `UDIAG_SHOW_NAME` and `UDIAG_SHOW_VFS`, and the attributes that they give.
const SHOW: u32 = 1 | 2;
const NAME: u16 = 0;
const FILE: u16 = 1;
/// `AF_UNIX`.
const UNIX: u8 = 1;

/// Returns the sockets in the network of the calling thread: the path that each was bound to, and the lower half of the
/// inode number of its file, if the kernel tells it.
///
/// # Errors
/// The kernel's; some kernels do not answer such queries.
pub(crate) fn bound() -> rustix::io::Result<Vec<(PathBuf, Option<u32>)>> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(SOCK_DIAG))?;
    sendto(&socket, &question(), SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut found = Vec::new();
    let mut piece = vec![0; 64 << 10];
    loop {
        // Each next piece is available as soon as the one before has been read.
        let (_, length) = recv(&socket, piece.as_mut_slice(), RecvFlags::DONTWAIT)?;
        if read(piece.get(..length).unwrap_or_default(), &mut found)? == End::Reached {
            return Ok(found);
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum End {
    Reached,
    NotYet,
}

fn question() -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + REQUEST);
    bytes.extend(u32::try_from(HEADER + REQUEST).unwrap_or(u32::MAX).to_ne_bytes());
    bytes.extend(BY_FAMILY.to_ne_bytes());
    bytes.extend(DUMP.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend([UNIX, 0, 0, 0]);
    // In each state, whatever its number, and any cookie.
    bytes.extend(u32::MAX.to_ne_bytes());
    bytes.extend([0; 4]);
    bytes.extend(SHOW.to_ne_bytes());
    bytes.extend([0xff; 8]);
    bytes
}

/// Reads the messages of one piece of the answer.
fn read(mut piece: &[u8], found: &mut Vec<(PathBuf, Option<u32>)>) -> rustix::io::Result<End> {
    while !piece.is_empty() {
        let length = word(piece, 0).and_then(|length| usize::try_from(length).ok());
        let length = length.filter(|length| *length >= HEADER).ok_or(Errno::BADMSG)?;
        let message = piece.get(HEADER..length).ok_or(Errno::BADMSG)?;
        match half(piece, 4) {
            Some(DONE) => return Ok(End::Reached),
            Some(ERROR) => {
                let number = word(message, 0).unwrap_or_default().cast_signed();
                return Err(Errno::from_raw_os_error(number.saturating_neg()));
            }
            Some(BY_FAMILY) => found.extend(bound_socket(message.get(MESSAGE..).unwrap_or_default())),
            _ => {}
        }
        piece = piece.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(End::NotYet)
}

/// Reads the attributes of one socket.
fn bound_socket(mut attributes: &[u8]) -> Option<(PathBuf, Option<u32>)> {
    let (mut name, mut inode) = (None, None);
    while let Some(length) = half(attributes, 0).map(usize::from).filter(|length| *length >= ATTRIBUTE) {
        let value = attributes.get(ATTRIBUTE..length)?;
        match half(attributes, 2) {
            Some(NAME) => name = value.split(|byte| *byte == 0).next(),
            Some(FILE) => inode = word(value, 0),
            _ => {}
        }
        attributes = attributes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    // Abstract names begin with a zero byte.
    let name = name.filter(|name| name.first() == Some(&b'/'))?;
    Some((OsString::from_vec(name.to_vec()).into(), inode))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_a_socket_is_told_whatever_its_name_is_by_now() {
        use std::os::unix::fs::MetadataExt as _;
        let place = tempfile::tempdir().expect("a directory");
        let names: Vec<PathBuf> = (0..300).map(|number| place.path().join(format!("s{number}"))).collect();
        let sockets: Vec<_> = names
            .iter()
            .map(|name| std::os::unix::net::UnixDatagram::bind(name).expect("a socket"))
            .collect();
        let inode = |name: &PathBuf| {
            let number = name.symlink_metadata().expect("there").ino();
            u32::try_from(number & u64::from(u32::MAX)).expect("half of it")
        };
        let wanted: Vec<_> = names.iter().map(|name| (name.clone(), Some(inode(name)))).collect();
        std::fs::rename(&names[7], place.path().join("moved")).expect("renamed");
        let found = bound().expect("an answer");
        for one in wanted {
            assert!(found.contains(&one), "{one:?}");
        }
        drop(sockets);
    }

    #[test]
    fn what_is_no_answer_is_an_error() {
        let mut found = Vec::new();
        for piece in [&[1, 0, 0][..], &[0; 16], &[40, 0, 0, 0, 20, 0, 0, 0]] {
            assert_eq!(read(piece, &mut found), Err(Errno::BADMSG), "{piece:?}");
        }
        let mut refused = vec![20, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        refused.extend((-2_i32).to_ne_bytes());
        assert_eq!(read(&refused, &mut found), Err(Errno::NOENT));
        assert!(found.is_empty());
    }
}
