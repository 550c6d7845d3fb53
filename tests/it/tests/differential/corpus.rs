//! A project with every kind of file that tools treat in a special way.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use anyhow::Result;
use portcullis_it::Scene;

/// Creates the project from scratch, with the same content each time.
pub(super) fn make(scene: &Scene) -> Result<()> {
    let project = scene.project();
    fs::remove_dir_all(&project)?;
    fs::create_dir(&project)?;
    scene.user().own(&project)?;
    for (name, text) in texts() {
        scene.write(&project.join(name), &text)?;
    }
    for (name, bytes) in binaries() {
        scene.write(&project.join(name), "")?;
        fs::write(project.join(name), bytes)?;
    }
    for (name, target) in
        [("link.txt", "a.txt"), ("to-src", "src"), ("dangling", "nowhere"), ("circle", "circle")]
    {
        symlink(target, project.join(name))?;
    }
    let odd = project.join(std::ffi::OsStr::from_bytes(b"odd-\xFF.txt"));
    scene.write(&odd, "needle in an odd name\n")?;
    for (name, mode) in [("script.sh", 0o755), ("a.txt", 0o640), ("read-only.txt", 0o444), ("closed", 0o700)]
    {
        set_mode(&project.join(name), mode)?;
    }
    Ok(())
}

fn set_mode(path: &Path, mode: u32) -> Result<()> {
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(mode))?)
}

fn texts() -> Vec<(&'static str, String)> {
    let numbered = |count: usize| (1..=count).map(|line| format!("line {line}\n")).collect::<String>();
    vec![
        (".git/HEAD", "ref: refs/heads/main\n".into()),
        (".git/info/exclude", "excluded.txt\n".into()),
        (".gitignore", "ignored.txt\nbuild/\n*.log\n!keep.log\n/top-only.txt\n".into()),
        (".ignore", "by-ignore.txt\n".into()),
        (".rgignore", "by-rgignore.txt\n".into()),
        (".fdignore", "by-fdignore.txt\n".into()),
        ("a.txt", "alpha\nbeta\ngamma\n".into()),
        ("no-end.txt", "alpha\nbeta".into()),
        ("empty.txt", String::new()),
        ("only-end.txt", "\n".into()),
        ("crlf.txt", "one\r\ntwo needle\r\nthree\r\n".into()),
        ("cr.txt", "one\rtwo needle\rthree\nfour needle\n".into()),
        ("mixed.txt", "one\r\ntwo\nthree\rfour\r\n".into()),
        ("bom.txt", "\u{FEFF}head\nneedle\n".into()),
        ("bom-crlf.txt", "\u{FEFF}head\r\nbody\r\n".into()),
        ("unicode.txt", "naïve “quotes” — dash\nnaive 'quotes' - dash\n\u{1F600} needle\n".into()),
        ("nul.txt", "before needle\n\0\nafter needle\n".into()),
        ("long.txt", numbered(3_000)),
        ("exactly.txt", numbered(2_000)),
        ("wide.txt", format!("{}needle\nnext\n", "x".repeat(60_000))),
        ("wide-later.txt", format!("first\n{}needle\n", "x".repeat(60_000))),
        ("cut.txt", format!("needle {}\u{1F600}{}\n", "y".repeat(492), "z".repeat(50))),
        ("many.txt", (1..=400).map(|line| format!("needle number {line} {}\n", "n".repeat(200))).collect()),
        ("script.sh", "#!/bin/sh\necho needle\n".into()),
        ("read-only.txt", "kept needle\n".into()),
        ("ignored.txt", "needle\n".into()),
        ("excluded.txt", "needle\n".into()),
        ("by-ignore.txt", "needle\n".into()),
        ("by-rgignore.txt", "needle\n".into()),
        ("by-fdignore.txt", "needle\n".into()),
        ("top-only.txt", "needle\n".into()),
        ("x.log", "needle\n".into()),
        ("keep.log", "needle\n".into()),
        ("build/out.txt", "needle\n".into()),
        (".hidden/inside.txt", "needle\n".into()),
        ("src/a.ts", "const needle = 1;\nexport {};\n".into()),
        ("src/deep/b.ts", "Needle\nneedle\n".into()),
        ("src/deep/B.TSX", "x\n".into()),
        ("src/deep/top-only.txt", "needle\n".into()),
        ("nested/.git/HEAD", "ref: refs/heads/main\n".into()),
        ("nested/x.log", "needle\n".into()),
        ("nested/.gitignore", "own.txt\n".into()),
        ("nested/own.txt", "needle\n".into()),
        ("sp ace/with space.txt", "needle\n".into()),
        ("Shot at 3\u{202F}PM.png.txt", "screenshot\n".into()),
        ("cafe\u{301}.txt", "decomposed\n".into()),
        ("it\u{2019}s.txt", "curly\n".into()),
        ("[x].env", "brackets needle\n".into()),
        ("a*b", "star needle\n".into()),
        ("closed/file.txt", "needle\n".into()),
        ("locked-file.txt", "needle\n".into()),
    ]
}

