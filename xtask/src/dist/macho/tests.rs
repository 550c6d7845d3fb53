use super::*;

/// Returns a small program: a header, four load commands, a few pages, and a signature.
fn program(library: &str) -> Vec<u8> {
    let mut name = library.as_bytes().to_vec();
    name.resize(32, 0);
    let mut commands: Vec<Vec<u32>> = vec![
        vec![ENTRY, 24, 0, 0, 0, 0],
        vec![BUILD_VERSION, 24, MACOS, 0, 0, 0],
        vec![LIBRARIES[0], 56, 24, 0, 0, 0],
        vec![SIGNATURE, 16, 9000, 0],
    ];
    commands[2].extend(name.chunks(4).map(|four| u32::from_le_bytes(four.try_into().unwrap())));
    let count = u32::try_from(commands.len()).unwrap();
    let mut words = vec![MAGIC, 0x0100_000c, 0, EXECUTABLE, count, 0, POSITION_INDEPENDENT, 0];
    words.extend(commands.concat());
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.resize(9000, 7);
    let at = bytes.windows(4).position(|four| four == 9000_u32.to_le_bytes()).unwrap();
    // The length of the signature: the blob, one entry, the directory, and three sums.
    let length = 20 + 44 + 3 * HASH;
    bytes[at + 4..at + 8].copy_from_slice(&u32::try_from(length).unwrap().to_le_bytes());
    let sums: Vec<u8> = bytes.chunks(4096).flat_map(|page| Sha256::digest(page).to_vec()).collect();
    let mut blob: Vec<u8> =
        [SIGNATURE_MAGIC, 0, 1, 0, 20].iter().flat_map(|word: &u32| word.to_be_bytes()).collect();
    let directory = [DIRECTORY_MAGIC, 0, 0, AD_HOC, 44, 0, 0, 3, 9000];
    blob.extend(directory.iter().flat_map(|word| word.to_be_bytes()));
    blob.extend([32, SHA256, 0, 12, 0, 0, 0, 0]);
    blob.extend(sums);
    bytes.extend(blob);
    bytes
}

fn problem(program: &[u8]) -> String {
    format!("{:#}", check(program, Target::MacosAarch64).unwrap_err())
}

#[test]
fn a_signed_program_for_its_processor_is_accepted() {
    let good = program("/usr/lib/libSystem.B.dylib");
    check(&good, Target::MacosAarch64).unwrap();
    assert!(check(&good, Target::MacosX86_64).unwrap_err().to_string().contains("another processor"));
    assert!(check(b"\x7fELF", Target::MacosAarch64).is_err());
}

#[test]
fn a_changed_page_and_a_lost_signature_are_seen() {
    let good = program("/usr/lib/libSystem.B.dylib");
    for at in [8999, 5000] {
        let mut changed = good.clone();
        changed[at] ^= 1;
        assert!(problem(&changed).contains("another sum"), "{at}");
    }
    let mut unsigned = good.clone();
    let at = unsigned.windows(4).position(|four| four == SIGNATURE.to_le_bytes()).unwrap();
    unsigned[at] = 0x1e;
    assert!(problem(&unsigned).contains("not signed"));
    // An x86-64 machine runs it; what is signed there must still be whole.
    let for_x86_64 = |mut bytes: Vec<u8>| {
        bytes[4..8].copy_from_slice(&0x0100_0007_u32.to_le_bytes());
        check(&bytes, Target::MacosX86_64).map_err(|error| format!("{error:#}"))
    };
    assert_eq!(for_x86_64(unsigned), Ok(()));
    assert!(for_x86_64(good.clone()).unwrap_err().contains("page 0 has another sum"));
    assert!(problem(&good[..good.len() - 1]).contains("cut off"));
}

#[test]
fn a_library_that_a_machine_may_lack_is_named() {
    let other = "/opt/lib/libother.dylib";
    assert!(problem(&program(other)).contains(other));
}
