//! An `AF_XDP` socket: frames in memory shared with the kernel, and four rings that say whose each is.
//!
//! A frame goes round: on the fill ring it waits for a datagram, on the receive ring it brings one, on the transmit
//! ring it carries the reply away, on the completion ring it comes back and goes to fill. There are as many frames
//! as places on each ring, so no ring overflows and nothing else keeps account. The kernel copies (`XDP_COPY`): zero
//! copy needs a device that can, and none was at hand to try it on. Sources: `Documentation/networking/af_xdp.rst`,
//! `include/uapi/linux/if_xdp.h` and `net/xdp/xsk.c` of Linux 6.18.
#![expect(unsafe_code, reason = "the rings share memory with the kernel")]

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use libc::{xdp_desc, xdp_mmap_offsets, xdp_ring_offset};

use super::socket;

/// Frames of a socket, and so the most datagrams that wait: about four times what a socket's receive buffer holds
/// by default. A power of two.
const FRAMES: u32 = 1024;
/// Bytes between frames: the kernel wants a power of two up to a page.
const CHUNK: usize = 4096;
/// Send buffer with every frame under way, bytes.
const SEND_BUFFER: i32 = FRAMES.cast_signed() * 4096;
/// Frames that one system call sends at least where the kernel has no option for it (`TX_BATCH_SIZE` in
/// `net/xdp/xsk.c`: 16, later 32).
const BATCH: u32 = 16;
/// How long a queue may take to be let go by a socket that was closed. A guess: far above a kernel worker's delay.
const LET_GO: Duration = Duration::from_secs(1);
/// `XDP_MAX_TX_SKB_BUDGET` (Linux 6.18): frames that one system call sends.
const BUDGET: i32 = 9;

/// A socket bound to one queue of a device, and its frames.
pub(super) struct Xsk {
    fd: Arc<OwnedFd>,
    frames: Mapping,
    fill: Producer<u64>,
    receive: Consumer<xdp_desc>,
    transmit: Producer<xdp_desc>,
    completion: Consumer<u64>,
    /// Frames that one system call sends.
    budget: u32,
}

/// A frame that is ours: where its bytes begin and how many the datagram has.
pub(super) struct Frame {
    start: usize,
    pub(super) length: usize,
}

