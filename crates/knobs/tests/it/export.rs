//! Exports: golden texts, and the promise that nothing is left out in silence.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rungwise_knobs::export::{Export, Form, export};
use rungwise_knobs::{Edit, Place, Plan, Settable};

use crate::memory::{Machines, an_example};
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
    ("sec.audit_rules", "uid=998"),
    ("cpu.cfs_quota", "2.5"),
    ("virt.container_cpuset", "0"),
    ("cpu.pin_threads", "4242:0"),
    ("sock.reuseport", "on"),
    ("cmdline.audit", "off"),
    ("cmdline.isolation", "2-3"),
    ("sec.auditd", "off"),
    ("virt.vcpu_pin", "keep:8-9"),
];

fn kept() -> Vec<Plan> {
    let machines = Machines::new();
    KEPT.iter()
        .map(|(id, wish)| machines.plan_host(id, wish))
        .collect()
}

fn rendered(export: &Export) -> String {
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
            rendered(&export(form, &kept()).unwrap())
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
            let said = rendered(&export);
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
            let wish = an_example(manual.wish);
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
        let said = rendered(&export(form, std::slice::from_ref(&plan)).unwrap());
        assert!(
            said.lines()
                .all(|line| !line.trim_start().starts_with("kernel.core_pattern")),
            "{said}"
        );
    }
    let mut forged = machines.plan_host("cmdline.audit", "off");
    if let Edit::ByHand { text, .. } = &mut forged.edits[0].edit {
        text.push_str(" init=/bin/sh");
    }
    assert!(export(Form::Cmdline, &[forged]).is_err());
}

/// The files of a form as they would lie on a machine, below a folder.
fn installed(form: Form, plans: &[Plan]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in export(form, plans).unwrap().files {
        let path = below(folder.path(), &file.path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, file.text).unwrap();
    }
    folder
}

fn below(folder: &Path, path: &str) -> PathBuf {
    folder.join(path.trim_start_matches('/'))
}

