//! CPUs, interrupts, soft interrupts, NUMA, the kernel and what lies below it: golden evidence of one recorded and
//! two machines in texts, and what they show.

use rungwise_model::evidence::{Evidence, Key, Kind, Subject};
use rungwise_model::keys;

use crate::story;

const ALL: &[&str] = &[
    "irq-balancer",
    "kernel",
    "ksoftirqd",
    "numa",
    "proc-interrupts",
    "proc-softirqs",
    "proc-stat",
    "sys-cpu",
    "sys-cpufreq",
    "sys-cpuidle",
    "virtualisation",
];

const GUEST: &str = include_str!("hosts/guest-2cpu.txt");
const LADDER: &str = include_str!("../../../../cases/two-node-82599/cpus.txt");
const KUNPENG: &str = include_str!("../../../../cases/kunpeng-guest/cpus.txt");

fn evidence(text: &str) -> Evidence {
    story::derive(&story::capture(text, None), ALL)
}

fn number(evidence: &Evidence, key: &'static Key, subject: &Subject) -> f64 {
    evidence.quantity(key, subject).expect("a number").value
}

fn words<'a>(evidence: &'a Evidence, key: &'static Key, subject: &Subject) -> &'a str {
    evidence.words(key, subject).expect("words").value
}

#[test]
fn a_guest_with_two_cpus() {
    insta::assert_snapshot!("guest-2cpu", story::list(&evidence(GUEST)));
}

#[test]
fn a_server_that_receives_on_one_of_its_nodes() {
    let evidence = evidence(LADDER);
    insta::assert_snapshot!("ladder-82599", story::list(&evidence));

    let (node0, node1) = (Subject::node(0), Subject::node(1));
    assert!(number(&evidence, &keys::SOFTIRQ_NET_RX_NODE_SHARE, &node0) > 0.999);
    assert!(number(&evidence, &keys::SOFTIRQ_NODE_TIME, &node0) > 0.85);
    assert!(number(&evidence, &keys::SOFTIRQ_NODE_TIME, &node1) < 0.001);
    let last_queue = Subject::new(Kind::Irq, 94);
    assert_eq!(words(&evidence, &keys::IRQ_DEVICE, &last_queue), "ens1f0");
    assert_eq!(words(&evidence, &keys::IRQ_HINT, &last_queue), "19");
    assert_eq!(
        words(&evidence, &keys::IRQ_AFFINITY, &last_queue),
        "0-4,10-14"
    );
    assert_eq!(
        words(&evidence, &keys::IRQ_BALANCER, &Subject::host()),
        "irqbalance"
    );
    assert_eq!(
        words(&evidence, &keys::VIRT_HYPERVISOR, &Subject::host()),
        ""
    );
    // Linux 4.6 does not know where an interrupt really goes, and a device that is down has no interrupts.
    assert!(evidence.each_words(&keys::IRQ_EFFECTIVE).is_err());
    assert_eq!(evidence.each(&keys::IRQ_UNMATCHED).unwrap().len(), 1);
    // It does not account for hard interrupts either: zero since boot is unknown, not zero.
    assert!(evidence.each(&keys::CPU_IRQ).is_err());
}

#[test]
fn an_arm_guest_that_receives_on_one_cpu() {
    let evidence = evidence(KUNPENG);
    insta::assert_snapshot!("kunpeng-guest", story::list(&evidence));

    let busiest = Subject::cpu(2);
    assert!(number(&evidence, &keys::SOFTIRQ_NET_RX_SHARE, &busiest) > 0.9);
    let receive = Subject::new(Kind::Irq, 54);
    assert_eq!(words(&evidence, &keys::IRQ_DEVICE, &receive), "eth0");
    assert_eq!(words(&evidence, &keys::IRQ_EFFECTIVE, &receive), "2");
    assert!(number(&evidence, &keys::IPI_CALL, &Subject::host()) > 3000.0);
    let below = words(&evidence, &keys::VIRT_HYPERVISOR, &Subject::host());
    assert!(below.contains("OpenStack"), "{below}");
}

#[test]
fn one_sample_gives_settings_and_no_rates() {
    let mut capture = story::capture(LADDER, None);
    capture.moments.drain(..2);
    let evidence = story::derive(&capture, ALL);
    assert!(evidence.each_words(&keys::IRQ_AFFINITY).is_ok());
    assert!(evidence.host(&keys::NUMA_NODES).is_ok());
    for key in [
        &keys::CPU_BUSY,
        &keys::CPU_QUIET_VARIATION,
        &keys::SOFTIRQ_NET_RX_SHARE,
        &keys::SOFTIRQ_KSOFTIRQD,
        &keys::IRQ_RATE,
        &keys::IRQ_BUSIEST_CPU,
        &keys::IPI_CALL,
        &keys::CPU_DEEP_IDLE,
        &keys::NUMA_OTHER_SHARE,
        &keys::NUMA_HINT_FAULTS,
    ] {
        let reason = evidence.each(key).unwrap_err().why.reason;
        assert!(reason.contains("a rate needs two"), "{}: {reason}", key.id);
    }
}

#[test]
fn an_interrupt_that_nobody_names_leaves_its_device_unmatched() {
    let hidden = KUNPENG.replace("virtio1-", "net-");
    let evidence = evidence(&hidden);
    let device = Subject::device("eth0");
    assert!((number(&evidence, &keys::IRQ_UNMATCHED, &device) - 1.0).abs() < f64::EPSILON);
    assert!(evidence.each_words(&keys::IRQ_DEVICE).is_err());
    assert!(evidence.host(&keys::SOFTIRQ_NET_RX_PER_IRQ).is_err());
}

#[test]
fn a_container_claims_nothing_of_processes_it_cannot_see() {
    let inside = KUNPENG.replace("(kthreadd)", "(java)");
    let missing = evidence(&inside)
        .words(&keys::IRQ_BALANCER, &Subject::host())
        .unwrap_err();
    assert!(missing.why.reason.contains("cannot be seen"));
}

#[test]
fn a_cpu_that_went_offline_takes_its_counts_with_it() {
    // The last sample of a machine whose CPU 0 is gone: the header names CPU 1 alone.
    let text = "\
@ 0.0 /proc/interrupts
           CPU0       CPU1       
 24:        100        200  PCI-MSI 1-edge      eth0
@ 0.0 /proc/stat
cpu0 1 0 0 100 0 0 0 0 0 0
cpu1 1 0 0 100 0 0 0 0 0 0
ctxt 1
@ 10.0 /proc/interrupts
           CPU1       
 24:        500  PCI-MSI 1-edge      eth0
@ 10.0 /proc/stat
cpu1 501 0 0 600 0 0 0 0 0 0
ctxt 1001
";
    let evidence = evidence(text);
    let irq = Subject::new(Kind::Irq, 24);
    assert_eq!(words(&evidence, &keys::IRQ_NAME, &irq), "eth0");
    let missing = evidence.quantity(&keys::IRQ_RATE, &irq).unwrap_err();
    assert!(missing.why.reason.contains("came or went"));
    let busy = evidence.each(&keys::CPU_BUSY).unwrap();
    assert_eq!(busy.len(), 1);
    assert!((busy[0].1.value - 0.5).abs() < f64::EPSILON);
}
