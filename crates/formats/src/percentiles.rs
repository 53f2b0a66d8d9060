//! The table of percentiles that `HdrHistogram` prints, as `wrk2 --latency` and others pass it on.
//!
//! A row holds a value, the percentile that was asked for, how many were recorded up to the value, and 1/(1-percentile).
//! The first row is that of the smallest value, the last that of the largest; between them a row stands where a fifth of
//! half of what is left was passed (or another part of it, as its printer likes). Lines before and after a table are
//! those of the tool. The numbers have no unit: each tool divides as it likes. wrk2 prints milliseconds, and `vegeta
//! report -type=hdrplot` names milliseconds in its header.
//! Sources: `AbstractHistogram.outputPercentileDistribution` of `HdrHistogram` 2.2, `hdr_percentiles_print` of
//! `HdrHistogram_c`, `print_hdr_latency` in src/wrk.c of wrk2, README.md of vegeta 12.

use std::fmt;

/// What heads the columns behind the first.
const HEADER: [&str; 3] = ["Percentile", "TotalCount", "1/(1-Percentile)"];

/// What heads the first.
const VALUE: &str = "Value";

/// The same, with the unit.
const VALUE_MS: &str = "Value(ms)";

/// More rows than any printer makes of 64-bit counts at a thousand rows a half; far below what would fill the memory.
const MOST_ROWS: usize = 1 << 16;

/// One row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// The largest value of a bucket, in the unit of the printer.
    pub value: f64,
    /// The percentile that it reaches, 0 to 1.
    pub percentile: f64,
    /// How many were recorded up to this value.
    pub count: u64,
}

/// One table, whole: its values, percentiles and counts never fall, and its last row counts all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// From the smallest value to the largest.
    pub rows: Vec<Row>,
    /// Whether the values are milliseconds: the header says so, or the table follows the heading of wrk2.
    pub in_ms: bool,
    /// wrk2 says of it that the wait before a late start is left out.
    pub uncorrected: bool,
}

impl Table {
    /// How many were recorded.
    pub fn total(&self) -> u64 {
        self.rows.last().map_or(0, |row| row.count)
    }
}

/// What a text holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Printed {
    /// Its tables, in their order.
    pub tables: Vec<Table>,
    /// Requests per second, where wrk2 says it.
    pub per_s: Option<f64>,
}

/// Where a text breaks off or contradicts itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The line, from 1.
    pub line: usize,
    /// In words.
    pub why: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

/// It has the head of a table.
pub fn looks_like(text: &str) -> bool {
    text.lines().any(|line| header(line).is_some())
}

/// What heads the first column.
fn header(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let value = words.next()?;
    (matches!(value, VALUE | VALUE_MS) && words.eq(HEADER)).then_some(value)
}

/// All tables of a text, or why one of them cannot be trusted.
pub fn parse(text: &str) -> Result<Printed, Broken> {
    let mut printed = Printed::default();
    // What was said since the last table, and the table whose rows are read.
    let mut next = Table::default();
    let mut open: Option<Table> = None;
    let mut end = 0;
    for (number, line) in (1..).zip(text.lines()) {
        let broken = |why: String| Broken { line: number, why };
        end = number;
        if let Some(table) = &mut open {
            if line.trim().is_empty() {
                continue;
            }
            if let Some(row) = row(line) {
                table.take(row).map_err(broken)?;
                continue;
            }
            printed.tables.extend(open.take());
            whole(&printed).map_err(broken)?;
        }
        if let Some(value) = header(line) {
            next.in_ms |= value == VALUE_MS;
            open = Some(std::mem::take(&mut next));
        } else if let Some(total) = total_count(line) {
            let counted = printed.tables.last().map_or(total, Table::total);
            if total != counted {
                let why =
                    format!("the rows add up to {counted} values, but the line below says {total}");
                return Err(broken(why));
            }
        } else if let Some(rate) = line.trim().strip_prefix("Requests/sec:") {
            printed.per_s = rate.trim().parse().ok().filter(|rate| *rate > 0.0);
        }
        next.in_ms |= line.trim() == "Detailed Percentile spectrum:";
        next.uncorrected |= line.contains("HdrHistogram - Uncorrected Latency");
    }
    if open.is_some() {
        printed.tables.extend(open);
        whole(&printed).map_err(|why| Broken { line: end, why })?;
    }
    Ok(printed)
}

