//! Finds the end of a push over ssh, where the client waits for the answer without closing the connection.

use flate2::{Decompress, FlushDecompress, Status};

use super::commands;

/// The bytes that the objects of a push may have together when they are unpacked; more are refused later.
const UNPACKED_MAX: u64 = 1 << 30;
/// The bytes of a pack before its objects, and those after them.
const FRONT: usize = 12;
const CHECKSUM: usize = 20;
/// The length of an object's name.
const ID: usize = 20;
const OFFSET_DELTA: u8 = 6;
const REFERENCE_DELTA: u8 = 7;

/// How far a push is known that comes in pieces.
#[derive(Debug, Default)]
pub struct PushEnd {
    at: usize,
    unpacked: u64,
    stage: Stage,
}

#[derive(Debug, Default)]
enum Stage {
    #[default]
    Commands,
    Front,
    /// At the beginning of an object, with this many to come.
    Object(u32),
    /// In the compressed part of an object, with this many to come after it.
    Packed(u32, Box<Decompress>),
}

/// What the bytes so far are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// A part of a push.
    Part,
    /// A whole push, or something that is none and never will be.
    All,
}

impl PushEnd {
    /// Reads on in the body, which has grown since.
    pub fn look(&mut self, body: &[u8]) -> Known {
        loop {
            let rest = body.get(self.at..).unwrap_or_default();
            let next = match &mut self.stage {
                Stage::Commands => match self.commands(body, rest) {
                    Ok(next) => next,
                    Err(known) => return known,
                },
                Stage::Front => {
                    let Some(front) = rest.first_chunk::<FRONT>() else { return Known::Part };
                    let [b'P', b'A', b'C', b'K', _, _, _, _, count @ ..] = front else { return Known::All };
                    self.at += FRONT;
                    Stage::Object(u32::from_be_bytes(*count))
                }
                Stage::Object(0) => {
                    return if rest.len() < CHECKSUM { Known::Part } else { Known::All };
                }
                Stage::Object(left) => {
                    let left = left.saturating_sub(1);
                    let Some(length) = length_of_front(rest) else { return Known::Part };
                    self.at += length;
                    Stage::Packed(left, Box::new(Decompress::new(true)))
                }
                Stage::Packed(left, inflate) => match unpacked(rest, inflate) {
                    Ok(step) => {
                        self.at += step.taken;
                        self.unpacked = self.unpacked.saturating_add(step.given);
                        match step.status {
                            _ if self.unpacked > UNPACKED_MAX => return Known::All,
                            Status::StreamEnd => Stage::Object(*left),
                            Status::Ok | Status::BufError if step.taken == 0 && step.given == 0 => {
                                return Known::Part;
                            }
                            Status::Ok | Status::BufError => continue,
                        }
                    }
                    Err(Broken) => return Known::All,
                },
            };
            self.stage = next;
        }
    }

    /// Reads the packets up to the flush packet.
    fn commands(&mut self, body: &[u8], rest: &[u8]) -> Result<Stage, Known> {
        let Some(digits) = rest.first_chunk::<4>() else { return Err(Known::Part) };
        let length = std::str::from_utf8(digits).ok().and_then(|text| usize::from_str_radix(text, 16).ok());
        match length {
            Some(0) => {
                self.at += digits.len();
                let commands = body.get(..self.at).map(commands::parse);
                // Without a new value, no objects follow.
                let has_objects =
                    matches!(&commands, Some(Ok(known)) if known.updates.iter().any(|one| one.new.is_some()));
                if has_objects { Ok(Stage::Front) } else { Err(Known::All) }
            }
            Some(length) if length > 4 && rest.len() < length => Err(Known::Part),
            Some(length) if length > 4 => {
                self.at += length;
                Ok(Stage::Commands)
            }
            Some(_) | None => Err(Known::All),
        }
    }
}

struct Broken;

struct Step {
    taken: usize,
    given: u64,
    status: Status,
}

/// Unpacks a piece of an object.
fn unpacked(rest: &[u8], inflate: &mut Decompress) -> Result<Step, Broken> {
    let mut piece = [0; 16 * 1024];
    let (read, written) = (inflate.total_in(), inflate.total_out());
    let status = inflate.decompress(rest, &mut piece, FlushDecompress::None).map_err(|_broken| Broken)?;
    let taken = usize::try_from(inflate.total_in() - read).map_err(|_| Broken)?;
    Ok(Step { taken, given: inflate.total_out() - written, status })
}

/// Returns how long the front of an object is: kind, size and the object that it is a difference to.
fn length_of_front(rest: &[u8]) -> Option<usize> {
    let number = |from: &[u8]| from.iter().position(|byte| byte & 0x80 == 0).map(|last| last + 1);
    let kind = rest.first()? >> 4 & 7;
    let front = number(rest)?;
    let base = match kind {
        OFFSET_DELTA => number(rest.get(front..)?)?,
        REFERENCE_DELTA => ID,
        _ => 0,
    };
    (rest.len() >= front + base).then_some(front + base)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;

    use super::*;

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn command(new: char) -> Vec<u8> {
        let line = format!("{} {} refs/heads/a", "1".repeat(40), new.to_string().repeat(40));
        format!("{:04x}{line}0000", line.len() + 4).into_bytes()
    }

    fn push() -> Vec<u8> {
        let mut body = command('2');
        body.extend(b"PACK\0\0\0\x02\0\0\0\x03");
        body.extend([0xb5, 0x02]);
        body.extend(packed(&[b'x'; 37]));
        body.push(0x64);
        body.extend([0x81, 0x01]);
        body.extend(packed(b"abcd"));
        body.push(0x74);
        body.extend([9; ID]);
        body.extend(packed(b"abcd"));
        body.extend([7; CHECKSUM]);
        body
    }

    #[test]
    fn the_end_is_found_however_a_push_is_cut() {
        let body = push();
        for size in [1, 2, 3, 7, 50, body.len()] {
            let (mut end, mut length) = (PushEnd::default(), 0);
            while length < body.len() {
                assert_eq!(end.look(&body[..length]), Known::Part, "{size} {length}");
                length = (length + size).min(body.len());
            }
            assert_eq!(end.look(&body), Known::All, "{size}");
        }
    }

    #[test]
    fn a_deletion_has_no_objects_and_other_bytes_are_the_judges() {
        for body in [command('0'), b"0000".to_vec(), b"0004".to_vec(), b"quux".to_vec(), b"0001".to_vec()] {
            assert_eq!(PushEnd::default().look(&body), Known::All);
        }
        let mut broken = command('2');
        assert_eq!(PushEnd::default().look(&broken), Known::Part);
        broken.extend(b"nothing at all");
        assert_eq!(PushEnd::default().look(&broken), Known::All);
    }
}
