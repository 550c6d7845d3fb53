//! The commands at the beginning of a push (gitprotocol-pack(5)).

use portcullis_decision::pattern::RefName;

/// The id of an object, with SHA-1.
pub(super) type Id = [u8; 20];

/// The most references that a push may change.
const UPDATES_MAX: usize = 256;

/// What a push wants.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Commands<'a> {
    pub(super) updates: Vec<Update>,
    /// The objects.
    pub(super) pack: &'a [u8],
}

/// A change of a reference.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Update {
    /// The present value; `None` for a reference that is to be made.
    pub(super) old: Option<Id>,
    /// The new value; `None` for a reference that is to be deleted.
    pub(super) new: Option<Id>,
    pub(super) name: RefName,
}

/// Parses the commands; the error says what is wrong.
pub(super) fn parse(body: &[u8]) -> Result<Commands<'_>, String> {
    let mut rest = body;
    let mut updates: Vec<Update> = Vec::new();
    while let Some(line) = next_line(&mut rest)? {
        let line = match line.iter().position(|&byte| byte == 0) {
            Some(end) if updates.is_empty() => {
                let (command, capabilities) = line.split_at(end);
                usable(&String::from_utf8_lossy(capabilities))?;
                command
            }
            Some(_) => return Err("a command has a zero byte".to_owned()),
            None => line.strip_suffix(b"\n").unwrap_or(line),
        };
        if updates.len() >= UPDATES_MAX {
            return Err(format!("it changes more than {UPDATES_MAX} references"));
        }
        let update = update(line)?;
        if updates.iter().any(|known| known.name == update.name) {
            return Err(format!("it changes `{}` twice", update.name));
        }
        updates.push(update);
    }
    Ok(Commands { updates, pack: rest })
}

/// Returns the next line, or `None` at a flush packet, and moves behind it.
fn next_line<'a>(rest: &mut &'a [u8]) -> Result<Option<&'a [u8]>, String> {
    let cut = || "it ends in the middle of its commands".to_owned();
    let (digits, after) = rest.split_at_checked(4).ok_or_else(cut)?;
    let text =
        std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let length = text.and_then(|text| usize::from_str_radix(text, 16).ok());
    match length {
        Some(0) => {
            *rest = after;
            Ok(None)
        }
        Some(length) if length > 4 => {
            let (line, after) = after.split_at_checked(length - 4).ok_or_else(cut)?;
            *rest = after;
            Ok(Some(line))
        }
        Some(_) | None => Err("its commands cannot be read".to_owned()),
    }
}

/// Refuses capabilities with which a push is more than changes of references.
fn usable(capabilities: &str) -> Result<(), String> {
    for capability in capabilities.split(|one: char| one == '\0' || one.is_ascii_whitespace()) {
        if capability == "push-options" || capability.starts_with("push-options=") {
            return Err("it has options (`git push -o`), which can make a server do anything".to_owned());
        }
        if capability.strip_prefix("object-format=").is_some_and(|format| format != "sha1") {
            return Err("its objects are not named by SHA-1".to_owned());
        }
    }
    Ok(())
}

fn update(line: &[u8]) -> Result<Update, String> {
    if line.starts_with(b"shallow ") {
        return Err("it comes from a shallow clone; `git fetch --unshallow` completes it".to_owned());
    }
    if line.starts_with(b"push-cert") {
        return Err("it is signed (`git push --signed`), and the gate reads plain ones only".to_owned());
    }
    let unreadable =
        || "it has a command that is no change of a reference, or a name that git refuses".to_owned();
    let text = std::str::from_utf8(line).map_err(|_| unreadable())?;
    let mut parts = text.splitn(3, ' ');
    let (Some(old), Some(new), Some(name)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(unreadable());
    };
    let (old, new) = (id(old.as_bytes()).ok_or_else(unreadable)?, id(new.as_bytes()).ok_or_else(unreadable)?);
    let some = |id: Id| (id != Id::default()).then_some(id);
    let update =
        Update { old: some(old), new: some(new), name: RefName::parse(name).ok_or_else(unreadable)? };
    if update.old.is_none() && update.new.is_none() { Err(unreadable()) } else { Ok(update) }
}

/// Parses an id as git writes it.
pub(super) fn id(text: &[u8]) -> Option<Id> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut id = Id::default();
    if text.len() != 2 * id.len() {
        return None;
    }
    for (byte, pair) in id.iter_mut().zip(text.chunks(2)) {
        let [high, low] = pair else { return None };
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(text: &str) -> String {
        format!("{:04x}{text}", text.len() + 4)
    }

    fn command(old: char, new: char, name: &str) -> String {
        format!("{} {} {name}", old.to_string().repeat(40), new.to_string().repeat(40))
    }

    fn error(body: &str) -> String {
        parse(body.as_bytes()).unwrap_err()
    }

    #[test]
    fn commands_are_read() {
        let first = packet(&(command('0', 'a', "refs/heads/a") + "\0 report-status agent=git/2"));
        let second = packet(&(command('b', '0', "refs/heads/b") + "\n"));
        let body = format!("{first}{second}0000PACK");
        let commands = parse(body.as_bytes()).unwrap();
        assert_eq!(commands.pack, b"PACK");
        let changes: Vec<(bool, bool, String)> = commands
            .updates
            .iter()
            .map(|update| (update.old.is_some(), update.new.is_some(), update.name.to_string()))
            .collect();
        assert_eq!(
            changes,
            [(false, true, "refs/heads/a".to_owned()), (true, false, "refs/heads/b".to_owned())]
        );
        assert_eq!(parse(b"0000").unwrap().updates, []);
    }

    #[test]
    fn what_could_be_read_differently_is_refused() {
        let one = command('a', 'b', "refs/heads/a");
        for body in [
            String::new(),
            "000".to_owned(),
            "0001".to_owned(),
            "0004".to_owned(),
            "+00500000".to_owned(),
            "00ff".to_owned(),
            packet(&one),
            packet(&one) + &packet(&one) + "0000",
            packet(&one) + &packet(&format!("{}\0x", command('a', 'b', "refs/heads/b"))) + "0000",
            packet(&command('0', '0', "refs/heads/a")) + "0000",
            packet(&command('A', 'b', "refs/heads/a")) + "0000",
            packet(&command('a', 'b', "HEAD")) + "0000",
            packet(&command('a', 'b', "refs/heads/../a")) + "0000",
            packet(&format!("{one}\0push-options")) + "0000",
            packet(&format!("{one}\0a\tpush-options")) + "0000",
            packet(&format!("{one}\0a\npush-options")) + "0000",
            packet(&format!("{one}\0a\rpush-options=x")) + "0000",
            packet(&format!("{one}\0a\0push-options")) + "0000",
            packet(&format!("{one}\0a object-format=sha256")) + "0000",
            packet(&format!("shallow {}", "a".repeat(40))) + "0000",
            packet("push-cert\0a") + "0000",
        ] {
            assert!(!error(&body).is_empty(), "{body}");
        }
    }
}
