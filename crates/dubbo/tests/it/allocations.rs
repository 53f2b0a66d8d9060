//! The hot loop allocates nothing, and no claimed length is allocated, shown by an allocator that counts for one thread.
#![expect(unsafe_code, reason = "a global allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use rungwise_dubbo::hessian::{Limits, Reader, Skipper, Value};
use rungwise_dubbo::{Answer, Call, Decoder, Message, Reply, Template, judge, write_frame};

use crate::{captured, frames, whole};

struct Counting;

thread_local! {
    /// Calls and bytes.
    static ALLOCATED: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATED.try_with(|counter| {
            let (calls, bytes) = counter.get();
            counter.set((calls + 1, bytes + layout.size() as u64));
        });
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

/// Calls and bytes that are allocated meanwhile.
fn allocated(work: impl FnOnce()) -> (u64, u64) {
    let before = ALLOCATED.get();
    work();
    let after = ALLOCATED.get();
    (after.0 - before.0, after.1 - before.1)
}

#[test]
fn requests_are_sent_and_replies_judged_without_an_allocation() {
    let request = captured("3.3.6-consumer-request");
    let call = Call::decode(whole(&request).body, Limits::default()).unwrap();
    let mut template = Template::new(&call, true).unwrap();
    let mut wire: Vec<u8> = frames()
        .into_iter()
        .filter(|(name, _)| name.contains("-response") && !name.contains("heartbeat"))
        .flat_map(|(_, bytes)| bytes)
        .collect();
    // A value of a class and an exception.
    for body in [
        &b"\x91C\x01A\x91\x01b\x60\x91"[..],
        b"\x90C\x01A\x91\x01b\x60\x91",
    ] {
        let (message, id) = (
            Message::Reply {
                status: rungwise_dubbo::Status::OK,
            },
            1,
        );
        write_frame(&mut wire, message, id, body).unwrap();
    }
    let mut decoder = Decoder::new(1 << 20);
    let mut skipper = Skipper::new(Limits::default());
    let mut batch = Vec::with_capacity(1 << 20);
    let mut values = 0;
    let mut round = |decoder: &mut Decoder, skipper: &mut Skipper, id: u64| {
        batch.clear();
        assert!(!template.with_id(id).is_empty());
        template.append(id, &mut batch);
        let mut rest = wire.as_slice();
        while !rest.is_empty() {
            decoder.read_from(&mut rest).unwrap();
            while let Some(frame) = decoder.next_frame().unwrap() {
                let answer = judge(&frame, skipper).unwrap();
                values += u64::from(answer == Answer::Value);
            }
        }
    };
    // Buffers reach their size.
    round(&mut decoder, &mut skipper, 0);
    round(&mut decoder, &mut skipper, 1);
    let (calls, bytes) = allocated(|| {
        for id in 2..20 {
            round(&mut decoder, &mut skipper, id);
        }
    });
    assert_eq!((calls, bytes), (0, 0));
    assert!(values > 200, "{values}");
}

#[test]
fn no_claimed_length_is_allocated() {
    for claims in [
        &b"XI\x7f\xff\xff\xff"[..],
        b"V\x04[intI\x7f\xff\xff\xff",
        b"C\x01AI\x7f\xff\xff\xff",
        b"R\xff\xffa",
        b"A\xff\xffa",
    ] {
        let (_, bytes) = allocated(|| {
            let mut reader = Reader::new(claims, Limits::default());
            reader.value().unwrap_err();
        });
        assert!(bytes < 10_000, "{claims:x?}: {bytes}");
    }
    // Lists within one another, each of which claims 4096 elements.
    let mut nested = b"X\xd4\x10\x00".repeat(60);
    nested.extend(b"N".repeat(4096));
    let (_, bytes) = allocated(|| {
        let _ = Reader::new(&nested, Limits::default()).value();
    });
    assert!(bytes < 1_000_000, "{bytes}");
}

#[test]
fn memory_is_linear_in_the_body() {
    let mut body = b"\x91X\xd5\x86\xa0".to_vec();
    body.extend(b"\x91".repeat(0x1_86a0));
    let mut wire = Vec::new();
    let message = Message::Reply {
        status: rungwise_dubbo::Status::OK,
    };
    write_frame(&mut wire, message, 1, &body).unwrap();
    let (_, bytes) = allocated(|| {
        let reply = Reply::decode(&whole(&wire), Limits::default()).unwrap();
        drop(reply);
    });
    // 48 bytes a value, and a vector that doubles allocates up to four times what it holds.
    let value = size_of::<Value>() as u64;
    assert!(value <= 48, "{value}");
    assert!(bytes < 4 * value * body.len() as u64, "{bytes}");
}
