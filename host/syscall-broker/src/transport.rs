//! Messages with file descriptors over a SOCK_SEQPACKET socket, which preserves message boundaries.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::fs::MemfdFlags;
use rustix::io::retry_on_intr;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// Longer messages travel in a memfd: a socket takes some 200 KiB at most, and a script may be longer.
const INLINE_BYTES: usize = 32 * 1024;
/// The arguments of a process are limited to a quarter of its stack (8 MiB by default), so a longer message is an
/// error.
const MESSAGE_BYTES: u64 = 16 * 1024 * 1024;
/// A view with the listeners of its network is the largest set sent at once; one more carries the message itself.
const DESCRIPTORS: usize = 10;
/// Values of a message's first byte: the payload follows, or is in a file.
const INLINE: u8 = 0;
const IN_A_FILE: u8 = 1;

/// A received message.
#[derive(Debug)]
pub struct Message {
    /// The content.
    pub bytes: Vec<u8>,
    /// The file descriptors that came with it.
    pub descriptors: Vec<OwnedFd>,
    /// The pid of the sender, if the socket has `SO_PASSCRED`.
    pub sender: Option<u32>,
}

/// Sends a message; the descriptors are duplicated, not moved.
pub fn send(socket: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    if bytes.len() <= INLINE_BYTES {
        return send_parts(socket.as_fd(), INLINE, bytes, descriptors);
    }
    let mut file = File::from(rustix::fs::memfd_create("message", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    let mut all = descriptors.to_vec();
    all.push(file.as_fd());
    send_parts(socket.as_fd(), IN_A_FILE, &[], &all)
}

/// Returns a short message in its wire form, for a sender that writes it without [`send`].
pub fn in_one_piece(bytes: &[u8]) -> Vec<u8> {
    [&[INLINE], bytes].concat()
}

fn send_parts(
    socket: BorrowedFd<'_>,
    form: u8,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let form = [form];
    let parts = [IoSlice::new(&form), IoSlice::new(bytes)];
    retry_on_intr(|| sendmsg(socket, &parts, &mut control, SendFlags::NOSIGNAL))?;
    Ok(())
}

/// Waits for a message; `None` when the peer has closed.
///
/// # Errors
/// The kernel's error; `InvalidData` if the message is truncated, has lost descriptors or is too long.
pub fn receive(socket: impl AsFd) -> io::Result<Option<Message>> {
    match take(socket)? {
        Some((_, true)) => Err(io::Error::from(io::ErrorKind::InvalidData)),
        whole => Ok(whole.map(|(message, _)| message)),
    }
}

/// The result of [`hear`], for receivers that must see every message until the peer closes.
#[derive(Debug)]
pub enum Received {
    /// A message. If this process has no free descriptor left, the kernel drops those of the message, and the list is
    /// empty.
    Message(Message),
    /// A message could not be read; later ones can.
    Lost,
    /// The peer has closed.
    Ended,
}

/// Waits for a message like [`receive`], and tolerates lost descriptors and messages.
pub fn hear(socket: impl AsFd) -> Received {
    /// The pause after running out of memory or descriptors, which may be available later.
    const PAUSE: Duration = Duration::from_millis(10);
    match take(&socket) {
        Ok(Some((message, false))) => Received::Message(message),
        Ok(Some((message, true))) => Received::Message(Message { descriptors: Vec::new(), ..message }),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Received::Lost,
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOMEM | libc::ENOBUFS | libc::EMFILE)) => {
            std::thread::sleep(PAUSE);
            Received::Lost
        }
        Ok(None) | Err(_) => Received::Ended,
    }
}