fn binaries() -> Vec<(&'static str, Vec<u8>)> {
    let mut utf16 = vec![0xFF, 0xFE];
    utf16.extend("head\nneedle\n".encode_utf16().flat_map(u16::to_le_bytes));
    let mut animated = png(4, 4);
    animated.splice(33..33, [0, 0, 0, 8, b'a', b'c', b'T', b'L', 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    vec![
        ("latin1.txt", b"caf\xE9 needle\nplain needle\n".to_vec()),
        ("utf16.txt", utf16),
        ("small.png", png(4, 4)),
        ("wide.png", png(2_100, 8)),
        ("animated.png", animated),
        ("broken.png", b"\x89PNG\r\n\x1a\nbroken".to_vec()),
        ("not.gif", b"GIF is only a word here\n".to_vec()),
        ("broken.gif", b"GIF89a and then nothing".to_vec()),
        ("tiny.gif", b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xFF\xFF\xFF!\xF9\x04\x01\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;".to_vec()),
        ("lossless.jpg", b"\xFF\xD8\xFF\xF7 nothing that is shown".to_vec()),
        ("broken.jpg", b"\xFF\xD8\xFF\xE0 broken".to_vec()),
        ("broken.webp", b"RIFF\0\0\0\0WEBPVP8 broken".to_vec()),
        ("tiny.bmp", bmp()),
        ("bm.txt", b"BMW is no picture\n".to_vec()),
    ]
}

/// A grey picture; its data is stored uncompressed.
fn png(width: u32, height: u32) -> Vec<u8> {
    let row = usize::try_from(width).unwrap_or(0) + 1;
    let raw = vec![0_u8; row * usize::try_from(height).unwrap_or(0)];
    let mut data = vec![0x78, 0x01];
    let mut blocks = raw.chunks(0xFFFF).peekable();
    while let Some(block) = blocks.next() {
        let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
        data.push(u8::from(blocks.peek().is_none()));
        data.extend(length.to_le_bytes());
        data.extend((!length).to_le_bytes());
        data.extend(block);
    }
    // The Adler-32 checksum of zero bytes depends only on their number.
    let count = u32::try_from(raw.len() % 65_521).unwrap_or(0);
    data.extend(((count << 16) | 1).to_be_bytes());
    let mut head = width.to_be_bytes().to_vec();
    head.extend(height.to_be_bytes());
    head.extend([8, 0, 0, 0, 0]);
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    for (kind, content) in [(b"IHDR", head), (b"IDAT", data), (b"IEND", Vec::new())] {
        bytes.extend(u32::try_from(content.len()).unwrap_or(0).to_be_bytes());
        let checked: Vec<u8> = kind.iter().copied().chain(content).collect();
        bytes.extend(&checked);
        bytes.extend(crc32(&checked).to_be_bytes());
    }
    bytes
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 };
    !bytes.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

/// A picture of one 24-bit pixel.
fn bmp() -> Vec<u8> {
    let mut bytes = b"BM".to_vec();
    for number in [58_u32, 0, 54, 40, 1, 1] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend([1, 0, 24, 0]);
    bytes.extend([0; 24]);
    bytes.extend([255, 0, 0, 0]);
    bytes
}
