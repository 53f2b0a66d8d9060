//! Lines of a name, a colon and a value: `/proc/meminfo`, `/proc/PID/status`, `/proc/PID/sched`.
//!
//! The names differ between kernels, the shape does not (fs/proc/meminfo.c, fs/proc/array.c,
//! kernel/sched/debug.c, Linux 6.18). Sizes are printed in kB and mean KiB.

/// The value behind `name:`, without the white space around it.
pub fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        (found.trim_end() == name).then(|| value.trim())
    })
}

/// The whole line of `name:`, to be cited.
pub fn line<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find(|line| {
        line.split_once(':')
            .is_some_and(|(found, _)| found.trim_end() == name)
    })
}

/// A number behind `name:`: bytes where the line says kB, else as it is.
pub fn number(text: &str, name: &str) -> Option<u64> {
    let value = value(text, name)?;
    match value.strip_suffix("kB") {
        Some(kib) => kib.trim_end().parse::<u64>().ok()?.checked_mul(1024),
        None => value.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MEMINFO: &str =
        "MemTotal:       24684084 kB\nHugePages_Total:       7\nVmallocTotal:   34359738367 kB\n";

    #[test]
    fn sizes_become_bytes_and_counts_stay() {
        assert_eq!(number(MEMINFO, "MemTotal"), Some(24_684_084 * 1024));
        assert_eq!(number(MEMINFO, "HugePages_Total"), Some(7));
        assert_eq!(number(MEMINFO, "HugePages"), None);
        assert_eq!(number("VmRSS:\t18446744073709551615 kB", "VmRSS"), None);
    }

    #[test]
    fn names_may_be_padded_as_in_proc_sched() {
        let sched = "cat (2420, #threads: 1)\n------\nse.nr_migrations                             :                    4\n";
        assert_eq!(number(sched, "se.nr_migrations"), Some(4));
        assert_eq!(
            value("Cpus_allowed_list:\t0-1\n", "Cpus_allowed_list"),
            Some("0-1")
        );
        assert_eq!(
            line(MEMINFO, "MemTotal"),
            Some("MemTotal:       24684084 kB")
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in any::<String>(), name in "[a-zA-Z_]{0,8}") {
            let _ = (value(&text, &name), line(&text, &name), number(&text, &name));
        }
    }
}
