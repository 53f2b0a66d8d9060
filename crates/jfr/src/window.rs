//! A piece of a file in memory, moved along it.

use std::io::{self, ErrorKind, Read, Seek, SeekFrom};

/// Bytes that are read at once.
const BLOCK: usize = 1 << 20;

pub(crate) struct Window<R> {
    reader: R,
    length: u64,
    buffer: Vec<u8>,
    filled: usize,
    /// Place of the first byte of the buffer.
    at: u64,
}

impl<R: Read + Seek> Window<R> {
    pub(crate) fn new(mut reader: R) -> io::Result<Self> {
        let length = reader.seek(SeekFrom::End(0))?;
        Ok(Self {
            reader,
            length,
            buffer: vec![0; BLOCK],
            filled: 0,
            // Nothing is there yet, so the first view seeks.
            at: u64::MAX,
        })
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// What the file has at this place: at least `need` bytes unless the file ends before.
    pub(crate) fn view(&mut self, at: u64, need: usize) -> io::Result<&[u8]> {
        let left = self.length.saturating_sub(at);
        let wanted = need.min(usize::try_from(left).unwrap_or(usize::MAX));
        // Who goes back wants what is before that as well: the checkpoints of a chunk are followed from the last to the first.
        let is_behind = self.at != u64::MAX && at < self.at;
        let start = if is_behind {
            at.saturating_sub(BLOCK as u64 / 2)
        } else {
            at
        };
        let before = (at - start) as usize;
        let need = wanted + before;
        let within = at
            .checked_sub(self.at)
            .and_then(|skip| usize::try_from(skip).ok())
            .filter(|skip| *skip <= self.filled);
        match within {
            Some(skip) if self.filled - skip >= wanted => {
                return Ok(&self.buffer[skip..self.filled]);
            }
            Some(skip) => {
                self.buffer.copy_within(skip..self.filled, 0);
                self.filled -= skip;
            }
            None => {
                self.reader.seek(SeekFrom::Start(start))?;
                self.filled = 0;
            }
        }
        self.at = start;
        if self.buffer.len() < need {
            self.buffer.resize(need, 0);
        } else if self.buffer.len() > BLOCK && need <= BLOCK && self.filled <= BLOCK {
            // A large checkpoint is over.
            self.buffer.truncate(BLOCK);
            self.buffer.shrink_to_fit();
        }
        while self.filled < self.buffer.len() {
            match self.reader.read(&mut self.buffer[self.filled..]) {
                Ok(0) => break,
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.filled < need {
            // The file became shorter meanwhile.
            self.length = start + self.filled as u64;
        }
        Ok(self.buffer[..self.filled].get(before..).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn every_place_shows_the_bytes_of_the_file() {
        let bytes: Vec<u8> = (0..3 * BLOCK as u32 + 7)
            .map(|at| ((at * 31) >> 3) as u8)
            .collect();
        let mut window = Window::new(Cursor::new(bytes.clone())).unwrap();
        for (at, need) in [
            (0, 1),
            (BLOCK - 1, 10),
            (5, 2 * BLOCK),
            (2 * BLOCK, 3),
            (bytes.len() - 2, 100),
            (bytes.len(), 1),
            (bytes.len() + 9, 1),
            (1, 4),
        ] {
            let seen = window.view(at as u64, need).unwrap();
            let wanted = bytes.get(at..).unwrap_or_default();
            assert!(seen.len() >= need.min(wanted.len()), "{at} {need}");
            assert_eq!(seen, &wanted[..seen.len()], "{at} {need}");
        }
    }
}
