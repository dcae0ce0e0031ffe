//! Tar archives and gzip streams, read in memory and within limits; nothing is extracted to disk.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;

use super::collect::Collected;
use super::logs::{LogSource, is_log_path};
use super::paths::{FileInfo, harmless_parts, is_document, may_be_log};

/// The largest file, and the most bytes in all, that are read.
pub(crate) const MAX_ENTRY: u64 = 512 << 20;
pub(crate) const MAX_TOTAL: u64 = 2 << 30;

/// Whether bytes start like a gzip stream.
pub(crate) fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

/// Whether bytes start like a tar archive: by its magic, or by the checksum of an old one.
pub(crate) fn is_tar(bytes: &[u8]) -> bool {
    let Some(block) = bytes.get(..512) else {
        return false;
    };
    if &block[257..262] == b"ustar" {
        return true;
    }
    let digits = block[148..156].iter().copied().filter(u8::is_ascii_digit).map(char::from).collect::<String>();
    let sum: u32 =
        block.iter().enumerate().map(|(at, b)| if (148..156).contains(&at) { 32 } else { u32::from(*b) }).sum();
    block[0] != 0 && u32::from_str_radix(&digits, 8) == Ok(sum)
}

/// The first bytes of a gzip stream, to tell what is in it.
pub(crate) fn gzip_start(bytes: &[u8]) -> Vec<u8> {
    let mut start = Vec::new();
    // A broken stream gives what came before the break; reading it again will report it.
    let _ = MultiGzDecoder::new(bytes).take(512).read_to_end(&mut start);
    start
}

/// The content of a gzip stream of one file, with whether it was whole and within the limit.
pub(crate) fn gunzip(bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut content = Vec::new();
    let read = MultiGzDecoder::new(bytes).take(MAX_ENTRY + 1).read_to_end(&mut content);
    let whole = read.is_ok() && content.len() as u64 <= MAX_ENTRY;
    (content, whole)
}

/// Adds the documents and logs of a tar archive, gzip'd or not; what cannot be read is a problem.
pub(crate) fn add_archive(collected: &mut Collected, name: &str, bytes: &[u8]) {
    let reader: Box<dyn Read + '_> =
        if is_gzip(bytes) { Box::new(MultiGzDecoder::new(bytes)) } else { Box::new(bytes) };
    let reader = Limited { reader, left: MAX_TOTAL, zeros: 0 };
    if let Err(reason) = entries(collected, reader) {
        collected.add_problem(FileInfo::new(name, vec![name.to_owned()]), reason);
    }
}

fn entries<R: Read>(collected: &mut Collected, reader: Limited<R>) -> Result<(), &'static str> {
    let broken = |error: io::Error| {
        if error.kind() == io::ErrorKind::FileTooLarge {
            "the archive is too large"
        } else {
            "the archive is broken or cut short"
        }
    };
    let mut archive = tar::Archive::new(reader);
    let mut total: u64 = 0;
    for entry in archive.entries().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        if !matches!(
            entry.header().entry_type(),
            tar::EntryType::Regular | tar::EntryType::Continuous | tar::EntryType::GNUSparse
        ) {
            continue;
        }
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let parts = harmless_parts(&path);
        let Some(file_name) = parts.last() else {
            continue;
        };
        let document = is_document(file_name);
        if !(document || may_be_log(file_name) && is_log_path(&parts)) || file_name.starts_with("._") {
            continue;
        }
        let info = FileInfo::new(&parts.join("/"), parts);
        let mut content = Vec::new();
        let size = (&mut entry).take(MAX_ENTRY + 1).read_to_end(&mut content).map_err(broken)? as u64;
        total += size;
        if total > MAX_TOTAL {
            return Err("the archive is too large");
        }
        if size > MAX_ENTRY {
            collected.add_problem(info, "the file is too large");
        } else if document {
            collected.add_file(info, &content);
        } else if let Ok(packed) = LogSource::pack(&content) {
            collected.logs.add(&info.parts, packed);
        }
    }
    // An archive that was cut between two files just ends: only the zeros at its end tell.
    if archive.into_inner().zeros < 512 {
        return Err("the archive is cut short");
    }
    Ok(())
}

/// A reader that fails after a number of bytes instead of pretending that the end was reached.
struct Limited<R> {
    reader: R,
    left: u64,
    /// The number of zero bytes that were read last.
    zeros: usize,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.left = self.left.checked_sub(read as u64).ok_or(io::ErrorKind::FileTooLarge)?;
        let zeros = buffer[..read].iter().rev().take_while(|b| **b == 0).count();
        self.zeros = if zeros == read { self.zeros.saturating_add(zeros) } else { zeros };
        Ok(read)
    }
}
