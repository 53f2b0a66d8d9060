//! The connections of a worker under keys that are never used twice, so that an event or a timer of one that has ended meets
//! none.

/// A place in a [`Slab`], and which of its tenants is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    place: u32,
    tenancy: u32,
}

impl Key {
    /// As epoll carries it.
    pub(super) fn number(self) -> u64 {
        u64::from(self.tenancy) << 32 | u64::from(self.place)
    }

    pub(super) fn from_number(number: u64) -> Self {
        Self {
            place: number as u32,
            tenancy: (number >> 32) as u32,
        }
    }
}

#[derive(Debug)]
struct Place<T> {
    tenancy: u32,
    tenant: Option<T>,
}

/// Values under keys.
#[derive(Debug)]
pub(super) struct Slab<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(super) fn new() -> Self {
        Self {
            places: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(super) fn insert(&mut self, tenant: T) -> Key {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place {
                tenancy: 0,
                tenant: None,
            });
            // A process has at most 2^30 descriptors (fs.nr_open, fs/file.c).
            self.places.len() as u32 - 1
        });
        let at = &mut self.places[place as usize];
        at.tenant = Some(tenant);
        Key {
            place,
            tenancy: at.tenancy,
        }
    }

    pub(super) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let at = self.places.get_mut(key.place as usize)?;
        at.tenant.as_mut().filter(|_| at.tenancy == key.tenancy)
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<T> {
        let at = self.places.get_mut(key.place as usize)?;
        if at.tenancy != key.tenancy {
            return None;
        }
        let tenant = at.tenant.take()?;
        // The last tenancy of all belongs to the worker's own descriptors: see `worker`.
        at.tenancy = (at.tenancy + 1) % u32::MAX;
        self.free.push(key.place);
        Some(tenant)
    }

    /// The keys of all, for a walk that removes some.
    pub(super) fn keys(&self) -> Vec<Key> {
        let places = (0..).zip(&self.places);
        let taken = places.filter(|(_, at)| at.tenant.is_some());
        taken
            .map(|(place, at)| Key {
                place,
                tenancy: at.tenancy,
            })
            .collect()
    }

    /// How many places there are, taken or free.
    pub(super) fn places(&self) -> usize {
        self.places.len()
    }

    /// The key of who has a place, if somebody has.
    pub(super) fn key_at(&self, place: usize) -> Option<Key> {
        let at = self.places.get(place)?;
        at.tenant.as_ref().map(|_| Key {
            place: place as u32,
            tenancy: at.tenancy,
        })
    }

    /// How many places are taken.
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.places.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_one_that_has_left_means_nobody() {
        let mut slab = Slab::new();
        let (first, second) = (slab.insert('a'), slab.insert('b'));
        assert_eq!(slab.remove(first), Some('a'));
        let third = slab.insert('c');
        assert_eq!(slab.get_mut(first), None);
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.get_mut(third), Some(&mut 'c'));
        assert_eq!(slab.keys(), [third, second]);
        assert_eq!(
            (slab.places(), slab.key_at(1), slab.key_at(2)),
            (2, Some(second), None)
        );
        assert_eq!(Key::from_number(third.number()), third);
        slab.remove(second);
        assert_eq!(slab.key_at(1), None);
        assert!(!slab.is_empty());
        slab.remove(third);
        assert!(slab.is_empty());
    }
}
