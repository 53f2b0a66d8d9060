//! The plain way: one system call to receive, one to send. Blocks in the receive; a stop shuts the socket's
//! receiving half down, which wakes every thread that waits on it and still delivers what is queued.
#![expect(unsafe_code, reason = "recvfrom and recvmsg take raw pointers")]

use std::io;

use super::handler::Handler;
use super::message::{Arrival, Control};
use super::worker::{Desk, MAX_REQUEST};
use crate::name::Name;
use crate::stop::Stop;

/// Serves until `stop`. `control`: ask for local address and segment size, which takes `recvmsg`.
pub(super) fn run<H: Handler>(desk: &mut Desk<H>, stop: &Stop, control: bool) {
    let mut receiver = Receiver::new(control);
    while !stop.expired() {
        match receiver.take(desk, 0) {
            Ok(true) => desk.send(),
            Ok(false) => {
                if stop.requested() {
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => desk.tally.receive_errors += 1,
        }
        desk.publish();
    }
}

/// Room for one datagram.
pub(super) struct Receiver {
    buffer: Vec<u8>,
    name: Name,
    messages: Option<Control>,
}

impl Receiver {
    /// `control`: ask for local address and segment size too.
    pub(super) fn new(control: bool) -> Self {
        Self {
            buffer: vec![0; MAX_REQUEST],
            name: Name::empty(),
            messages: control.then(Control::empty),
        }
    }

    /// Receives one datagram from the desk's socket, with the flags of recv(2), and has it answered; the reply waits.
    /// False at the end of a socket that was shut down.
    pub(super) fn take<H: Handler>(&mut self, desk: &mut Desk<H>, flags: i32) -> io::Result<bool> {
        self.name.reset();
        let (buffer, name) = (&mut self.buffer, &mut self.name);
        let (length, arrival) = match &mut self.messages {
            Some(messages) => {
                let (length, control) =
                    receive_with_control(desk.socket(), buffer, name, messages, flags)?;
                (length, Arrival::read(&messages.0[..control]))
            }
            None => (
                receive(desk.socket(), buffer, name, flags)?,
                Arrival::default(),
            ),
        };
        if name.length == 0 {
            return Ok(false);
        }
        desk.take(&buffer[..length], name, &arrival);
        Ok(true)
    }
}

fn receive(socket: i32, buffer: &mut [u8], name: &mut Name, flags: i32) -> io::Result<usize> {
    // SAFETY: buffer and name are valid for the lengths given.
    let length = unsafe {
        let address = name.as_mut_ptr();
        libc::recvfrom(
            socket,
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            flags,
            address,
            &raw mut name.length,
        )
    };
    usize::try_from(length).map_err(|_| io::Error::last_os_error())
}

/// Lengths of datagram and control messages.
fn receive_with_control(
    socket: i32,
    buffer: &mut [u8],
    name: &mut Name,
    control: &mut Control,
    flags: i32,
) -> io::Result<(usize, usize)> {
    let mut iovec = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    // SAFETY: all zeros is a valid msghdr.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_name = name.as_mut_ptr().cast();
    header.msg_namelen = name.length;
    header.msg_iov = &raw mut iovec;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = control.0.len() as _;
    // SAFETY: everything the header points at outlives the call.
    let length = unsafe { libc::recvmsg(socket, &raw mut header, flags) };
    name.length = header.msg_namelen;
    match usize::try_from(length) {
        Ok(length) => Ok((length, header.msg_controllen as usize)),
        Err(_) => Err(io::Error::last_os_error()),
    }
}
