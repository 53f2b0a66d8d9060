//! What the rules wish for, in the words of the knobs: a rule cannot see a knob, so a slip in a wish would show only
//! when a person wants to apply it. The casebooks of the rules spell their wishes out; they are read here as text.

use std::path::Path;

use rungwise_host::DeviceSetting;
use rungwise_knobs::{Context, Error, find};
use rungwise_model::kernel::{Answer, Channels, NetDevice, Question, Ring};
use rungwise_testkit::DEVICE;

use crate::machine::everything;
use crate::memory::{server, subject};

/// Knob and wish of each finding that a casebook expects: `act cpu/0 high high: net.rps_cpus@eth0=all, virt.multiqueue`.
fn wishes(book: &str) -> impl Iterator<Item = (String, String)> {
    book.lines()
        .filter(|line| line.starts_with("act ") || line.starts_with("watch "))
        .filter_map(|line| line.split_once(": "))
        .flat_map(|(_, knobs)| knobs.split(", "))
        .filter_map(|knob| knob.split_once('='))
        .map(|(name, wish)| {
            let id = name.split('@').next().unwrap_or_default();
            (id.to_owned(), wish.trim().to_owned())
        })
}

#[test]
fn every_wish_of_a_casebook_is_in_the_words_of_its_knob() {
    let place = server();
    let device = NetDevice {
        name: DEVICE.to_owned(),
        channels: Some(Channels {
            max_combined: 64,
            ..Channels::default()
        }),
        ring: Some(Ring {
            max_rx: 4096,
            max_tx: 4096,
            ..Ring::default()
        }),
        ..NetDevice::default()
    };
    let host = everything("the host", 1);
    // As cards have it: room for more queues than the casebooks name.
    let table: Vec<String> = (0..128).map(|entry| (entry % 2).to_string()).collect();
    let lab = everything("the server", 2)
        .with_setting(DEVICE, DeviceSetting::RssTable, &table.join(","))
        .with_answer(Question::Devices, Answer::Devices(vec![device]));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rules/cases");
    let (mut seen, mut slips) = (0, Vec::new());
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        for (id, wish) in wishes(&std::fs::read_to_string(&path).unwrap()) {
            seen += 1;
            let planned = find(&id).and_then(|knob| {
                let context = Context {
                    machine: &host,
                    here: &lab,
                    place: &place,
                    device: Some(subject(&id)),
                    cpus: &[0, 1],
                };
                knob.plan(&context, &wish)
            });
            // What the machine lacks is no matter of words.
            if let Err(error) = planned
                && !matches!(error, Error::Absent { .. } | Error::Kernel { .. })
            {
                slips.push(format!("{}: {id}={wish}: {error}", path.display()));
            }
        }
    }
    assert!(seen > 50, "only {seen} wishes were found in the casebooks");
    assert!(slips.is_empty(), "{}", slips.join("\n"));
}
