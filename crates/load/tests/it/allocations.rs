//! No allocation per transaction, shown by an allocator that counts for the generator threads alone.
#![expect(unsafe_code, reason = "a global allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rungwise_load::udp::{Arrival, Edge, Hooks, Workload, run};
use rungwise_testkit::Pair;

use crate::af_xdp::{by_queues, echo_at};
use crate::server::{Server, workload};

struct Counting;

static COUNT: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static WATCHED: Cell<bool> = const { Cell::new(false) };
}

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if WATCHED.try_with(Cell::get).unwrap_or(false) {
            COUNT.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(workload: &Workload, enter: &(dyn Fn() -> io::Result<()> + Sync)) -> u64 {
    let before = COUNT.load(Ordering::Relaxed);
    let hooks = Hooks {
        thread_start: &|_| {
            WATCHED.set(true);
            enter()
        },
        window: &|_: Edge| {},
        interrupted: &AtomicBool::new(false),
    };
    let completed = run(workload, &hooks).unwrap();
    assert_eq!(completed.measurement.received, completed.measurement.sent);
    COUNT.load(Ordering::Relaxed) - before
}

/// Compares runs of `workload(count)` in both kinds of loop.
fn no_more_for_twenty_times_as_many(
    workload: impl Fn(u64) -> Workload,
    enter: &(dyn Fn() -> io::Result<()> + Sync),
) {
    for arrival in [Arrival::Closed, Arrival::Constant { per_s: 40_000.0 }] {
        let of = |count| {
            let workload = Workload {
                arrival,
                ..workload(count)
            };
            allocations(&workload, enter)
        };
        let (few, many) = (of(500), of(10_000));
        // Each second of a longer run may hand over its histogram; 10 000 transactions take less than a
        // minute.
        assert!(
            many <= few + 500,
            "{arrival:?}: {few} for 500, {many} for 10 000"
        );
    }
}

#[test]
fn twenty_times_the_transactions_need_no_more_allocations() {
    let server = Server::echo();
    no_more_for_twenty_times_as_many(|count| workload(server.address, count), &|| Ok(()));
}

#[test]
fn nor_do_they_by_the_queues_of_a_device() {
    let pair = Pair::new(2).unwrap();
    let server = echo_at(&pair);
    let enter = pair.client.enter_fn();
    no_more_for_twenty_times_as_many(|count| by_queues(server.local_addr(), count), &enter);
}
