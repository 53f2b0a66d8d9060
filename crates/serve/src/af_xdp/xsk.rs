//! An `AF_XDP` socket: frames in memory shared with the kernel, and four rings that say whose each is.
//!
//! A frame for receiving goes round: on the fill ring it waits for a datagram, on the receive ring it brings one, on
//! the transmit ring it may carry the reply away, on the completion ring it comes back and goes to fill. A frame of
//! our own starts from us, and comes back to us from the completion ring. No ring has fewer places than either kind has
//! frames, so a server, which has none of its own, and a client, which sends no other, overflow none. The kernel copies
//! (`XDP_COPY`): zero copy needs a device that can, and none was at hand to try it on. Sources: `Documentation/networking/af_xdp.rst`,
//! `include/uapi/linux/if_xdp.h` and `net/xdp/xsk.c` of Linux 6.18.
#![expect(unsafe_code, reason = "the rings share memory with the kernel")]

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use libc::{xdp_desc, xdp_mmap_offsets, xdp_ring_offset};

/// Bytes between frames: the kernel wants a power of two up to a page.
const CHUNK: usize = 4096;
/// Frames that one system call sends at least where the kernel has no option for it (`TX_BATCH_SIZE` in
/// `net/xdp/xsk.c`: 16, later 32).
const BATCH: u32 = 16;
/// How long a queue may take to be let go by a socket that was closed. A guess: far above a kernel worker's delay.
const LET_GO: Duration = Duration::from_secs(1);
/// `XDP_MAX_TX_SKB_BUDGET` (Linux 6.18): frames that one system call sends.
const BUDGET: i32 = 9;

/// How many frames a socket has.
#[derive(Clone, Copy, Debug)]
pub struct Frames {
    /// For receiving, and so the most datagrams that wait.
    pub receive: u32,
    /// Of our own, for sending what answers nothing.
    pub own: u32,
}

impl Frames {
    /// About four times what a socket's receive buffer holds by default.
    pub(crate) const OF_A_SERVER: Self = Self {
        receive: 1024,
        own: 0,
    };

    /// Places on each ring: a power of two, and enough for [`XDP_MAX_TX_SKB_BUDGET`](BUDGET).
    fn ring(self) -> u32 {
        self.receive.max(self.own).max(64).next_power_of_two()
    }

    fn all(self) -> u32 {
        self.receive + self.own
    }
}

/// A socket bound to one queue of a device, and its frames.
pub struct Xsk {
    fd: Arc<OwnedFd>,
    frames: Mapping,
    /// Where the frames of our own begin.
    own_from: usize,
    /// Those that are with us.
    own: Vec<usize>,
    fill: Producer<u64>,
    receive: Consumer<xdp_desc>,
    transmit: Producer<xdp_desc>,
    completion: Consumer<u64>,
    /// Frames that one system call sends.
    budget: u32,
}

/// A frame that is ours: where its bytes begin and how many the datagram has.
pub struct Frame {
    start: usize,
    length: usize,
}

impl Frame {
    /// Bytes of the datagram in it, headers included; zero for one of our own.
    pub fn length(&self) -> usize {
        self.length
    }
}

impl std::fmt::Debug for Xsk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Xsk")
            .field("fd", &self.fd)
            .finish_non_exhaustive()
    }
}

impl Xsk {
    /// A socket for `queue` of the device with this index.
    pub fn bind(device: u32, queue: u32, frames: Frames) -> io::Result<Self> {
        let (ring, own_from) = (frames.ring(), frames.receive as usize * CHUNK);
        // SAFETY: takes numbers.
        let raw = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor, nobody else's.
        let fd = unsafe { OwnedFd::from_raw_fd(raw) };
        let memory = Mapping::new(frames.all() as usize * CHUNK, None)?;
        let region = libc::xdp_umem_reg {
            addr: memory.start.as_ptr() as u64,
            len: memory.length as u64,
            chunk_size: CHUNK as u32,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        set(&fd, libc::SOL_XDP, libc::XDP_UMEM_REG, &region)?;
        for which in [
            libc::XDP_UMEM_FILL_RING,
            libc::XDP_UMEM_COMPLETION_RING,
            libc::XDP_RX_RING,
            libc::XDP_TX_RING,
        ] {
            set(&fd, libc::SOL_XDP, which, &ring)?;
        }
        // Either has a plain fallback: fewer frames per system call, and a send buffer that a burst may fill.
        let budget = match set(&fd, libc::SOL_XDP, BUDGET, &ring) {
            Ok(()) => ring,
            Err(_) => BATCH,
        };
        // With every frame under way.
        let buffer = ring.saturating_mul(CHUNK as u32).cast_signed();
        let _ = set(&fd, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &buffer);
        let at = offsets(&fd)?;
        let mut fill = Producer(Ring::map(
            &fd,
            ring,
            &at.fr,
            libc::XDP_UMEM_PGOFF_FILL_RING.cast_signed(),
        )?);
        let completion = Consumer(Ring::map(
            &fd,
            ring,
            &at.cr,
            libc::XDP_UMEM_PGOFF_COMPLETION_RING.cast_signed(),
        )?);
        let receive = Consumer(Ring::map(&fd, ring, &at.rx, libc::XDP_PGOFF_RX_RING)?);
        let transmit = Producer(Ring::map(&fd, ring, &at.tx, libc::XDP_PGOFF_TX_RING)?);
        for start in (0..own_from).step_by(CHUNK) {
            fill.push(start as u64);
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
            own: (own_from..memory.length).step_by(CHUNK).collect(),
            own_from,
            frames: memory,
            fill,
            receive,
            transmit,
            completion,
            budget,
        })
    }

