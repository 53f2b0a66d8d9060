//! Every parser of a text of the kernel, by the name of its module in `rungwise_formats`.
//!
//! One list: a text is given to all of them, since none may panic on a text that is another file's.

use std::hint::black_box;

use rungwise_formats::{
    cgroup, choice, cpuinfo, cpulist, diskstats, fields, flat, folded, heap_info, hsperfdata,
    interrupts, kallsyms, limits, loadavg, net_dev, numa_maps, per_cpu, percentiles, postgres,
    pressure, queue_counter, schedstat, smbios, snmp, softirqs, softnet, stat, syscall, task,
    thread_allocation, tlab_totals, tracepoint, vm_log,
};

/// A module, and what is done with a text.
type Parser = (&'static str, fn(&str));

/// Sorted by name; a module without an entry fails a test.
pub(crate) static PARSERS: &[Parser] = &[
    ("cgroup", |text| {
        black_box(cgroup::membership(text, "cpu"));
        black_box(cgroup::cpu_max(text));
        black_box(cgroup::limit(text));
        black_box(cgroup::trees(text));
        let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
        black_box(cgroup::cfs_quota(first, rest));
    }),
    ("choice", |text| {
        black_box(choice::selected(text));
    }),
    ("cpuinfo", |text| {
        black_box(cpuinfo::parse(text));
    }),
    ("cpulist", |text| {
        for cpus in [cpulist::parse(text), cpulist::parse_mask(text)] {
            let Some(cpus) = cpus else { continue };
            let written = cpulist::format(&cpus);
            assert_eq!(cpulist::parse(&written), Some(cpus), "{written}");
        }
    }),
    ("diskstats", |text| {
        black_box(diskstats::parse(text));
    }),
    ("fields", |text| {
        black_box(fields::number(text, "MemTotal"));
    }),
    ("flat", |text| {
        black_box(flat::parse(text));
    }),
    ("folded", |text| {
        let (stacks, _) = folded::parse(text);
        let (again, refused) = folded::parse(&folded::write(&stacks));
        assert_eq!((again, refused), (stacks, 0));
    }),
    ("heap_info", |text| {
        black_box(heap_info::parse(text));
    }),
    ("hsperfdata", |text| {
        black_box(hsperfdata::texts(text.as_bytes()));
        black_box(hsperfdata::numbers(text.as_bytes()));
    }),
    ("interrupts", |text| {
        let Some(table) = interrupts::parse(text) else {
            return;
        };
        for row in &table.rows {
            assert_eq!(row.counts.len(), table.cpus.len(), "{}", row.tag);
        }
    }),
    ("kallsyms", |text| {
        let mut names = kallsyms::Names::for_addresses([u64::MAX / 2]);
        // A text in memory can always be read.
        let _ = names.read(text.as_bytes());
        black_box(names.function(u64::MAX / 2));
        let _ = kallsyms::judge(text.as_bytes());
    }),
    ("limits", |text| {
        black_box(limits::parse(text).count());
    }),
    ("loadavg", |text| {
        black_box(loadavg::parse(text));
    }),
    ("net_dev", |text| {
        black_box(net_dev::parse(text));
    }),
    ("numa_maps", |text| {
        black_box(numa_maps::own_bytes(text));
    }),
    ("per_cpu", |text| {
        black_box(per_cpu::sums(text, 16));
        black_box(per_cpu::sums(text, 10));
    }),
    ("percentiles", |text| {
        let Ok(printed) = percentiles::parse(text) else {
            return;
        };
        for table in &printed.tables {
            let all = |row: &percentiles::Row| row.count <= table.total();
            assert!(table.rows.iter().all(all), "{table:?}");
        }
    }),
    ("postgres", |text| {
        black_box(postgres::activity(text));
    }),
    ("pressure", |text| {
        black_box(pressure::parse(text));
    }),
    ("queue_counter", |text| {
        black_box(queue_counter::parse(text));
    }),
    ("schedstat", |text| {
        black_box(schedstat::parse(text));
    }),
    ("smbios", |text| {
        if let Some(slots) = smbios::slots(text) {
            black_box(smbios::channels(&slots));
            let masked = smbios::without_identity(text).and_then(|text| smbios::slots(&text));
            assert_eq!(masked, Some(slots));
        }
    }),
    ("snmp", |text| {
        black_box(snmp::parse(text));
        black_box(snmp::parse6(text));
        black_box(snmp::parse_sockstat(text));
    }),
    ("softirqs", |text| {
        black_box(softirqs::parse(text, "NET_RX"));
    }),
    ("softnet", |text| {
        black_box(softnet::parse(text));
    }),
    ("stat", |text| {
        black_box(stat::parse(text));
    }),
    ("syscall", |text| {
        black_box(syscall::futex_wait(text));
        black_box(syscall::polls_one(text));
    }),
    ("task", |text| {
        black_box(task::stat(text));
        black_box(task::schedstat(text));
    }),
    ("thread_allocation", |text| {
        black_box(thread_allocation::parse(text));
    }),
    ("tlab_totals", |text| {
        black_box(tlab_totals::parse(text));
    }),
    ("tracepoint", |text| {
        let Some(format) = tracepoint::Format::parse(text) else {
            return;
        };
        black_box(format.names("reason"));
        if let Some(field) = format.field("reason") {
            black_box(field.value(text.as_bytes()));
        }
    }),
    ("vm_log", |text| {
        for output in vm_log::outputs(text) {
            black_box(output.has(&["gc", "tlab"], "debug"));
            black_box(output.is_at(text));
        }
    }),
];

/// A text that claims to be the kernel's. Bytes that are not UTF-8 are replaced, as the gatherer does it.
pub fn kernel_texts(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for (_, parse) in PARSERS {
        parse(&text);
    }
}
