//! Exports: golden texts, and the promise that nothing is left out in silence.

use std::fmt::Write as _;

use rungwise_knobs::export::{Export, Form, export};
use rungwise_knobs::{Place, Plan, Settable};

use crate::memory::Machines;
use crate::plans::WISHES;

/// A bit of everything, as a person would keep it after a ladder.
const KEPT: &[(&str, &str)] = &[
    ("net.somaxconn", "8192"),
    ("tcp.rmem", "max=16MiB"),
    ("net.rp_filter", "0"),
    ("mem.dirty", "limit=512MiB"),
    ("mem.thp", "madvise"),
    ("cpu.governor", "performance"),
    ("disk.scheduler", "none"),
    ("disk.nr_requests", "512"),
    ("net.gro", "on"),
    ("net.rps_cpus", "0-1"),
    ("net.queues", "1"),
    ("net.ring", "rx=4096"),
    ("net.coalesce", "adaptive-rx=off,rx-usecs=10"),
    ("net.rss_table", "equal 2"),
    ("net.rss_hash_fields", "udp4=sdfn"),
    ("net.irq_affinity", "spread"),
    ("net.default_qdisc", "fq"),
    ("cpu.dma_latency", "100us"),
    ("disk.mount_noatime", "noatime"),
    ("net.irqbalance_stop", "stop"),
    ("cpu.cfs_quota", "2.5"),
    ("virt.container_cpuset", "0"),
    ("cpu.pin_threads", "4242:0"),
    ("sock.reuseport", "on"),
    ("cmdline.audit", "off"),
    ("cmdline.isolation", "2-3"),
    ("sec.auditd", "off"),
    ("virt.vcpu_pin", "8-9"),
];

fn kept() -> Vec<Plan> {
    let machines = Machines::new();
    KEPT.iter()
        .map(|(id, wish)| machines.plan_host(id, wish))
        .collect()
}

fn told(export: &Export) -> String {
    let mut text = String::new();
    for file in &export.files {
        let _ = write!(text, "==> {} <==\n{}\n", file.path, file.text);
    }
    for left in &export.left_out {
        let _ = write!(text, "left out: {}\n    {}\n", left.what, left.why);
    }
    text
}

#[test]
fn each_form_has_its_words() {
    for form in Form::ALL {
        insta::assert_snapshot!(
            format!("export-{}", form.name()),
            told(&export(form, &kept()).unwrap())
        );
    }
}

#[test]
fn nothing_is_left_out_in_silence() {
    let machines = Machines::new();
    for (id, wish) in WISHES {
        // Planted in a lab only.
        if *id == "net.iptables_unload" {
            continue;
        }
        let plan = machines.plan_host(id, wish);
        for form in Form::ALL {
            let export = export(form, std::slice::from_ref(&plan)).unwrap();
            let said = told(&export);
            assert!(said.contains(id), "{id} as {}: {said}", form.name());
            let carried = !export.files.is_empty();
            let left = export.left_out.iter().all(|left| left.what.contains(id));
            assert!(carried || !export.left_out.is_empty(), "{id}");
            assert!(left, "{id}: {said}");
        }
    }
    for knob in rungwise_knobs::KNOBS
        .iter()
        .filter(|knob| knob.settable != Settable::Yes)
    {
        for manual in knob.by_hand {
            let wish = manual
                .wish
                .replace("CPUS", "2-3")
                .replace("NUMBER", "4")
                .replace("FLAGS", "-XX:+CMSScavengeBeforeRemark")
                .replace("PATH", "/srv/dump");
            let plan = machines.plan_host(knob.id, &wish);
            for form in Form::ALL {
                let export = export(form, std::slice::from_ref(&plan)).unwrap();
                assert!(
                    !export.files.is_empty() || !export.left_out.is_empty(),
                    "{} as {}",
                    knob.id,
                    form.name()
                );
            }
        }
    }
}

#[test]
fn what_belongs_to_a_lab_is_left_out_and_the_last_plan_wins() {
    let machines = Machines::new();
    let lab = machines.plan("net.somaxconn", "8192");
    assert_ne!(lab.edits[0].place, Place::Host);
    let first = machines.plan_host("net.somaxconn", "1024");
    let last = machines.plan_host("net.somaxconn", "2048");
    let export = export(Form::SysctlD, &[lab, first, last]).unwrap();
    let text = &export.files[0].text;
    assert!(
        text.contains("net.core.somaxconn = 2048") && !text.contains("1024"),
        "{text}"
    );
    assert_eq!(export.left_out.len(), 1);
    assert!(export.left_out[0].why.contains("lab"), "{export:?}");
}

#[test]
fn a_plan_of_somebody_else_cannot_smuggle_a_line_into_a_file() {
    let machines = Machines::new();
    let mut plan = machines.plan_host("net.somaxconn", "8192");
    plan.wish = "8192\nkernel.core_pattern = |/tmp/x\n#".to_owned();
    for form in Form::ALL {
        let said = told(&export(form, std::slice::from_ref(&plan)).unwrap());
        assert!(
            said.lines()
                .all(|line| !line.trim_start().starts_with("kernel.core_pattern")),
            "{said}"
        );
    }
    let mut forged = machines.plan_host("cmdline.audit", "off");
    if let rungwise_knobs::Edit::ByHand { text, .. } = &mut forged.edits[0].edit {
        text.push_str(" init=/bin/sh");
    }
    assert!(export(Form::Cmdline, &[forged]).is_err());
}