/// Waits for a message; the flag says whether it has lost descriptors.
fn take(socket: impl AsFd) -> io::Result<Option<(Message, bool)>> {
    let mut buffer = vec![0; INLINE_BYTES + 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS), ScmCredentials(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = retry_on_intr(|| {
        let mut parts = [IoSliceMut::new(&mut buffer)];
        recvmsg(&socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)
    })?;
    let mut descriptors = Vec::new();
    let mut sender = None;
    for message in control.drain() {
        match message {
            RecvAncillaryMessage::ScmRights(received) => descriptors.extend(received),
            RecvAncillaryMessage::ScmCredentials(credentials) => {
                sender = u32::try_from(credentials.pid.as_raw_nonzero().get()).ok();
            }
            _ => {}
        }
    }
    if received.flags.contains(ReturnFlags::TRUNC) {
        return Err(io::Error::from(io::ErrorKind::InvalidData));
    }
    buffer.truncate(received.bytes);
    let Some((form, bytes)) = buffer.split_first() else { return Ok(None) };
    let bytes = match *form {
        INLINE => bytes.to_vec(),
        IN_A_FILE => read_file(descriptors.pop())?,
        _ => return Err(io::Error::from(io::ErrorKind::InvalidData)),
    };
    let is_robbed = received.flags.contains(ReturnFlags::CTRUNC);
    Ok(Some((Message { bytes, descriptors, sender }, is_robbed)))
}

fn read_file(file: Option<OwnedFd>) -> io::Result<Vec<u8>> {
    let file = File::from(file.ok_or(io::ErrorKind::InvalidData)?);
    rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(0))?;
    let mut bytes = Vec::new();
    file.take(MESSAGE_BYTES + 1).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > MESSAGE_BYTES) {
        return Err(io::Error::from(io::ErrorKind::InvalidData));
    }
    Ok(bytes)
}

/// Creates a connected pair of sockets.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_all_sizes_arrive_whole() {
        let (ours, theirs) = pair().expect("a pair of sockets");
        for length in [0, 1, INLINE_BYTES, INLINE_BYTES + 1, 2 * 1024 * 1024] {
            let bytes = vec![7; length];
            send(&ours, &bytes, &[theirs.as_fd()]).expect("sent");
            let message = receive(&theirs).expect("received").expect("a message");
            assert_eq!((message.bytes.len(), message.descriptors.len()), (length, 1));
            assert_eq!(message.bytes, bytes);
        }
    }

    #[test]
    fn the_end_of_the_other_side_is_seen() {
        let (ours, theirs) = pair().expect("a pair of sockets");
        drop(theirs);
        assert!(receive(&ours).expect("no error").is_none());
        assert!(send(&ours, b"x", &[]).is_err());
    }

    #[test]
    fn too_long_a_message_is_refused() {
        let (ours, theirs) = pair().expect("a pair of sockets");
        let bytes = vec![0; usize::try_from(MESSAGE_BYTES).expect("fits") + 1];
        send(&ours, &bytes, &[]).expect("sent");
        assert!(receive(&theirs).is_err());
    }

    /// Descriptors beyond the receive buffer are dropped by the kernel like those that exceed the process's limit.
    #[test]
    fn a_message_that_has_lost_its_descriptors_is_heard_without_and_the_next_one_is_whole() {
        const MANY: usize = 5 * DESCRIPTORS;
        let (one, other) = pair().expect("a pair of sockets");
        let many = [one.as_fd(); MANY];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MANY))];
        for _ in 0..2 {
            let mut control = SendAncillaryBuffer::new(&mut space);
            assert!(control.push(SendAncillaryMessage::ScmRights(&many)));
            let parts = [IoSlice::new(b"\0robbed")];
            sendmsg(&one, &parts, &mut control, SendFlags::NOSIGNAL).expect("sent");
        }
        send(&one, b"whole", &[one.as_fd()]).expect("sent");
        assert_eq!(receive(&other).expect_err("strict").kind(), io::ErrorKind::InvalidData);
        let Received::Message(robbed) = hear(&other) else { panic!("not heard") };
        assert_eq!((robbed.bytes.as_slice(), robbed.descriptors.len()), (b"robbed".as_slice(), 0));
        let Received::Message(whole) = hear(&other) else { panic!("not heard") };
        assert_eq!((whole.bytes.as_slice(), whole.descriptors.len()), (b"whole".as_slice(), 1));
        drop((one, whole));
        assert!(matches!(hear(&other), Received::Ended));
    }
}
