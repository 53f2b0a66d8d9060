//! Round trips on the real kernel, on a veth pair between two namespaces of our own.
//!
//! What belongs to the whole host is changed there for a few milliseconds, to a harmless value.

use std::sync::Arc;

use rungwise_host::live::Live;
use rungwise_host::namespace::Namespace;
use rungwise_host::veth::{self, End, Spec};
use rungwise_host::{Host, privilege};
use rungwise_knobs::edit::Places;
use rungwise_knobs::{Context, Place, Plan, Session};
use rungwise_testkit::{differences, record};

use crate::plans::WISHES;

const DEVICE: &str = "kn-server";

struct Lab {
    server: Arc<Namespace>,
    client: Namespace,
    place: Place,
}

impl Lab {
    fn new() -> Self {
        assert!(
            matches!(privilege::detect(), privilege::Privilege::Root),
            "this test needs root: queue masks are refused to everybody else"
        );
        let server = Namespace::create("kn-server").unwrap();
        let client = Namespace::create("kn-client").unwrap();
        let end = |device: &str, address: &str| End {
            device: device.to_owned(),
            addresses: vec![(address.parse().unwrap(), 24)],
        };
        let spec = Spec {
            queues: 2,
            ends: [end(DEVICE, "10.78.0.1"), end("kn-client", "10.78.0.2")],
        };
        veth::connect(&server, &client, &spec).unwrap();
        Self {
            server: Arc::new(server),
            client,
            place: Place::Namespace("server".to_owned()),
        }
    }

    fn places(&self) -> Places {
        Places::host(Arc::new(Live)).with(self.place.clone(), self.server.clone())
    }

    fn plan(&self, id: &str, wish: &str) -> Plan {
        let context = Context {
            machine: &Live,
            here: &*self.server,
            place: &self.place,
            device: Some(DEVICE),
            cpus: &[0],
        };
        rungwise_knobs::find(id)
            .unwrap()
            .plan(&context, wish)
            .unwrap()
    }
}

#[test]
fn every_knob_makes_a_round_trip_on_the_real_kernel() {
    let lab = Lab::new();
    let state = tempfile::tempdir().unwrap();
    let before = (record(&Live), record(&*lab.server));
    for (id, wish) in WISHES {
        let mut session = Session::begin(state.path(), lab.places(), "test").unwrap();
        if *id == "net.threaded_napi" {
            // A veth has NAPI only while GRO is on.
            let _ = session.apply(&lab.plan("net.gro", "on")).unwrap();
        }
        // A new namespace starts without source validation.
        let wish = if *id == "net.rp_filter" { "1" } else { wish };
        let plan = lab.plan(id, wish);
        assert!(plan.changes(), "{id}\n{}", plan.diff());
        let applied = session.apply(&plan).unwrap();
        assert!(!applied.changes.is_empty(), "{id}");
        assert_eq!(plan.verify(&lab.places()).unwrap(), [], "{id}");
        let undo = session.close().unwrap();
        assert!(undo.complete(), "{id}: {}", undo.left_in_words());
        let after = (record(&Live), record(&*lab.server));
        assert_eq!(
            differences(&before.0, &after.0),
            [""; 0],
            "{id} on the host"
        );
        assert_eq!(
            differences(&before.1, &after.1),
            [""; 0],
            "{id} in the namespace"
        );
        assert!(
            rungwise_knobs::journal::stored(state.path())
                .unwrap()
                .is_empty()
        );
    }
}

#[test]
fn what_the_kernel_refuses_is_told_and_leaves_nothing() {
    let lab = Lab::new();
    let state = tempfile::tempdir().unwrap();
    let before = record(&*lab.server);
    let mut session = Session::begin(state.path(), lab.places(), "test").unwrap();
    let error = session
        .apply(&lab.plan("net.rps_cpus", "0-2000"))
        .unwrap_err();
    assert!(
        error.to_string().contains("CPU that does not exist"),
        "{error}"
    );
    // Without GRO a veth has no NAPI to be threaded.
    let error = session
        .apply(&lab.plan("net.threaded_napi", "on"))
        .unwrap_err();
    assert!(error.to_string().contains("NAPI needs GRO"), "{error}");
    assert_eq!(session.changes(), 0);
    session.close().unwrap();
    assert_eq!(differences(&before, &record(&*lab.server)), [""; 0]);
}

#[test]
fn a_device_removed_under_a_session_took_its_settings_along() {
    let lab = Lab::new();
    let state = tempfile::tempdir().unwrap();
    let mut session = Session::begin(state.path(), lab.places(), "test").unwrap();
    let _ = session.apply(&lab.plan("net.rps_cpus", "all")).unwrap();
    let Lab { server, client, .. } = lab;
    // The pair goes with either end's namespace, as soon as the kernel gets round to it.
    drop(client);
    while server
        .list(std::path::Path::new("/sys/class/net"))
        .unwrap()
        .contains(&DEVICE.to_owned())
    {
        std::thread::yield_now();
    }
    let undo = session.close().unwrap();
    assert!(undo.complete(), "{}", undo.left_in_words());
    assert!(
        undo.settled
            .iter()
            .all(|line| line.contains("gone with its device")),
        "{undo:?}"
    );
}