impl Xsk {
    /// A socket for `queue` of the device with this index.
    pub(super) fn bind(device: u32, queue: u32) -> io::Result<Self> {
        // SAFETY: takes numbers.
        let raw = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor, nobody else's.
        let fd = unsafe { OwnedFd::from_raw_fd(raw) };
        let frames = Mapping::new(FRAMES as usize * CHUNK, None)?;
        let memory = libc::xdp_umem_reg {
            addr: frames.start.as_ptr() as u64,
            len: frames.length as u64,
            chunk_size: CHUNK as u32,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        socket::set_value(&fd, libc::SOL_XDP, libc::XDP_UMEM_REG, &memory)?;
        for ring in [
            libc::XDP_UMEM_FILL_RING,
            libc::XDP_UMEM_COMPLETION_RING,
            libc::XDP_RX_RING,
            libc::XDP_TX_RING,
        ] {
            socket::set_value(&fd, libc::SOL_XDP, ring, &FRAMES)?;
        }
        // Either has a plain fallback: fewer frames per system call, and a send buffer that a burst may fill.
        let budget = match socket::set_value(&fd, libc::SOL_XDP, BUDGET, &FRAMES) {
            Ok(()) => FRAMES,
            Err(_) => BATCH,
        };
        let _ = socket::set(&fd, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, SEND_BUFFER);
        let at = offsets(&fd)?;
        let mut fill = Producer(Ring::map(
            &fd,
            &at.fr,
            libc::XDP_UMEM_PGOFF_FILL_RING.cast_signed(),
        )?);
        let completion = Consumer(Ring::map(
            &fd,
            &at.cr,
            libc::XDP_UMEM_PGOFF_COMPLETION_RING.cast_signed(),
        )?);
        let receive = Consumer(Ring::map(&fd, &at.rx, libc::XDP_PGOFF_RX_RING)?);
        let transmit = Producer(Ring::map(&fd, &at.tx, libc::XDP_PGOFF_TX_RING)?);
        for frame in 0..FRAMES as usize {
            fill.push((frame * CHUNK) as u64);
        }
        fill.publish();
        // SAFETY: all zeros is a valid sockaddr_xdp.
        let mut address: libc::sockaddr_xdp = unsafe { std::mem::zeroed() };
        address.sxdp_family = libc::AF_XDP as u16;
        address.sxdp_flags = libc::XDP_COPY | libc::XDP_USE_NEED_WAKEUP;
        address.sxdp_ifindex = device;
        address.sxdp_queue_id = queue;
        bind(&fd, &address)?;
        Ok(Self {
            fd: Arc::new(fd),
            frames,
            fill,
            receive,
            transmit,
            completion,
            budget,
        })
    }

    /// The descriptor: readable when a datagram waits. Polling it also sends what is on the transmit ring.
    pub(super) fn fd(&self) -> &Arc<OwnedFd> {
        &self.fd
    }

    /// The next datagram that waits.
    pub(super) fn receive(&mut self) -> Option<Frame> {
        let descriptor = self.receive.pop()?;
        Some(Frame {
            start: descriptor.addr as usize,
            length: descriptor.len as usize,
        })
    }

    /// The bytes of `frame` and the room behind them.
    pub(super) fn bytes(&mut self, frame: &Frame) -> &mut [u8] {
        let end = (frame.start / CHUNK + 1) * CHUNK;
        assert!(
            frame.start + frame.length <= end && end <= self.frames.length,
            "the kernel names frames within the memory it was given"
        );
        // SAFETY: within the mapping, and the kernel touches no frame between the receive ring and the transmit or
        // fill ring; the borrow of `self` keeps the frame from being given away meanwhile.
        unsafe {
            let start = self.frames.start.as_ptr().add(frame.start);
            std::slice::from_raw_parts_mut(start, end - frame.start)
        }
    }

    /// Gives a frame back for the next datagram.
    pub(super) fn release(&mut self, Frame { start, .. }: Frame) {
        self.fill.push((start - start % CHUNK) as u64);
    }

    /// Sends the first `length` bytes of a frame, at the latest when [`Self::fd`] is polled after [`Self::commit`].
    pub(super) fn send(&mut self, Frame { start, .. }: Frame, length: usize) {
        self.transmit.push(xdp_desc {
            addr: start as u64,
            len: length as u32,
            options: 0,
        });
    }

    /// Tells the kernel what was taken, given back and is to be sent, and takes back what it has sent. More than one
    /// poll sends leaves at once, as far as the kernel takes it.
    pub(super) fn commit(&mut self) {
        while let Some(address) = self.completion.pop() {
            self.fill.push(address - address % CHUNK as u64);
        }
        self.completion.publish();
        self.receive.publish();
        self.fill.publish();
        self.transmit.publish();
        while self.transmit.waiting() > self.budget && self.push_out() {}
    }

    /// Sends what is on the transmit ring, as much as one system call does. False if the kernel took nothing.
    pub(super) fn push_out(&mut self) -> bool {
        let before = self.transmit.waiting();
        // SAFETY: sends nothing of ours but wakes the kernel's end of the ring.
        unsafe {
            libc::sendto(
                self.fd.as_raw_fd(),
                std::ptr::null(),
                0,
                libc::MSG_DONTWAIT,
                std::ptr::null(),
                0,
            )
        };
        self.transmit.waiting() < before
    }
}

/// Binds. A queue is let go some time after the socket that had it was closed (`xp_put_pool`, `net/xdp/xsk_buff_pool.c`,
/// leaves it to a kernel worker) and nobody tells when, so a busy one is asked again for a while.
#[expect(clippy::disallowed_methods, reason = "serve owns its clock")]
fn bind(fd: &OwnedFd, address: &libc::sockaddr_xdp) -> io::Result<()> {
    let size = size_of_val(address) as libc::socklen_t;
    let deadline = Instant::now() + LET_GO;
    loop {
        // SAFETY: `address` is valid for its size.
        if unsafe { libc::bind(fd.as_raw_fd(), std::ptr::from_ref(address).cast(), size) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EBUSY) || Instant::now() >= deadline {
            return Err(error);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Datagrams for the socket that the kernel dropped: no frame was free, it was too long for one, or the ring was full.
pub(super) fn drops(fd: &OwnedFd) -> u64 {
    // SAFETY: all zeros is a valid xdp_statistics.
    let mut seen: libc::xdp_statistics = unsafe { std::mem::zeroed() };
    match option(fd, libc::XDP_STATISTICS, &mut seen) {
        Ok(()) => seen.rx_dropped + seen.rx_ring_full,
        Err(_) => 0,
    }
}

fn offsets(fd: &OwnedFd) -> io::Result<xdp_mmap_offsets> {
    // SAFETY: all zeros is a valid xdp_mmap_offsets.
    let mut offsets: xdp_mmap_offsets = unsafe { std::mem::zeroed() };
    option(fd, libc::XDP_MMAP_OFFSETS, &mut offsets)?;
    Ok(offsets)
}

/// Reads an option; a kernel that knows fewer fields leaves the rest as it is.
fn option<T>(fd: &OwnedFd, name: i32, value: &mut T) -> io::Result<()> {
    let mut size = size_of::<T>() as libc::socklen_t;
    let place = std::ptr::from_mut(value).cast();
    // SAFETY: `value` is valid for the size given, and plain numbers.
    match unsafe { libc::getsockopt(fd.as_raw_fd(), libc::SOL_XDP, name, place, &raw mut size) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Mapped memory, unmapped when dropped.
struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: memory is of no particular thread.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Memory of our own, or of a ring of `of` at an offset.
    fn new(length: usize, of: Option<(&OwnedFd, i64)>) -> io::Result<Self> {
        let (fd, at, sharing) = match of {
            None => (-1, 0, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS),
            Some((fd, at)) => (fd.as_raw_fd(), at, libc::MAP_SHARED),
        };
        // SAFETY: a new mapping, at an address of the kernel's choice.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                sharing | libc::MAP_POPULATE,
                fd,
                at,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, length })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the whole mapping, which nobody borrows any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// One ring: a place for each frame, and two counters of which each side writes one.
struct Ring<T> {
    memory: Mapping,
    producer: usize,
    consumer: usize,
    entries: usize,
    /// Our own counter, published or not yet.
    ours: u32,
    /// The kernel's, as last seen.
    theirs: u32,
    kind: std::marker::PhantomData<T>,
}

impl<T: Copy> Ring<T> {
    fn map(fd: &OwnedFd, at: &xdp_ring_offset, page: i64) -> io::Result<Self> {
        let entries = at.desc as usize;
        let length = entries + FRAMES as usize * size_of::<T>();
        Ok(Self {
            memory: Mapping::new(length, Some((fd, page)))?,
            producer: at.producer as usize,
            consumer: at.consumer as usize,
            entries,
            ours: 0,
            theirs: 0,
            kind: std::marker::PhantomData,
        })
    }

    fn counter(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: the kernel said that its counter lies there, aligned and within the mapping.
        unsafe { self.memory.start.add(offset).cast::<AtomicU32>().as_ref() }
    }

    /// The place of our counter.
    fn place(&self) -> *mut T {
        let at = self.entries + (self.ours % FRAMES) as usize * size_of::<T>();
        // SAFETY: within the mapping, since the index is below the number of entries; aligned, since the entries are.
        unsafe { self.memory.start.add(at).cast::<T>().as_ptr() }
    }
}

/// A ring that we put onto.
struct Producer<T>(Ring<T>);

impl<T: Copy> Producer<T> {
    /// There is room: no ring has fewer places than there are frames.
    fn push(&mut self, value: T) {
        // SAFETY: the place is ours until the counter is published.
        unsafe { self.0.place().write(value) };
        self.0.ours = self.0.ours.wrapping_add(1);
    }

    fn publish(&self) {
        self.0
            .counter(self.0.producer)
            .store(self.0.ours, Ordering::Release);
    }

    /// Entries that the kernel has not taken yet.
    fn waiting(&self) -> u32 {
        let taken = self.0.counter(self.0.consumer).load(Ordering::Acquire);
        self.0.ours.wrapping_sub(taken)
    }
}

/// A ring that we take from.
struct Consumer<T>(Ring<T>);

impl<T: Copy> Consumer<T> {
    fn pop(&mut self) -> Option<T> {
        if self.0.ours == self.0.theirs {
            self.0.theirs = self.0.counter(self.0.producer).load(Ordering::Acquire);
            if self.0.ours == self.0.theirs {
                return None;
            }
        }
        // SAFETY: the kernel has filled this place and leaves it alone until the counter is published.
        let value = unsafe { self.0.place().read() };
        self.0.ours = self.0.ours.wrapping_add(1);
        Some(value)
    }

    fn publish(&self) {
        self.0
            .counter(self.0.consumer)
            .store(self.0.ours, Ordering::Release);
    }
}
