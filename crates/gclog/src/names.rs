//! Names as the log prints them, each kept once.
//!
//! A table of our own rather than `HashMap`: a phase is looked up on every other line of a detailed log, and most of
//! that time went into a hash that withstands attacks. Here an attack can only fill [`MOST`] places.

/// A name, cheap to copy and to compare. The default is `(other)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(u16);

impl Name {
    /// Its number, below the most names that are kept (4096).
    pub(crate) fn number(self) -> usize {
        usize::from(self.0)
    }
}

/// Every name that was seen. A log has a few hundred; garbage may have millions, which count as one.
#[derive(Clone, Debug)]
pub struct Names {
    names: Vec<Box<str>>,
    /// Where a name may stand: its number, from the place of its hash on; 0 is an empty place.
    places: Box<[u16]>,
}

/// Longest name that is kept, bytes.
const LONGEST: usize = 256;
/// Most names that are kept.
const MOST: usize = 4096;
/// Places of the table; twice the names, so that a search ends soon.
const PLACES: usize = 2 * MOST;
/// Stands for every name beyond the limits.
const OTHER: &str = "(other)";

impl Default for Names {
    fn default() -> Self {
        Self {
            names: vec![OTHER.into()],
            places: vec![0; PLACES].into_boxed_slice(),
        }
    }
}

impl Names {
    /// The name as printed; `(other)` where there were too many.
    pub fn get(&self, name: Name) -> &str {
        self.names
            .get(usize::from(name.0))
            .map_or(OTHER, |name| name)
    }

    /// Finds a name, or keeps it. Bytes that are no UTF-8 become replacement characters.
    pub fn number(&mut self, bytes: &[u8]) -> Name {
        let bytes = &bytes[..bytes.len().min(LONGEST)];
        if bytes.is_ascii() {
            self.find(bytes)
        } else {
            let text = String::from_utf8_lossy(bytes).into_owned();
            self.find(text.as_bytes())
        }
    }

    /// As above; the bytes are UTF-8.
    fn find(&mut self, bytes: &[u8]) -> Name {
        let mut place = hash(bytes) as usize % PLACES;
        loop {
            let number = self.places[place];
            if number == 0 {
                break;
            }
            if self.names[usize::from(number)].as_bytes() == bytes {
                return Name(number);
            }
            place = (place + 1) % PLACES;
        }
        if self.names.len() >= MOST {
            return Name(0);
        }
        let number = self.names.len() as u16;
        self.names.push(String::from_utf8_lossy(bytes).into());
        self.places[place] = number;
        Name(number)
    }
}

/// Eight bytes at a time: rotate, mix, multiply, as in the hash of Firefox and rustc ("FxHash").
fn hash(bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x517c_c1b7_2722_0a95;
    let mut hash = bytes.len() as u64;
    let (chunks, rest) = bytes.as_chunks::<8>();
    let mut mix = |word: u64| hash = (hash.rotate_left(5) ^ word).wrapping_mul(FACTOR);
    for chunk in chunks {
        mix(u64::from_le_bytes(*chunk));
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    mix(u64::from_le_bytes(last));
    // The high bits are the well mixed ones.
    hash >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_once() {
        let mut names = Names::default();
        let young = names.number(b"Pause Young");
        assert_eq!(names.number(b"Pause Young"), young);
        assert_ne!(names.number(b"Pause Full"), young);
        assert_eq!(names.get(young), "Pause Young");
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        let mut names = Names::default();
        let name = names.number(b"Pause \xff");
        assert_eq!(names.number(b"Pause \xff"), name);
        assert_eq!(names.get(name), "Pause \u{fffd}");
    }

    #[test]
    fn too_many_names_count_as_one() {
        let mut names = Names::default();
        for number in 0..10_000 {
            names.number(format!("name {number}").as_bytes());
        }
        let late = names.number(b"one more");
        assert_eq!(names.get(late), OTHER);
        let early = names.number(b"name 7");
        assert_eq!(names.get(early), "name 7");
    }
}
