//! Tables of counters with one column per CPU: `/proc/interrupts` and `/proc/softirqs`.
//!
//! Only the header shows which CPUs the columns are: `/proc/interrupts` leaves out those that are offline,
//! `/proc/softirqs` shows those that could ever be there. Source: kernel/irq/proc.c (`show_interrupts`) and
//! fs/proc/softirqs.c, Linux 6.18.

/// One row: the label before the colon, a count per CPU, and the words after the counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row<'a> {
    pub(crate) tag: &'a str,
    pub(crate) counts: Vec<u64>,
    pub(crate) words: &'a str,
}

/// CPUs of the header, and the rows that have a count for each of them.
///
/// Rows with fewer counts (`ERR:`, `MIS:`) count for the machine as a whole and are left out. `None` if
/// there is no header.
pub(crate) fn parse(text: &str) -> Option<(Vec<usize>, Vec<Row<'_>>)> {
    let (header, body) = text.split_once('\n')?;
    let cpus = header
        .split_ascii_whitespace()
        .map(|word| word.strip_prefix("CPU")?.parse().ok())
        .collect::<Option<Vec<usize>>>()?;
    if cpus.is_empty() {
        return None;
    }
    let rows = body.lines().filter_map(|line| row(line, cpus.len()));
    let rows = rows.collect();
    Some((cpus, rows))
}

fn row(line: &str, cpus: usize) -> Option<Row<'_>> {
    let (tag, mut words) = line.split_once(':')?;
    let mut counts = Vec::with_capacity(cpus);
    while counts.len() < cpus {
        words = words.trim_ascii_start();
        let end = words.find(' ').unwrap_or(words.len());
        counts.push(words[..end].parse().ok()?);
        words = &words[end..];
    }
    Some(Row {
        tag: tag.trim(),
        counts,
        words: words.trim(),
    })
}