    /// The descriptor: readable when a datagram waits. Polling it also sends what is on the transmit ring.
    pub fn fd(&self) -> &Arc<OwnedFd> {
        &self.fd
    }

    /// How many datagrams wait.
    pub fn waiting(&mut self) -> usize {
        self.receive.waiting() as usize
    }

    /// Datagrams for it that the kernel dropped so far: no frame was free, it was too long for one, or the ring was
    /// full.
    pub fn drops(&self) -> u64 {
        drops(&self.fd)
    }

    /// The next datagram that waits.
    pub fn receive(&mut self) -> Option<Frame> {
        let descriptor = self.receive.pop()?;
        Some(Frame {
            start: descriptor.addr as usize,
            length: descriptor.len as usize,
        })
    }

    /// The bytes of `frame` and the room behind them.
    pub fn bytes(&mut self, frame: &Frame) -> &mut [u8] {
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

    /// A frame of our own; nothing while all are under way.
    pub fn take(&mut self) -> Option<Frame> {
        let start = self.own.pop()?;
        Some(Frame { start, length: 0 })
    }

    /// Gives a frame back: one that was received for the next datagram, one of our own to us.
    pub fn release(&mut self, Frame { start, .. }: Frame) {
        self.recycle(start);
    }

    fn recycle(&mut self, start: usize) {
        let start = start - start % CHUNK;
        if start < self.own_from {
            self.fill.push(start as u64);
        } else {
            self.own.push(start);
        }
    }

    /// Sends the first `length` bytes of a frame, at the latest when [`Self::fd`] is polled after [`Self::commit`].
    pub fn send(&mut self, Frame { start, .. }: Frame, length: usize) {
        self.transmit.push(xdp_desc {
            addr: start as u64,
            len: length as u32,
            options: 0,
        });
    }

    /// Tells the kernel what was taken, given back and is to be sent, and takes back what it has sent. More than one
    /// poll sends leaves at once, as far as the kernel takes it.
    pub fn commit(&mut self) {
        while let Some(address) = self.completion.pop() {
            self.recycle(address as usize);
        }
        self.completion.publish();
        self.receive.publish();
        self.fill.publish();
        self.transmit.publish();
        while self.transmit.waiting() > self.budget && self.push_out() {}
    }

    /// Sends what is on the transmit ring, as much as one system call does. False if the kernel took nothing.
    pub fn push_out(&mut self) -> bool {
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
pub(crate) fn drops(fd: &OwnedFd) -> u64 {
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

fn set<T>(fd: &OwnedFd, level: i32, name: i32, value: &T) -> io::Result<()> {
    let size = size_of::<T>() as libc::socklen_t;
    let place = std::ptr::from_ref(value).cast();
    // SAFETY: `value` is valid for its size, and the kernel only reads it.
    match unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, place, size) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
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
    /// One less than the number of places.
    mask: u32,
    /// Our own counter, published or not yet.
    ours: u32,
    /// The kernel's, as last seen.
    theirs: u32,
    kind: std::marker::PhantomData<T>,
}

impl<T: Copy> Ring<T> {
    fn map(fd: &OwnedFd, places: u32, at: &xdp_ring_offset, page: i64) -> io::Result<Self> {
        let entries = at.desc as usize;
        let length = entries + places as usize * size_of::<T>();
        Ok(Self {
            memory: Mapping::new(length, Some((fd, page)))?,
            producer: at.producer as usize,
            consumer: at.consumer as usize,
            entries,
            mask: places - 1,
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
        let at = self.entries + (self.ours & self.mask) as usize * size_of::<T>();
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
    /// Entries that are there for us.
    fn waiting(&mut self) -> u32 {
        self.0.theirs = self.0.counter(self.0.producer).load(Ordering::Acquire);
        self.0.theirs.wrapping_sub(self.0.ours)
    }

    fn pop(&mut self) -> Option<T> {
        if self.0.ours == self.0.theirs && self.waiting() == 0 {
            return None;
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
