//! What the JVM runs on, as far as it is known: how much memory and how many CPUs it may use.

/// Limits of the JVM's surroundings; what is unknown is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Machine {
    /// Memory of the machine, bytes.
    pub memory: Option<u64>,
    /// Limit of the control group (`memory.max`), bytes. `None` where there is none or it is unknown.
    pub limit: Option<u64>,
    /// CPUs that the JVM sees: those of its affinity, or fewer by the quota of its control group.
    pub cpus: Option<f64>,
}

impl Machine {
    /// The smaller of memory and limit, and what it is called.
    pub(crate) fn room(&self) -> Option<(u64, &'static str)> {
        match (self.memory, self.limit) {
            (Some(memory), Some(limit)) if limit >= memory => {
                Some((memory, "memory of the machine"))
            }
            (_, Some(limit)) => Some((limit, "memory limit of its control group")),
            (Some(memory), None) => Some((memory, "memory of the machine")),
            (None, None) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smaller_of_two_limits_counts() {
        let machine = |memory, limit| Machine {
            memory,
            limit,
            cpus: None,
        };
        assert_eq!(machine(Some(8), Some(4)).room().unwrap().0, 4);
        assert_eq!(
            machine(Some(8), Some(u64::MAX)).room().unwrap(),
            (8, "memory of the machine")
        );
        assert_eq!(machine(None, None).room(), None);
    }
}
