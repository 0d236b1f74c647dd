//! Extracts the part of an index that lists the tracked files.
//!
//! Pure. `gix-index` parses the caches in an index recursively, and allocates as much memory as prefix-compressed
//! paths require. Guarantees that the extracted part contains none of these caches, and that its paths are valid on
//! real systems and limited in total length.

use memchr::memchr;

/// Length of the header: signature, version and number of entries.
const HEADER: usize = 12;
/// Number of bytes before an entry's object name: two times, device, inode, mode, owner, group and size.
const STAT: usize = 40;
/// Flag of an entry with extended flags.
const EXTENDED: u16 = 0x4000;
/// Bits of the flags that hold the length of an entry's path.
const LENGTH: u16 = 0x0fff;
/// Maximum total length of all paths in bytes.
const LARGEST: usize = 256 << 20;

/// Returns the header, the entries, the mandatory extensions and the checksum, whose length is `hash_length`.
/// `None` if this is not an index or is damaged.
pub fn part(index: &[u8], hash_length: usize) -> Option<Vec<u8>> {
    let end = index.len().checked_sub(hash_length)?;
    let mut at = end_of_entries(index.get(..end)?, hash_length)?;
    let mut part = index[..at].to_vec();
    while at < end {
        let size = usize::try_from(number(index, at + 4)?).ok()?;
        let next = at.checked_add(size)?.checked_add(8)?;
        let extension = index[..end].get(at..next)?;
        if extension[0].is_ascii_lowercase() {
            part.extend_from_slice(extension);
        }
        at = next;
    }
    part.extend_from_slice(&index[end..]);
    Some(part)
}

fn end_of_entries(index: &[u8], hash_length: usize) -> Option<usize> {
    let (version, count) = (number(index, 4)?, number(index, 8)?);
    let (mut at, mut path, mut all) = (HEADER, 0_usize, 0);
    for _ in 0..count {
        let start = at;
        at += STAT + hash_length;
        let flags = u16::from_be_bytes(*index.get(at..)?.first_chunk()?);
        at += if flags & EXTENDED == 0 { 2 } else { 4 };
        let mut kept = 0;
        if version == 4 {
            let (dropped, length) = difference(index.get(at..)?)?;
            kept = path.checked_sub(usize::try_from(dropped).ok()?)?;
            at += length;
        }
        let new = memchr(0, index.get(at..)?)?;
        path = kept + new;
        all += path;
        at += new + 1;
        if version != 4 {
            at = start + (at - start).next_multiple_of(8);
        }
        // No system accepts longer paths, and the flags cannot hold their length.
        if path >= usize::from(LENGTH) || all > LARGEST {
            return None;
        }
        if version != 4 && path != usize::from(flags & LENGTH) {
            return None;
        }
    }
    (at <= index.len()).then_some(at)
}

/// Decodes the number of bytes dropped from the previous path, and the length of this number.
fn difference(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0_u64;
    for (at, byte) in bytes.iter().enumerate() {
        value = (value << 7) | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
        // Larger than the length of any path.
        if at == 3 {
            return None;
        }
        value += 1;
    }
    None
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}
