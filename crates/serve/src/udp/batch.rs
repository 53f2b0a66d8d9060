//! Several datagrams per system call: `recvmmsg` waits for the first and takes what else is there
//! (`MSG_WAITFORONE`), `sendmmsg` sends the replies. Never waits to fill a batch, so it adds no latency.
#![expect(unsafe_code, reason = "recvmmsg takes structs of raw pointers")]

use std::io;

use super::handler::Handler;
use super::message::{Arrival, Control};
use super::worker::{Desk, MAX_REQUEST, STRIDE};
use crate::name::Name;
use crate::stop::Stop;

/// Serves until `stop`, up to `size` datagrams per call. `control`: ask for local address and segment size.
pub(super) fn run<H: Handler>(desk: &mut Desk<H>, stop: &Stop, size: usize, control: bool) {
    let mut buffers = vec![0_u8; size * STRIDE];
    let mut names = vec![Name::empty(); size];
    let mut controls = vec![Control::empty(); size];
    let mut iovecs: Vec<libc::iovec> = buffers
        .chunks_exact_mut(STRIDE)
        .map(|buffer| libc::iovec {
            iov_base: buffer.as_mut_ptr().cast(),
            iov_len: MAX_REQUEST,
        })
        .collect();
    let mut headers: Vec<libc::mmsghdr> = (0..size)
        .map(|at| {
            // SAFETY: all zeros is a valid mmsghdr.
            let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
            header.msg_hdr.msg_name = names[at].as_mut_ptr().cast();
            header.msg_hdr.msg_iov = &raw mut iovecs[at];
            header.msg_hdr.msg_iovlen = 1;
            if control {
                header.msg_hdr.msg_control = controls[at].0.as_mut_ptr().cast();
            }
            header
        })
        .collect();
    // What the last call wrote must be made room for again; the others still have theirs.
    let mut stale = size;
    while !stop.expired() {
        for header in &mut headers[..stale] {
            header.msg_hdr.msg_namelen = crate::name::NAME_ROOM as libc::socklen_t;
            if control {
                header.msg_hdr.msg_controllen = super::message::CONTROL_ROOM as _;
            }
        }
        // SAFETY: every header points at a buffer, a name and control room of its own that outlive the loop.
        let received = unsafe {
            let first = headers.as_mut_ptr();
            libc::recvmmsg(
                desk.socket(),
                first,
                size as libc::c_uint,
                libc::MSG_WAITFORONE,
                std::ptr::null_mut(),
            )
        };
        let Ok(received) = usize::try_from(received) else {
            stale = 0;
            if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                desk.tally.receive_errors += 1;
                desk.publish();
            }
            continue;
        };
        stale = received;
        let shut_down = headers[..received]
            .iter()
            .any(|header| header.msg_hdr.msg_namelen == 0);
        for (at, header) in headers[..received].iter().enumerate() {
            names[at].length = header.msg_hdr.msg_namelen;
            let arrival = if control {
                Arrival::read(&controls[at].0[..header.msg_hdr.msg_controllen])
            } else {
                Arrival::default()
            };
            let buffer = &buffers[at * STRIDE..][..header.msg_len as usize];
            desk.take(buffer, &names[at], &arrival);
        }
        desk.send();
        desk.publish();
        if shut_down && stop.requested() {
            return;
        }
    }
}