/// What a tool says of our files; it ends well.
fn said_by(command: &mut Command) -> String {
    let ended = command.output().unwrap_or_else(|error| {
        panic!("cannot run {command:?}: {error}; cargo xtask test installs it")
    });
    let said = [ended.stdout, ended.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(ended.status.success(), "{command:?}: {said}");
    said
}

#[test]
fn systemd_takes_the_units() {
    let folder = installed(Form::Systemd, &kept());
    let units = below(folder.path(), "/etc/systemd/system");
    // The unit of which the drop-in is, and the programs that the steps name, wherever they are here.
    std::fs::write(units.join("app.service"), "[Service]\nExecStart=/bin/sh\n").unwrap();
    let knobs = units.join("rungwise-knobs.service");
    let text = std::fs::read_to_string(&knobs).unwrap();
    let text = ["/usr/sbin/ethtool ", "/usr/sbin/tc "]
        .iter()
        .fold(text, |text, program| text.replace(program, "/bin/echo "));
    std::fs::write(&knobs, text).unwrap();
    for unit in [knobs, units.join("app.service")] {
        let mut verify = Command::new("systemd-analyze");
        let verify = verify.args(["verify", "--man=no"]).arg(unit);
        assert_eq!(said_by(verify), "");
    }
}

#[test]
fn ansible_takes_the_playbook_with_the_modules_of_its_core() {
    let folder = installed(Form::Ansible, &kept());
    let mut check = Command::new("ansible-playbook");
    check
        .args(["--syntax-check", "--inventory", "localhost,"])
        .arg(folder.path().join("rungwise.yml"))
        .env("HOME", folder.path())
        .env("ANSIBLE_LOCALHOST_WARNING", "false")
        .env("ANSIBLE_COLLECTIONS_PATH", folder.path());
    let said = said_by(&mut check);
    for trouble in ["WARN", "ERROR"] {
        assert!(!said.contains(trouble), "{said}");
    }
}

#[test]
fn the_words_for_grub_are_added_to_those_that_are_there() {
    let folder = installed(Form::Cmdline, &kept());
    let file = below(folder.path(), "/etc/default/grub.d/90-rungwise.cfg");
    let mut shell = Command::new("sh");
    let sourced = "set -eu; GRUB_CMDLINE_LINUX=quiet; . \"$0\"; printf %s \"$GRUB_CMDLINE_LINUX\"";
    let words = said_by(shell.args(["-c", sourced]).arg(file));
    assert!(words.starts_with("quiet isolcpus="), "{words}");
    assert!(words.ends_with(" audit=0"), "{words}");
}

#[test]
fn a_playbook_names_the_tool_of_each_distribution_and_fails_where_none_is_known() {
    let export = export(Form::Ansible, &kept()).unwrap();
    let tasks: Vec<&str> = export.files[0].text.split("    - name: ").collect();
    let when = |words: &str| {
        let mut found = tasks.iter().filter(|task| task.contains(words));
        let task = found.next().expect(words);
        assert!(found.next().is_none(), "{words}");
        let when = task
            .lines()
            .find_map(|line| line.trim().strip_prefix("when: "));
        when.unwrap_or_default().to_owned()
    };
    let family = "ansible_facts[\"os_family\"]";
    assert_eq!(when("\"update-grub\""), format!("{family} == \"Debian\""));
    assert_eq!(when("- \"grubby\""), format!("{family} == \"RedHat\""));
    let none = format!("{family} not in [\"Debian\", \"RedHat\"]");
    assert_eq!(when("ansible.builtin.fail"), none);
    assert_eq!(when("state: restarted"), "");
}

/// The export of one wish whose edit was moved to another path.
fn moved(form: Form, id: &str, wish: &str, from: &str, to: &str) -> Export {
    let mut plan = Machines::new().plan_host(id, wish);
    for planned in &mut plan.edits {
        if let Edit::WriteFile { path, .. } = &mut planned.edit {
            *path = path.replace(from, to);
        }
    }
    export(form, &[plan]).unwrap()
}

#[test]
fn a_dot_in_the_name_of_a_device_is_distinguished_from_one_between_names() {
    for form in [Form::SysctlD, Form::Tuned] {
        let export = moved(form, "net.rp_filter", "0", "veth0", "eth0.5");
        let text = &export.files[0].text;
        assert!(
            text.contains("\nnet.ipv4.conf.eth0/5.rp_filter = 0"),
            "{text}"
        );
    }
}

#[test]
fn tuned_gets_features_as_it_reads_them_from_ethtool() {
    let machines = Machines::new();
    let plans =
        [("net.gro", "off"), ("net.tso_gso", "off")].map(|(id, wish)| machines.plan_host(id, wish));
    let export = export(Form::Tuned, &plans).unwrap();
    let text = &export.files[0].text;
    assert!(text.contains("\nfeatures = gro off gso off\n"), "{text}");
    let left: Vec<&str> = export.left_out.iter().map(|left| &*left.what).collect();
    assert!(
        left.len() == 1 && left[0].contains("tx-tcp-segmentation"),
        "{left:?}"
    );
}

#[test]
fn a_quota_keeps_its_period_and_a_group_of_a_user_is_no_unit_of_the_system() {
    let plan = |value: &str| {
        let mut plan = Machines::new().plan_host("cpu.cfs_quota", "2.5");
        for planned in &mut plan.edits {
            if let Edit::WriteFile { value: held, .. } = &mut planned.edit {
                *held = value.to_owned();
            }
        }
        rendered(&export(Form::Systemd, &[plan]).unwrap())
    };
    let short = plan("1250 10000");
    assert!(
        short.contains("\nCPUQuota=12.5%\nCPUQuotaPeriodSec=10000us\n"),
        "{short}"
    );
    let whole = plan("250000 100000");
    assert!(whole.contains("\nCPUQuota=250%\n"), "{whole}");
    let (from, to) = ("/app.slice/", "/user.slice/user@1000.service/app.slice/");
    let export = moved(Form::Systemd, "cpu.cfs_quota", "2.5", from, to);
    assert!(export.files.is_empty(), "{export:?}");
    assert!(export.left_out[0].why.contains("--user"), "{export:?}");
}
