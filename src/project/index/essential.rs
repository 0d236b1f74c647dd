//! The part of an index that says what is tracked.
//!
//! Pure. `gix-index` reads the caches in an index by recursion, and gives paths that are written as what differs from
//! the last all the room they ask for. Guarantees that what is handed to it has none of these caches, and
//! paths that a system can have, of a bounded length together.

use memchr::memchr;

/// Signature, version, number of entries.
const HEADER: usize = 12;
/// The bytes before an entry's object: two times, device, inode, mode, owner, group, size.
const STAT: usize = 40;
/// The flag of an entry that has more flags.
const EXTENDED: u16 = 0x4000;
/// The flags that tell the length of an entry's path.
const LENGTH: u16 = 0x0fff;
/// All paths together have no more bytes.
const LARGEST: usize = 256 << 20;

/// The header, the entries, the extensions that must be understood, and the checksum, which is `hash_length` long.
/// `None` where the index is none, or damaged.
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
    let (mut at, mut path, mut all) = (HEADER, 0, 0);
    for _ in 0..count {
        let start = at;
        let flags = start + STAT + hash_length;
        let flags: [u8; 2] = index.get(flags..flags + 2)?.try_into().ok()?;
        let flags = u16::from_be_bytes(flags);
        let more = if flags & EXTENDED == 0 { 0 } else { 2 };
        at = start + STAT + hash_length + 2 + more;
        let mut kept = 0;
        if version == 4 {
            let (dropped, length) = difference(index.get(at..)?)?;
            kept = path_without(path, dropped)?;
            at += length;
        }
        let new = memchr(0, index.get(at..)?)?;
        path = kept + new;
        all += path;
        at += new + 1;
        if version != 4 {
            at = start + (at - start).next_multiple_of(8);
        }
        // A longer path no system takes, and its length would not stand in the flags.
        if path >= usize::from(LENGTH) || all > LARGEST {
            return None;
        }
        if version != 4 && path != usize::from(flags & LENGTH) {
            return None;
        }
    }
    (at <= index.len()).then_some(at)
}

fn path_without(path: usize, dropped: u64) -> Option<usize> {
    path.checked_sub(usize::try_from(dropped).ok()?)
}

/// Decodes the number of bytes dropped from the last path, and the length of this number.
fn difference(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0_u64;
    for (at, byte) in bytes.iter().enumerate() {
        value = (value << 7) | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
        // Longer ones than any path.
        if at == 3 {
            return None;
        }
        value += 1;
    }
    None
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}
