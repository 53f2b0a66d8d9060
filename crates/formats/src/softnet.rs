//! `/proc/net/softnet_stat`: what each CPU took from devices and from its backlog.
//!
//! A row of hex numbers per online CPU, without a header; kernels only ever added columns: the tenth
//! (`received_rps`, 2.6.35), the eleventh (`flow_limit_count`, 3.11), the thirteenth (the CPU's number, 5.10).
//! Without that number the rows are the online CPUs in order. The counters have 32 bits and wrap, at a million
//! packets a second after 72 minutes. Source: `softnet_seq_show` in net/core/net-procfs.c, Linux 6.18 and 4.6.

/// What one CPU counted since boot, modulo 2^32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Number of the CPU, where the kernel prints it.
    pub cpu: Option<u32>,
    /// Packets taken from devices and from the backlog.
    pub processed: u32,
    /// Packets dropped because the backlog was full.
    pub dropped: u32,
    /// Rounds that ended by budget or time with packets left.
    pub squeezed: u32,
    /// Wake-ups by another CPU for RPS.
    pub received_rps: Option<u32>,
    /// Packets dropped by the flow limit.
    pub flow_limit: Option<u32>,
}

/// All rows; `None` if a line is not a row, because the CPUs of the other rows are then unknown.
pub fn parse(text: &str) -> Option<Vec<Row>> {
    text.lines().map(row).collect()
}

fn row(line: &str) -> Option<Row> {
    let columns: Vec<u32> = line
        .split_ascii_whitespace()
        .map(|word| u32::from_str_radix(word, 16).ok())
        .collect::<Option<_>>()?;
    Some(Row {
        cpu: columns.get(12).copied(),
        processed: *columns.first()?,
        dropped: *columns.get(1)?,
        squeezed: *columns.get(2)?,
        received_rps: columns.get(9).copied(),
        flow_limit: columns.get(10).copied(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_row_of_linux_6_18_names_its_cpu() {
        let text = "\
27359f93 00000000 0000001a 00000000 00000000 00000000 00000000 00000000 00000000 00141ca4 00000000 00000000 00000000 00000000 00000000
26ec77f1 00000002 0000001b 00000000 00000000 00000000 00000000 00000000 00000000 00133398 00000007 00000000 00000003 00000000 00000000
";
        let rows = parse(text).unwrap();
        let second = Row {
            cpu: Some(3),
            processed: 0x26ec_77f1,
            dropped: 2,
            squeezed: 27,
            received_rps: Some(0x0013_3398),
            flow_limit: Some(7),
        };
        assert_eq!((rows.len(), rows[0].cpu), (2, Some(0)));
        assert_eq!(rows[1], second);
    }

    #[test]
    fn older_rows_are_shorter_and_do_not_name_their_cpu() {
        let of_4_6 = "0000a1b2 00000001 00000003 00000000 00000000 00000000 00000000 00000000 00000000 0000000c 00000005";
        let row = parse(of_4_6).unwrap()[0];
        assert_eq!((row.cpu, row.flow_limit), (None, Some(5)));
        let of_2_6_32 =
            "0000a1b2 00000001 00000003 00000000 00000000 00000000 00000000 00000000 00000000";
        let row = parse(of_2_6_32).unwrap()[0];
        assert_eq!((row.squeezed, row.received_rps), (3, None));
    }

    #[test]
    fn a_text_that_is_something_else_is_refused_whole() {
        assert_eq!(parse("1 2 3\nno numbers here"), None);
        assert_eq!(parse("1 2"), None);
        assert_eq!(parse("\n"), None);
        assert_eq!(parse(""), Some(Vec::new()));
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic(text in "[0-9a-f \\n]{0,200}|.*") {
            let _ = parse(&text);
        }
    }
}
