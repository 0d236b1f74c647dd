//! SHA-256 digests as hexadecimal text, for records that other programs check. Reads only the given input, up to 1 GiB.

use std::fs::File;
use std::io::{self, Read as _};

use sha2::{Digest as _, Sha256};

use super::files::{MIB, check_size};

/// The number of bytes read at a time.
const CHUNK: usize = 64 << 10;
/// Maximum size of a file, in bytes.
const LARGEST: u64 = 1024 * MIB;

/// Returns the digest of these bytes.
pub fn of(content: impl AsRef<[u8]>) -> String {
    hex(&Sha256::digest(content))
}

/// Returns the digest of a file.
///
/// # Errors
/// Fails if the file exceeds the maximum size or cannot be read.
pub fn of_file(file: File) -> io::Result<String> {
    check_size(&file, LARGEST)?;
    let mut content = file.take(LARGEST);
    let (mut hash, mut chunk) = (Sha256::new(), vec![0; CHUNK]);
    loop {
        match content.read(&mut chunk)? {
            0 => return Ok(hex(&hash.finalize())),
            read => hash.update(&chunk[..read]),
        }
    }
}

fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
