//! Names as the log prints them, each kept once.

use std::collections::HashMap;

/// A name, cheap to copy and to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(u16);

/// Every name that was seen. A log has a few hundred; garbage may have millions, which count as one.
#[derive(Clone, Debug)]
pub struct Names {
    names: Vec<Box<str>>,
    numbers: HashMap<Box<str>, Name>,
}

/// Longest name that is kept, bytes.
const LONGEST: usize = 256;
/// Most names that are kept.
const MOST: usize = 4096;
/// Stands for every name beyond the limits.
const OTHER: &str = "(other)";

impl Default for Names {
    fn default() -> Self {
        Self {
            names: vec![OTHER.into()],
            numbers: HashMap::new(),
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
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(LONGEST)]);
        if let Some(name) = self.numbers.get(text.as_ref()) {
            return *name;
        }
        if self.names.len() >= MOST {
            return Name(0);
        }
        let name = Name(self.names.len() as u16);
        self.names.push(text.as_ref().into());
        self.numbers.insert(text.into(), name);
        name
    }
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
    fn too_many_names_count_as_one() {
        let mut names = Names::default();
        for number in 0..10_000 {
            names.number(format!("name {number}").as_bytes());
        }
        let late = names.number(b"one more");
        assert_eq!(names.get(late), OTHER);
    }
}
