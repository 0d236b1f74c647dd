//! SHA-256 digests as hexadecimal text, for records that other programs check. Reads only the given input.

use std::io::{self, Read};

use sha2::{Digest as _, Sha256};

/// The number of bytes read at a time.
const CHUNK: usize = 64 << 10;

/// Returns the digest of these bytes.
pub fn of(content: impl AsRef<[u8]>) -> String {
    hex(&Sha256::digest(content))
}

/// Returns the digest of everything that is read.
///
/// # Errors
/// Fails if reading fails.
pub fn of_reader(mut content: impl Read) -> io::Result<String> {
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