impl Table {
    /// Takes the next row, which no row before it contradicts.
    fn take(&mut self, row: Row) -> Result<(), String> {
        if self.rows.len() == MOST_ROWS {
            return Err(format!("the table has more than {MOST_ROWS} rows"));
        }
        let falls = self.rows.last().and_then(|last| {
            [
                ("value", row.value < last.value),
                ("percentile", row.percentile < last.percentile),
                ("count", row.count < last.count),
            ]
            .into_iter()
            .find_map(|(name, falls)| falls.then_some(name))
        });
        if let Some(name) = falls {
            return Err(format!("the {name} is less than in the previous row"));
        }
        self.rows.push(row);
        Ok(())
    }
}

/// Why the last table is not whole: text that was cut has lost its first or its last rows.
fn whole(printed: &Printed) -> Result<(), String> {
    let Some(table) = printed.tables.last() else {
        return Ok(());
    };
    let (Some(first), Some(last)) = (table.rows.first(), table.rows.last()) else {
        return Err("the table has no rows".to_owned());
    };
    // Of no value one row is printed.
    if first.percentile > 0.0 && last.count > 0 {
        return Err(format!(
            "the table begins at percentile {}, not at 0",
            first.percentile
        ));
    }
    if last.percentile < 1.0 {
        return Err(format!(
            "the table ends at percentile {}, not at 1",
            last.percentile
        ));
    }
    Ok(())
}

/// Some printers leave the last column out where it is infinite.
fn row(line: &str) -> Option<Row> {
    let mut words = line.split_whitespace();
    let value: f64 = words.next()?.parse().ok()?;
    let percentile: f64 = words.next()?.parse().ok()?;
    let count = words.next()?.parse().ok()?;
    let inverse = words.next().map(str::parse::<f64>).transpose();
    let is_row = value.is_finite()
        && value >= 0.0
        && (0.0..=1.0).contains(&percentile)
        && inverse.is_ok()
        && words.next().is_none();
    is_row.then_some(Row {
        value,
        percentile,
        count,
    })
}

