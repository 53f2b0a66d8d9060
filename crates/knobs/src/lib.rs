//! Wish to plan to journalled, undoable edits.
//!
//! A [`Knob`] turns a wish (`net.rps_cpus = 0-3`) into a [`Plan`]: a list of primitive [`Edit`]s,
//! each with the value it found. A [`Session`] carries plans out. It writes its intent to a journal
//! on disk before it touches the machine, reads back what the kernel made of each value, and undoes
//! by compare-and-swap: only what still holds our value is put back, anything else belongs to
//! somebody else by now and is reported. [`recovery`] does the same from the journal alone, after a
//! crash; [`guard`] is the process that does it at once when the tool is killed.
//!
//! No knob file writes or undoes anything: that is the engine's alone.

pub mod edit;
pub mod engine;
mod error;
pub mod guard;
pub mod journal;
pub mod knob;
pub mod mask;
mod page;
pub mod plan;
pub mod recovery;
pub mod target;
pub mod undo;

mod device;
mod host;
mod netns;
mod service;

pub use edit::{Edit, Place};
pub use engine::{Applied, Session};
pub use error::{Error, Result};
pub use knob::{Context, Current, Doc, Draft, Knob, Reading, Risk, Scope, Settable};
pub use page::pages;
pub use plan::{Drift, Plan, PlannedEdit};
pub use undo::{Left, Undo, Why};

/// All knobs, sorted by id; a knob's file is found by its scope and the last part of its id.
pub static KNOBS: &[&Knob] = &[
    &host::smt::KNOB,
    &service::pin_threads::KNOB,
    &netns::accept_local::KNOB,
    &host::affinity_hint::KNOB,
    &device::gro::KNOB,
    &device::gro_list_fwd::KNOB,
    &netns::iptables_unload::KNOB,
    &host::irq_affinity::KNOB,
    &device::napi_defer::KNOB,
    &host::netdev_budget::KNOB,
    &host::netdev_max_backlog::KNOB,
    &device::rfs::KNOB,
    &host::rmem_max::KNOB,
    &netns::rp_filter::KNOB,
    &device::rps_cpus::KNOB,
    &device::threaded_napi::KNOB,
    &device::tso_gso::KNOB,
    &service::xdp_echo::KNOB,
    &device::xps_cpus::KNOB,
    &host::auditd::KNOB,
    &service::busy_poll::KNOB,
    &service::incoming_cpu::KNOB,
    &service::io_uring::KNOB,
    &service::pmtudisc::KNOB,
    &service::recvmmsg::KNOB,
    &service::reuseport::KNOB,
    &service::reuseport_bpf::KNOB,
    &service::udp_gro::KNOB,
    &service::udp_segment::KNOB,
];

/// The knob with this id; the error names the nearest one.
pub fn find(id: &str) -> Result<&'static Knob> {
    if let Ok(index) = KNOBS.binary_search_by(|knob| knob.id.cmp(id)) {
        return Ok(KNOBS[index]);
    }
    let near = KNOBS
        .iter()
        .map(|knob| (strsim::jaro_winkler(knob.id, id), knob.id))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, id)| id);
    Err(Error::UnknownKnob {
        id: id.to_owned(),
        near,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registry_is_sorted_and_ids_are_unique() {
        for pair in KNOBS.windows(2) {
            assert!(
                pair[0].id < pair[1].id,
                "{} before {}",
                pair[0].id,
                pair[1].id
            );
        }
    }

    #[test]
    fn every_knob_is_found_by_its_id_and_a_slip_names_the_nearest() {
        for knob in KNOBS {
            assert_eq!(find(knob.id).unwrap().id, knob.id);
        }
        let error = find("net.rps_cpu").unwrap_err().to_string();
        assert!(error.contains("net.rps_cpus"), "{error}");
        assert!(
            !find("zzz")
                .unwrap_err()
                .to_string()
                .contains("did you mean")
        );
    }
}
