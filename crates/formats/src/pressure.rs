//! `/proc/pressure/{cpu,io,memory}`: how long tasks were held up for want of a resource.
//!
//! `some` counts time in which at least one task waited, `full` time in which all did. `full` of the CPU is
//! missing before Linux 5.13 and zero for the whole system since (kernel/sched/psi.c, Linux 6.18).

/// Both lines of one file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pressure {
    /// At least one task waited.
    pub some: Stall,
    /// All tasks that were not idle waited.
    pub full: Option<Stall>,
}

/// One line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stall {
    /// Share of the last ten seconds, 0 to 1; a decaying mean, two decimals of a percent.
    pub avg10: f64,
    /// Microseconds since boot.
    pub total_us: u64,
}

/// Both lines; nothing if there is no line `some`.
pub fn parse(text: &str) -> Option<Pressure> {
    let stall = |name: &str| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        let value = |name: &str| {
            line.split_ascii_whitespace()
                .find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
        };
        let percent: f64 = value("avg10")?.parse().ok()?;
        Some(Stall {
            avg10: percent / 100.0,
            total_us: value("total")?.parse().ok()?,
        })
    };
    Some(Pressure {
        some: stall("some")?,
        full: stall("full"),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn both_lines_are_read_and_an_old_kernel_has_one() {
        let text = "some avg10=91.28 avg60=89.77 avg300=88.88 total=4990212619\n\
                    full avg10=0.10 avg60=0.06 avg300=0.02 total=44260280\n";
        let found = parse(text).unwrap();
        assert!((found.some.avg10 - 0.9128).abs() < 1e-9);
        assert_eq!(found.some.total_us, 4_990_212_619);
        assert_eq!(found.full.unwrap().total_us, 44_260_280);
        let old = parse("some avg10=0.00 avg60=0.00 avg300=0.00 total=7\n").unwrap();
        assert_eq!((old.some.total_us, old.full), (7, None));
        assert_eq!(parse("some avg10=x total=1"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "(some |full |avg10=|total=|[0-9.]{1,4}|\n|.){0,30}") {
            parse(&text);
        }
    }
}