/// `#[Max = 11.312, Total count = 39500]`
fn total_count(line: &str) -> Option<u64> {
    let (_, behind) = line.split_once("Total count")?;
    let number = behind.trim_start().strip_prefix('=')?.trim_start();
    let (number, _) = number.split_once(']')?;
    number.trim_end().parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As wrk2 prints it, with few rows.
    const WRK2: &str = "\
Running 30s test @ http://127.0.0.1:80/index.html
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     6.60ms    1.92ms  12.50ms   68.46%
  Latency Distribution (HdrHistogram - Recorded Latency)
 50.000%    6.67ms
100.000%   12.50ms

  Detailed Percentile spectrum:
       Value   Percentile   TotalCount 1/(1-Percentile)

       0.921     0.000000            1         1.00
       6.671     0.500000        19783         2.00
      12.503     1.000000        39500          inf
#[Mean    =        6.602, StdDeviation   =        1.919]
#[Max     =       12.496, Total count    =        39500]
#[Buckets =           27, SubBuckets     =         2048]
----------------------------------------------------------
  60018 requests in 30.00s, 19.81MB read
Requests/sec:   2000.28
Transfer/sec:    676.18KB
";

    #[test]
    fn the_table_of_wrk2_is_read_from_its_whole_output() {
        let printed = parse(WRK2).unwrap();
        assert_eq!(printed.per_s, Some(2000.28));
        let [table] = &printed.tables[..] else {
            panic!("{printed:?}")
        };
        assert!(table.in_ms && !table.uncorrected);
        assert_eq!(table.total(), 39_500);
        assert_eq!(table.rows.len(), 3);
        assert!((table.rows[1].value - 6.671).abs() < 1e-9);
    }

    #[test]
    fn a_second_table_of_wrk2_is_distinguished_from_the_first() {
        let uncorrected = WRK2.replace(
            "HdrHistogram - Recorded Latency",
            "HdrHistogram - Uncorrected Latency (measured without taking delayed starts into account)",
        );
        let printed = parse(&(WRK2.to_owned() + &uncorrected)).unwrap();
        let second: Vec<_> = printed
            .tables
            .iter()
            .map(|table| table.uncorrected)
            .collect();
        assert_eq!(second, [false, true]);
    }

    #[test]
    fn a_table_alone_as_java_prints_it_has_no_unit_and_no_last_inverse() {
        let text = "       Value     Percentile TotalCount 1/(1-Percentile)\n\n\
                    \x20    100.000 0.000000000000          1           1.00\n\
                    \x20    500.000 1.000000000000          5\n";
        let printed = parse(text).unwrap();
        assert_eq!((printed.tables.len(), printed.per_s), (1, None));
        assert!(!printed.tables[0].in_ms);
        assert_eq!(printed.tables[0].total(), 5);
    }

    #[test]
    fn the_head_of_vegeta_tells_the_unit() {
        let text = "Value(ms)  Percentile  TotalCount  1/(1-Percentile)\n\
                    0.076715   0.000000    0           1.000000\n\
                    0.513059   0.500000    999         2.000000\n\
                    2.125017   1.000000    1998        10000000.000000\n";
        let printed = parse(text).unwrap();
        assert!(printed.tables[0].in_ms);
        assert_eq!(printed.tables[0].total(), 1998);
    }

    #[test]
    fn a_load_without_a_reply_counts_nothing() {
        let head = "Value Percentile TotalCount 1/(1-Percentile)\n";
        let printed = parse(&(head.to_owned() + "0.000 1.000000 0 inf\n#[Mean = -nan]\n")).unwrap();
        assert_eq!(printed.tables[0].total(), 0);
    }

    #[test]
    fn what_was_cut_or_changed_is_reported_with_its_line() {
        for (from, to, line, why) in [
            ("       6.671", "       0.671", 12, "the value is less than"),
            (
                "1.000000        39500",
                "0.400000        39500",
                13,
                "the percentile is less than",
            ),
            ("19783", "39783", 13, "the count is less than"),
            (
                "       0.921     0.000000            1         1.00\n",
                "",
                13,
                "begins at percentile 0.5",
            ),
            (
                "      12.503     1.000000        39500          inf\n",
                "",
                13,
                "ends at percentile 0.5",
            ),
            (
                "count    =        39500",
                "count    =        39501",
                15,
                "but the line below says 39501",
            ),
        ] {
            let text = WRK2.replacen(from, to, 1);
            assert_ne!(text, WRK2, "{from}");
            let broken = parse(&text).unwrap_err();
            assert!(broken.why.contains(why), "{broken}");
            assert_eq!(broken.line, line, "{broken}");
        }
        let header =
            WRK2.find("Value").unwrap() + "Value   Percentile   TotalCount 1/(1-Percentile)".len();
        assert_eq!(
            parse(&WRK2[..header]).unwrap_err().why,
            "the table has no rows"
        );
        assert!(!looks_like("latency 12 ms") && looks_like(WRK2));
    }

    #[test]
    fn a_table_without_an_end_is_refused_before_it_fills_the_memory() {
        let mut text = format!("{VALUE} {}", HEADER.join(" "));
        for _ in 0..=MOST_ROWS {
            text += "\n1 0.5 7 2";
        }
        let broken = parse(&text).unwrap_err();
        assert!(broken.why.contains("more than 65536 rows"), "{broken}");
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(
            text in "(Value Percentile TotalCount 1/\\(1-Percentile\\)\n|Total count = |Requests/sec: |[0-9.]{1,4} |inf|\\]|\n|.){0,40}"
        ) {
            let _ = parse(&text);
        }
    }
}
