//! What each knob plans, and that it reads what it plans.

use rungwise_knobs::{KNOBS, Scope, Settable};

use crate::memory::{Machines, keeper, server};

/// A wish per knob that changes something on the invented machine.
pub(crate) const WISHES: &[(&str, &str)] = &[
    ("net.accept_local", "on"),
    ("net.gro", "on"),
    ("net.gro_list_fwd", "list"),
    ("net.iptables_unload", "loaded"),
    ("net.napi_defer", "2/20us"),
    ("net.netdev_budget", "600/16ms"),
    ("net.netdev_max_backlog", "5000"),
    ("net.rfs", "5000"),
    ("net.rmem_max", "max=16MiB,default=1MiB"),
    ("net.rp_filter", "0"),
    ("net.rps_cpus", "all"),
    ("net.threaded_napi", "on"),
    ("net.tso_gso", "off"),
    ("net.xps_cpus", "by-cpu"),
];

#[test]
fn every_knob_of_the_machine_has_a_wish_here() {
    for knob in KNOBS {
        let here = WISHES.iter().any(|(id, _)| *id == knob.id);
        let expected = knob.settable == Settable::Yes && knob.scope != Scope::Service;
        assert_eq!(here, expected, "{}", knob.id);
    }
}

#[test]
fn a_plan_changes_something_and_once_applied_it_holds_and_reads_as_wished() {
    for (id, wish) in WISHES {
        let machines = Machines::new();
        let start = machines.snapshot();
        let plan = machines.plan(id, wish);
        assert!(plan.changes(), "{id}");
        assert_eq!(
            machines.snapshot(),
            start,
            "planning {id} changed the machine"
        );
        let knob = rungwise_knobs::find(id).unwrap();
        for planned in &plan.edits {
            assert!(
                knob.may_write(&planned.place, &planned.edit),
                "{id}: {planned:?}"
            );
        }
        let places = machines.places();
        let disk = std::sync::Arc::default();
        let mut keeper = keeper(&disk);
        let applied = keeper.apply(&places, &plan).unwrap();
        assert!(!applied.changes.is_empty(), "{id}");
        assert_eq!(plan.verify(&places).unwrap(), [], "{id}");
        // Planned again there is nothing to do: what was wished for holds.
        assert!(!machines.plan(id, wish).changes(), "{id}");
        let undo = keeper.undo(&places, None);
        assert!(undo.complete(), "{id}: {}", undo.left_in_words());
        assert_eq!(machines.snapshot(), start, "{id}");
    }
}

#[test]
fn what_a_knob_reads_can_be_wished_for_and_changes_nothing() {
    let place = server();
    let machines = Machines::new();
    let context = rungwise_knobs::Context {
        machine: &*machines.host,
        here: &*machines.server,
        place: &place,
        device: Some(rungwise_testkit::DEVICE),
        cpus: &[0, 1],
    };
    for (id, _) in WISHES.iter().filter(|(id, _)| *id != "net.iptables_unload") {
        let current = rungwise_knobs::find(id).unwrap().current(&context).unwrap();
        let value = current.value.unwrap();
        assert!(!machines.plan(id, &value).changes(), "{id} = {value}");
    }
}

#[test]
fn a_plan_shows_what_it_replaces() {
    let machines = Machines::new();
    let diff = machines.plan("net.rfs", "5000").diff();
    let expected = "\
net.rfs = 5000
  /proc/sys/net/core/rps_sock_flow_entries
    - 0
    + 5000
  namespace server: /sys/class/net/veth0/queues/rx-0/rps_flow_cnt
    - 0
    + 2500
  namespace server: /sys/class/net/veth0/queues/rx-1/rps_flow_cnt
    - 0
    + 2500
  note: flows that nobody has read yet go where net.rps_cpus sends them
";
    assert_eq!(diff, expected);
}

#[test]
fn a_plan_survives_being_stored() {
    let plan = Machines::new().plan("net.rp_filter", "0");
    let json = serde_json::to_string(&plan).unwrap();
    assert_eq!(
        serde_json::from_str::<rungwise_knobs::Plan>(&json).unwrap(),
        plan
    );
}

#[test]
fn only_what_gives_way_is_written_to_all_devices() {
    let machines = Machines::new();
    let targets = |wish| -> Vec<String> {
        let plan = machines.plan("net.rp_filter", wish);
        plan.edits
            .iter()
            .map(|planned| planned.edit.target())
            .collect()
    };
    assert_eq!(targets("2"), ["/proc/sys/net/ipv4/conf/veth0/rp_filter"]);
    assert_eq!(targets("0").len(), 2);
}

#[test]
fn the_hosts_firewall_is_shown_and_never_planned_away() {
    let machines = Machines::new();
    let context = rungwise_knobs::Context::of_host(&*machines.host, None, &[0, 1]);
    let knob = rungwise_knobs::find("net.iptables_unload").unwrap();
    assert_eq!(
        knob.current(&context).unwrap().value.as_deref(),
        Ok("loaded")
    );
    let error = knob.plan(&context, "absent").unwrap_err();
    assert!(
        error.to_string().contains("belong to its firewall"),
        "{error}"
    );
    assert_eq!(u8::from(error.exit()), 4);
}

#[test]
fn a_shown_knob_says_why_it_is_not_turned_and_keeps_secrets_of_the_command_line() {
    let machines = Machines::new();
    let context = rungwise_knobs::Context::of_host(&*machines.host, None, &[0, 1]);
    let audit = rungwise_knobs::find("sec.auditd").unwrap();
    let current = audit.current(&context).unwrap();
    assert_eq!(current.value.as_deref(), Ok("audit=0"));
    assert!(!format!("{current:?}").contains("hunter2"));
    assert!(
        audit
            .plan(&context, "off")
            .unwrap_err()
            .to_string()
            .contains("next boot")
    );
}

#[test]
fn a_device_that_sysfs_does_not_show_is_told_apart_from_one_that_is_not_there() {
    let machines = Machines::new();
    machines.host.remove("/sys/class/net/veth0/ifindex");
    let sees = |machines: &Machines| {
        let context = rungwise_knobs::Context::of_host(&*machines.host, Some("veth0"), &[0, 1]);
        let knob = rungwise_knobs::find("net.gro").unwrap();
        knob.plan(&context, "on").map_err(|error| error.to_string())
    };
    assert!(sees(&machines).is_ok());
    for path in machines.host.snapshot().keys() {
        if path.starts_with("/sys/class/net/") {
            machines.host.remove(path);
        }
    }
    let error = sees(&machines).unwrap_err();
    assert!(error.contains("another network namespace"), "{error}");
}

#[test]
fn a_missing_device_names_those_that_exist() {
    let machines = Machines::new();
    let knob = rungwise_knobs::find("net.gro").unwrap();
    for device in [None, Some("veth9"), Some("../veth0")] {
        let context = rungwise_knobs::Context::of_host(&*machines.host, device, &[0, 1]);
        let error = knob.plan(&context, "off").unwrap_err().to_string();
        assert!(error.contains("--device (veth0)"), "{error}");
    }
}
