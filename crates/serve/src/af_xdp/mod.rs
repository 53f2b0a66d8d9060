//! Datagrams between user space and the queues of a device, bypassing the network stack (`AF_XDP`): what the server and
//! a client share.
//!
//! [`Redirect`] is the program that takes datagrams out of the receive path, [`Xsk`] the socket it hands them to,
//! [`read`] and [`Flow`] the frames around them, and [`Device`] what the kernel reports about the device.

mod device;
mod frame;
mod redirect;
mod xsk;

pub use device::{Device, Queues};
pub(crate) use frame::turn;
pub use frame::{Datagram, Flow, largest_payload, read};
pub use redirect::{Filter, Redirect, Taker};
pub(crate) use xsk::drops;
pub use xsk::{Frame, Frames, Xsk};
