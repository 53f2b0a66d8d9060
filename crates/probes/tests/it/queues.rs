//! Queues of devices and disks: which CPUs and receive queues send through each, how many hardware queues there are.

use rungwise_model::evidence::{Evidence, Kind, Subject};
use rungwise_model::keys;

use crate::story;

fn evidence(text: &str, probe: &str) -> Evidence {
    story::derive(&story::capture(text, None), &[probe])
}

#[test]
fn each_transmit_queue_tells_the_cpus_and_receive_queues_that_use_it() {
    let text = "\
@ 10 /sys/class/net/eth0/queues/rx-0/rps_cpus
0
@ 10 /sys/class/net/eth0/queues/tx-0/xps_cpus
00000000,00000005
@ 10 /sys/class/net/eth0/queues/tx-1/xps_cpus
0
@ 10 /sys/class/net/eth0/queues/tx-0/xps_rxqs
0
@ 10 /sys/class/net/eth0/queues/tx-1/xps_rxqs
6
";
    let evidence = evidence(text, "queue-steering");
    let words = |key, queue: &str| {
        let subject = Subject::new(Kind::Queue, queue);
        evidence.words(key, &subject).unwrap().value
    };
    assert_eq!(words(&keys::XPS_MASK, "eth0:tx-0"), "0,2");
    assert_eq!(words(&keys::XPS_MASK, "eth0:tx-1"), "");
    assert_eq!(words(&keys::XPS_RXQS, "eth0:tx-0"), "");
    assert_eq!(words(&keys::XPS_RXQS, "eth0:tx-1"), "1-2");
    let all = evidence.quantity(&keys::XPS_CPUS, &Subject::device("eth0"));
    assert!((all.unwrap().value - 2.0).abs() < 1e-9);
}

#[test]
fn a_device_with_a_single_transmit_queue_has_no_xps_and_says_so() {
    // The file is listed, and reading it is refused; the gatherer leaves out what is gone.
    let text = "\
@ 10 /sys/class/net/eth0/queues/rx-0/rps_cpus
0
@ 10 /sys/class/net/eth0/queues/tx-0/tx_timeout
0
";
    let evidence = evidence(text, "queue-steering");
    for key in [&keys::XPS_MASK, &keys::XPS_RXQS] {
        let missing = evidence.missing(key, &Subject::host());
        assert!(!missing.why.reason.is_empty(), "{}", key.id);
    }
}

#[test]
fn hardware_queues_of_a_disk_are_counted_and_one_without_any_says_so() {
    let text = "\
@ 10 /sys/block/nvme0n1/queue/scheduler
[none] mq-deadline
@ 10 /sys/block/dm-0/queue/scheduler
none
@ 10 /sys/block/nvme0n1/mq/{0-3}/nr_tags
63
@ 10 /proc/diskstats
 259 0 nvme0n1 5 0 40 9 0 0 0 0 0 9 9
 253 0 dm-0 5 0 40 9 0 0 0 0 0 9 9
";
    let evidence = evidence(text, "sys-block-queue");
    let queues = |disk| {
        let subject = Subject::new(Kind::Disk, disk);
        evidence.quantity(&keys::DISK_HARDWARE_QUEUES, &subject)
    };
    let nvme = queues("nvme0n1").unwrap();
    assert!((nvme.value - 4.0).abs() < 1e-9);
    assert_eq!(nvme.reading.origin.line, "4 folders, nr_tags 63");
    let none = queues("dm-0").unwrap_err();
    assert!(none.why.reason.contains("no hardware queues"));
}
