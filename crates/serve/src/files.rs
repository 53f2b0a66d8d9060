//! How many files a process may have open, and a table of them for each thread.
//!
//! The limit of open files (`RLIMIT_NOFILE`) bounds the numbers in one table of descriptors (`alloc_fd`, fs/file.c). The threads of a
//! process share a table; a thread that leaves it with `unshare(2)` has one of its own, with the whole limit, and needs no
//! privilege for that. What it opens is closed when it ends, however it ends.
#![expect(unsafe_code, reason = "limits and tables, which std does not reach")]

use std::io;

/// Lets this process have `wanted` files open, or as many as it may: its soft limit, mostly 1024, becomes its hard limit, and the hard limit is
/// raised too where that is not enough and the process may. The limit that holds then.
pub fn raise(wanted: u64) -> u64 {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is valid for writing.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return 0;
    }
    let tries = [limit.rlim_max.max(wanted), limit.rlim_max];
    for most in tries {
        if limit.rlim_cur >= most {
            break;
        }
        let raised = libc::rlimit {
            rlim_cur: most,
            rlim_max: most,
        };
        // SAFETY: `raised` is valid for reading. Where it fails, the limit stays as it is.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) } == 0 {
            return most;
        }
    }
    limit.rlim_cur
}

/// Gives the calling thread a table of descriptors of its own, a copy of the one that it shared. What it opens from now on no other thread
/// can use, and what is closed elsewhere stays open in its copy until the thread ends.
pub fn own_table() -> io::Result<()> {
    // SAFETY: takes a number; descriptors keep their numbers.
    match unsafe { libc::unshare(libc::CLONE_FILES) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsRawFd as _;
    use std::thread;

    use super::*;

    #[test]
    fn a_limit_is_never_lowered() {
        let limit = raise(0);
        assert!(limit > 0);
        assert!(raise(1) >= limit);
        // Beyond what any kernel allows: the hard limit is what remains.
        assert!(raise(u64::MAX / 2) >= limit);
    }

    #[test]
    fn what_a_thread_opens_in_its_own_table_is_not_open_in_another() {
        let opened = thread::spawn(|| {
            own_table().unwrap();
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let number = socket.as_raw_fd();
            // `self` is the main thread, which shares the table that this one has left; parallel tests may have the number there.
            let own = std::fs::read_link(format!("/proc/thread-self/fd/{number}")).unwrap();
            let shared = std::fs::read_link(format!("/proc/self/fd/{number}")).ok();
            assert_ne!(shared, Some(own));
            let other = thread::spawn(move || {
                // A thread is born into the table of the thread that starts it.
                // SAFETY: takes numbers.
                unsafe { libc::fcntl(number, libc::F_GETFD) }
            });
            assert_eq!(other.join().unwrap(), libc::FD_CLOEXEC);
            own_table().unwrap();
            drop(socket);
            number
        });
        opened.join().unwrap();
    }
}
