//! What a thread waits for that no thread owns: a connection of a pool, a permit, a latch, an answer.
//!
//! The object that a thread parks on says little (a node, a condition), so the frames decide. The frames of a pool come first: HikariCP
//! waits in `SynchronousQueue.poll`, which in other stacks means that a thread has nothing to do.

use std::sync::Arc;

use crate::dump::{How, State, Thread};
use crate::frame::{self, method};

/// Frames within which a call that waits is looked for, innermost first.
const NEAR: usize = 24;

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Something that a pool lends: a connection, an object.
    Lent(&'static Library),
    Semaphore,
    Latch,
    Barrier,
    Phaser,
    Exchanger,
    /// A result that a thread of a pool computes: `FutureTask`, `ForkJoinTask`.
    Task,
    /// A result that anything may complete, also a selector.
    Future,
    /// A reply of another process, through a client library that multiplexes its connections.
    Reply(&'static Client),
    /// Room in a queue.
    Room,
    Condition,
    /// The end of a thread.
    Join,
    /// `Object.wait`.
    Notify,
}

/// A pool by its frames.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Library {
    pub(crate) name: &'static str,
    /// What it lends.
    pub(crate) lends: &'static str,
    /// Beginning of the first frame that is not of the JDK.
    package: &'static str,
    /// Beginnings of frames, one of which is on the stack of a thread that waits.
    calls: &'static [&'static str],
}

/// A client library whose callers wait for another thread to read the reply.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Client {
    pub(crate) name: &'static str,
    /// What its callers wait for.
    reply: &'static str,
    /// Beginnings of frames, one of which is on the stack of a thread that waits, near the call that waits.
    calls: &'static [&'static str],
    /// Beginnings of frames between the wait and the code that asked for it.
    packages: &'static [&'static str],
}

/// Clients and the calls in which they wait, seen in dumps: `OkHttp` 4.12 over HTTP/2, `java.net.http` of JDK 17, Lettuce 6. `OkHttp` over
/// HTTP/1.1 reads from its socket instead, and its asynchronous calls wait in a queue without a thread.
static CLIENTS: [Client; 3] = [
    Client {
        name: "OkHttp",
        reply: "an HTTP reply",
        calls: &["okhttp3.internal.http2.Http2Stream"],
        packages: &["okhttp3.", "retrofit2."],
    },
    Client {
        name: "java.net.http",
        reply: "an HTTP reply",
        calls: &["jdk.internal.net.http.HttpClientImpl.send"],
        packages: &[],
    },
    Client {
        name: "Lettuce",
        reply: "a Redis reply",
        calls: &[
            "io.lettuce.core.protocol.AsyncCommand.await",
            "io.lettuce.core.internal.Futures.await",
            "io.lettuce.core.LettuceFutures.await",
        ],
        packages: &["io.lettuce.", "org.springframework.data.redis."],
    },
];

const CONNECTION: &str = "a database connection";
const HTTP: &str = "an HTTP connection";

/// Pools and the calls in which they wait, seen in dumps (HikariCP 4, DBCP 2, c3p0, Druid, Tomcat, `HttpClient` 4 and 5, Jedis) or read in
/// their source (the others). More special ones first: DBCP, Jedis and Lettuce borrow from commons-pool2.
static LIBRARIES: [Library; 18] = [
    Library {
        name: "HikariCP",
        lends: CONNECTION,
        package: "com.zaxxer.hikari.",
        calls: &["com.zaxxer.hikari.util.ConcurrentBag.borrow"],
    },
    Library {
        name: "Druid",
        lends: CONNECTION,
        package: "com.alibaba.druid.pool.",
        calls: &[
            "com.alibaba.druid.pool.DruidDataSource.takeLast",
            "com.alibaba.druid.pool.DruidDataSource.pollLast",
        ],
    },
    Library {
        name: "c3p0",
        lends: CONNECTION,
        package: "com.mchange.v2.resourcepool.",
        calls: &["com.mchange.v2.resourcepool.BasicResourcePool.awaitAvailable"],
    },
    Library {
        name: "Tomcat JDBC",
        lends: CONNECTION,
        package: "org.apache.tomcat.jdbc.pool.",
        calls: &["org.apache.tomcat.jdbc.pool.ConnectionPool.borrowConnection"],
    },
    Library {
        name: "Tomcat DBCP",
        lends: CONNECTION,
        package: "org.apache.tomcat.dbcp.pool2.",
        calls: &["org.apache.tomcat.dbcp.dbcp2."],
    },
    Library {
        name: "DBCP",
        lends: CONNECTION,
        package: "org.apache.commons.pool2.",
        calls: &["org.apache.commons.dbcp2."],
    },
    Library {
        name: "DBCP",
        lends: CONNECTION,
        package: "org.apache.commons.pool.",
        calls: &["org.apache.commons.dbcp."],
    },
    Library {
        name: "Jedis",
        lends: "a Redis connection",
        package: "org.apache.commons.pool2.",
        calls: &["redis.clients.jedis."],
    },
    Library {
        name: "Lettuce",
        lends: "a Redis connection",
        package: "org.apache.commons.pool2.",
        calls: &["io.lettuce.core.", "org.springframework.data.redis."],
    },
    Library {
        name: "commons-pool",
        lends: "an object of a pool",
        package: "org.apache.commons.pool",
        calls: &[
            "org.apache.commons.pool2.impl.GenericObjectPool.borrowObject",
            "org.apache.commons.pool2.impl.GenericKeyedObjectPool.borrowObject",
            "org.apache.commons.pool.impl.GenericObjectPool.borrowObject",
            "org.apache.commons.pool.impl.GenericKeyedObjectPool.borrowObject",
        ],
    },
    Library {
        name: "HttpClient 4",
        lends: HTTP,
        package: "org.apache.http.",
        calls: &[
            "org.apache.http.pool.AbstractConnPool.getPoolEntryBlocking",
            "org.apache.http.impl.conn.PoolingHttpClientConnectionManager.leaseConnection",
        ],
    },
    Library {
        name: "HttpClient 5",
        lends: HTTP,
        package: "org.apache.hc.core5.",
        calls: &["org.apache.hc.client5.http.impl.io.PoolingHttpClientConnectionManager"],
    },
    Library {
        name: "HttpClient 3",
        lends: HTTP,
        package: "org.apache.commons.httpclient.",
        calls: &[
            "org.apache.commons.httpclient.MultiThreadedHttpConnectionManager.doGetConnection",
        ],
    },
    Library {
        name: "the MongoDB driver",
        lends: CONNECTION,
        package: "com.mongodb.",
        calls: &[
            "com.mongodb.internal.connection.ConcurrentPool.",
            "com.mongodb.internal.connection.DefaultConnectionPool.",
        ],
    },
    Library {
        name: "Agroal",
        lends: CONNECTION,
        package: "io.agroal.pool.",
        calls: &["io.agroal.pool.ConnectionPool.handlerFromSharedCache"],
    },
    Library {
        name: "BoneCP",
        lends: CONNECTION,
        package: "com.jolbox.bonecp.",
        calls: &["com.jolbox.bonecp.DefaultConnectionStrategy.getConnectionInternal"],
    },
    Library {
        name: "Vibur",
        lends: CONNECTION,
        package: "org.vibur.objectpool.",
        calls: &["org.vibur.dbcp."],
    },
    Library {
        name: "Oracle UCP",
        lends: CONNECTION,
        package: "oracle.ucp.",
        calls: &["oracle.ucp.common.UniversalConnectionPoolBase.borrowConnection"],
    },
];

/// Calls that wait, by the end of class and method; the first that fits a frame, innermost frame first.
const CALLS: &[(&str, Kind)] = &[
    ("concurrent.Semaphore.acquire", Kind::Semaphore),
    (
        "concurrent.Semaphore.acquireUninterruptibly",
        Kind::Semaphore,
    ),
    ("concurrent.Semaphore.tryAcquire", Kind::Semaphore),
    ("concurrent.CountDownLatch.await", Kind::Latch),
    ("concurrent.CyclicBarrier.await", Kind::Barrier),
    ("concurrent.Phaser.arriveAndAwaitAdvance", Kind::Phaser),
    ("concurrent.Phaser.awaitAdvance", Kind::Phaser),
    ("concurrent.Phaser.awaitAdvanceInterruptibly", Kind::Phaser),
    ("concurrent.Exchanger.exchange", Kind::Exchanger),
    ("concurrent.FutureTask.get", Kind::Task),
    ("concurrent.ForkJoinTask.get", Kind::Task),
    ("concurrent.ForkJoinTask.join", Kind::Task),
    ("concurrent.ForkJoinTask.invoke", Kind::Task),
    ("concurrent.ForkJoinTask.awaitDone", Kind::Task),
    ("concurrent.ForkJoinTask.externalAwaitDone", Kind::Task),
    ("concurrent.CompletableFuture.get", Kind::Future),
    ("concurrent.CompletableFuture.join", Kind::Future),
    (
        "com.google.common.util.concurrent.AbstractFuture.get",
        Kind::Future,
    ),
    (
        "io.netty.util.concurrent.DefaultPromise.await",
        Kind::Future,
    ),
    (
        "scala.concurrent.impl.Promise$DefaultPromise.tryAwait",
        Kind::Future,
    ),
    (
        "kotlinx.coroutines.BlockingCoroutine.joinBlocking",
        Kind::Future,
    ),
    ("Queue.put", Kind::Room),
    ("Deque.put", Kind::Room),
    ("Deque.putFirst", Kind::Room),
    ("Deque.putLast", Kind::Room),
    ("LinkedTransferQueue.transfer", Kind::Room),
    ("java.lang.Thread.join", Kind::Join),
    (
        "AbstractQueuedSynchronizer$ConditionObject.await",
        Kind::Condition,
    ),
    (
        "AbstractQueuedSynchronizer$ConditionObject.awaitNanos",
        Kind::Condition,
    ),
    (
        "AbstractQueuedSynchronizer$ConditionObject.awaitUninterruptibly",
        Kind::Condition,
    ),
    ("java.lang.Object.wait", Kind::Notify),
];

/// What this thread waits for besides a lock. It must wait: a thread that runs in one of these frames is on its way out.
pub(crate) fn kind(thread: &Thread) -> Option<Kind> {
    if thread
        .wait
        .as_ref()
        .is_some_and(|wait| matches!(wait.how, How::Enter | How::Initialise))
    {
        return None;
    }
    if !is_asleep(thread) {
        return None;
    }
    if let Some(library) = library(&thread.frames) {
        return Some(Kind::Lent(library));
    }
    let inner = frame::inner(&thread.frames, NEAR);
    if let Some(client) = client(inner) {
        return Some(Kind::Reply(client));
    }
    let known = inner.iter().filter_map(|frame| {
        let name = method(frame);
        let entry = CALLS.iter().find(|(call, _)| name.ends_with(call))?;
        Some(entry.1)
    });
    // `Object.wait` and conditions are how others are built: what calls them says more.
    let is_plain = |kind: &Kind| matches!(kind, Kind::Condition | Kind::Notify);
    let mut last = None;
    for kind in known {
        if !is_plain(&kind) {
            return Some(kind);
        }
        last = Some(kind);
    }
    last
}

/// It does not run: by its state, and where the dump has none by the call on top.
fn is_asleep(thread: &Thread) -> bool {
    const CALLS: [&str; 5] = [
        "Unsafe.park",
        "VirtualThread.park",
        "VirtualThread.parkNanos",
        "Object.wait",
        "Object.wait0",
    ];
    match thread.state {
        Some(state) => matches!(state, State::Waiting | State::TimedWaiting),
        None => thread.frames.iter().take(2).any(|frame| {
            let name = method(frame);
            CALLS.iter().any(|call| name.ends_with(call))
        }),
    }
}

fn library(frames: &[Arc<str>]) -> Option<&'static Library> {
    let (at, first) = frames
        .iter()
        .enumerate()
        .find(|(_, frame)| !frame::is_of_jdk(frame))?;
    let first = method(first);
    let near = &frames[at..frames.len().min(at + NEAR)];
    LIBRARIES.iter().find(|library| {
        let has_call = || {
            near.iter().any(|frame| {
                let name = method(frame);
                library.calls.iter().any(|call| name.starts_with(call))
            })
        };
        first.starts_with(library.package) && has_call()
    })
}

fn client(inner: &[Arc<str>]) -> Option<&'static Client> {
    CLIENTS.iter().find(|client| {
        inner.iter().any(|frame| {
            let name = method(frame);
            client.calls.iter().any(|call| name.starts_with(call))
        })
    })
}

impl Kind {
    /// In one word, for documents.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Lent(_) => "connection",
            Self::Semaphore => "semaphore",
            Self::Latch => "latch",
            Self::Barrier => "barrier",
            Self::Phaser => "phaser",
            Self::Exchanger => "exchanger",
            Self::Task => "task",
            Self::Future => "future",
            Self::Reply(_) => "reply",
            Self::Room => "full-queue",
            Self::Condition => "condition",
            Self::Join => "thread-end",
            Self::Notify => "notify",
        }
    }

    /// What is waited for, behind "wait for".
    pub(crate) fn what(self) -> String {
        match self {
            Self::Lent(library) => format!("{} of {}", library.lends, library.name),
            Self::Semaphore => "a permit of a Semaphore".to_owned(),
            Self::Latch => "a CountDownLatch".to_owned(),
            Self::Barrier => "the other parties of a CyclicBarrier".to_owned(),
            Self::Phaser => "the other parties of a Phaser".to_owned(),
            Self::Exchanger => "a partner at an Exchanger".to_owned(),
            Self::Task => "the result of a task".to_owned(),
            Self::Future => "a future".to_owned(),
            Self::Reply(client) => format!("{} ({})", client.reply, client.name),
            Self::Room => "room in a full queue".to_owned(),
            Self::Condition => "a condition".to_owned(),
            Self::Join => "a thread to end".to_owned(),
            Self::Notify => "Object.notify".to_owned(),
        }
    }

    /// The thread waits for another thread to compute something.
    pub(crate) fn is_result(self) -> bool {
        matches!(self, Self::Task | Self::Future | Self::Latch)
    }

    /// The package whose frames stand between the wait and the code that asked for it.
    pub(crate) fn packages(self) -> &'static [&'static str] {
        match self {
            Self::Lent(library) if library.package.starts_with("org.apache.commons.pool") => &[
                "org.apache.commons.pool",
                "org.apache.commons.dbcp",
                "redis.clients.",
                "io.lettuce.",
                "org.springframework.",
            ],
            Self::Lent(library) if library.package.starts_with("org.apache.h") => {
                &["org.apache.http.", "org.apache.hc."]
            }
            Self::Lent(library) if library.package.starts_with("com.mchange.") => &["com.mchange."],
            Self::Lent(library) => std::slice::from_ref(&library.package),
            Self::Reply(client) => client.packages,
            _ => &[],
        }
    }

    /// The threads that wait are parties of one meeting: who was there in an earlier dump and is not now is missing.
    pub(crate) fn is_meeting(self) -> bool {
        matches!(self, Self::Barrier | Self::Phaser | Self::Exchanger)
    }

    /// The stack has a call that releases threads which wait for this, as `waiter` does. What releases a permit or what a pool lends is known
    /// by the place in the code instead.
    pub(crate) fn is_released_by(self, frames: &[Arc<str>], waiter: &[Arc<str>]) -> bool {
        let has = |calls: &[&str]| {
            frames.iter().any(|frame| {
                let name = method(frame);
                calls.iter().any(|call| name.starts_with(call))
            })
        };
        match self {
            Self::Latch => has(&["java.util.concurrent.CountDownLatch.countDown"]),
            Self::Phaser => has(&["java.util.concurrent.Phaser.arrive"]),
            Self::Task => has(&[
                "java.util.concurrent.FutureTask.run",
                "java.util.concurrent.ForkJoinTask.doExec",
            ]),
            Self::Future => has(&[
                "java.util.concurrent.CompletableFuture.complete",
                "java.util.concurrent.CompletableFuture.postComplete",
                "java.util.concurrent.CompletableFuture$Async",
                "java.util.concurrent.CompletableFuture$Uni",
                "java.util.concurrent.CompletableFuture$Bi",
            ]),
            Self::Room => queue(waiter).is_some_and(|queue| {
                frames.iter().any(|frame| {
                    let call = method(frame).strip_prefix(queue);
                    call.is_some_and(|call| TAKES.iter().any(|take| call.starts_with(take)))
                })
            }),
            _ => false,
        }
    }
}

/// Methods that make room in a queue.
const TAKES: [&str; 4] = [".take", ".poll", ".drainTo", ".remove"];

/// The class of the queue in which this thread waits for room.
fn queue(waiter: &[Arc<str>]) -> Option<&str> {
    let mut names = waiter.iter().map(|frame| method(frame));
    let puts = |name: &&str| {
        let mut calls = CALLS.iter().filter(|(_, kind)| *kind == Kind::Room);
        calls.any(|(call, _)| name.ends_with(call))
    };
    let (class, _) = names.find(puts)?.rsplit_once('.')?;
    Some(class)
}

/// The innermost frame of the code that waits: neither of the JDK nor of the pool.
pub(crate) fn place(frames: &[Arc<str>], kind: Kind) -> Option<&Arc<str>> {
    let packages = kind.packages();
    frames.iter().find(|frame| {
        let name = method(frame);
        !frame::is_of_jdk(frame) && !packages.iter().any(|package| name.starts_with(package))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(frames: &[&str]) -> Option<Kind> {
        kind(&Thread {
            state: Some(State::Waiting),
            frames: frames.iter().map(|frame| (*frame).into()).collect(),
            ..Thread::default()
        })
    }

    #[test]
    fn a_pool_comes_before_the_queue_it_waits_in() {
        let kind = waits(&[
            "java.util.concurrent.SynchronousQueue.poll(S.java:1)",
            "com.zaxxer.hikari.util.ConcurrentBag.borrow(ConcurrentBag.java:1)",
            "com.zaxxer.hikari.pool.HikariPool.getConnection(HikariPool.java:1)",
            "shop.Orders.load(Orders.java:1)",
        ]);
        assert_eq!(kind, Some(Kind::Lent(&LIBRARIES[0])));
    }

    #[test]
    fn threads_of_a_pool_itself_do_not_ask_for_a_connection() {
        let kind = waits(&[
            "java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject.await(A.java:1)",
            "com.alibaba.druid.pool.DruidDataSource$CreateConnectionThread.run(D.java:1)",
        ]);
        assert_eq!(kind, Some(Kind::Condition));
    }

    #[test]
    fn what_is_built_of_conditions_is_named_for_what_it_is() {
        let condition =
            "java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject.await(A.java:1)";
        for (frames, expected) in [
            (
                &[
                    condition,
                    "java.util.concurrent.CyclicBarrier.await(C.java:1)",
                ][..],
                Some(Kind::Barrier),
            ),
            (
                &[
                    condition,
                    "java.util.concurrent.ArrayBlockingQueue.put(A.java:1)",
                ],
                Some(Kind::Room),
            ),
            (
                &[
                    "java.lang.Object.wait(Native Method)",
                    "java.lang.Thread.join(T.java:1)",
                ],
                Some(Kind::Join),
            ),
            (
                &[condition, "shop.Queue.next(Q.java:1)"],
                Some(Kind::Condition),
            ),
            (&["shop.Queue.next(Q.java:1)"], None),
        ] {
            assert_eq!(waits(frames), expected, "{frames:?}");
        }
    }

    #[test]
    fn a_wait_for_another_process_is_no_plain_future() {
        let get = "java.util.concurrent.CompletableFuture.get(C.java:1)";
        for (frames, what, at) in [
            (
                &[
                    "java.lang.Object.wait(Native Method)",
                    "okhttp3.internal.http2.Http2Stream.waitForIo$okhttp(Http2Stream.kt:1)",
                    "okhttp3.internal.http2.Http2Stream.takeHeaders(Http2Stream.kt:1)",
                    "okhttp3.RealCall.execute(RealCall.kt:1)",
                    "shop.Prices.load(Prices.java:1)",
                ][..],
                "an HTTP reply (OkHttp)",
                "shop.Prices.load",
            ),
            (
                &[
                    get,
                    "jdk.internal.net.http.HttpClientImpl.send(H.java:1)",
                    "shop.Prices.load(Prices.java:1)",
                ],
                "an HTTP reply (java.net.http)",
                "shop.Prices.load",
            ),
            (
                &[
                    get,
                    "io.lettuce.core.protocol.AsyncCommand.await(A.java:1)",
                    "io.lettuce.core.internal.Futures.awaitOrCancel(F.java:1)",
                    "shop.Cart.get(Cart.java:1)",
                ],
                "a Redis reply (Lettuce)",
                "shop.Cart.get",
            ),
            (
                &[get, "shop.Cart.get(Cart.java:1)"],
                "a future",
                "shop.Cart.get",
            ),
        ] {
            let kind = waits(frames).unwrap();
            assert_eq!(kind.what(), what);
            let frames: Vec<Arc<str>> = frames.iter().map(|frame| Arc::from(*frame)).collect();
            assert_eq!(place(&frames, kind).map(|frame| method(frame)), Some(at));
        }
    }

    #[test]
    fn only_what_takes_from_the_same_queue_makes_room_in_it() {
        let frames = |names: &[&str]| -> Vec<Arc<str>> {
            names.iter().map(|name| Arc::from(*name)).collect()
        };
        let waiter = frames(&["java.util.concurrent.ArrayBlockingQueue.put(A.java:1)"]);
        for (taker, makes_room) in [
            (
                "java.util.concurrent.ArrayBlockingQueue.take(A.java:1)",
                true,
            ),
            (
                "java.util.concurrent.LinkedBlockingQueue.take(L.java:1)",
                false,
            ),
            (
                "java.util.concurrent.ArrayBlockingQueue.put(A.java:1)",
                false,
            ),
        ] {
            let released = Kind::Room.is_released_by(&frames(&[taker]), &waiter);
            assert_eq!(released, makes_room, "{taker}");
        }
        let counts = frames(&["java.util.concurrent.CountDownLatch.countDown(C.java:1)"]);
        assert!(Kind::Latch.is_released_by(&counts, &[]));
        assert!(!Kind::Future.is_released_by(&counts, &[]));
    }

    #[test]
    fn the_place_of_a_wait_is_outside_of_the_pool() {
        let frames: Vec<Arc<str>> = [
            "java.lang.Object.wait(Native Method)",
            "com.mchange.v2.resourcepool.BasicResourcePool.awaitAvailable(B.java:1)",
            "com.mchange.v2.c3p0.impl.AbstractPoolBackedDataSource.getConnection(A.java:1)",
            "shop.Orders.load(Orders.java:1)",
        ]
        .map(Arc::from)
        .to_vec();
        let kind = Kind::Lent(library(&frames).unwrap());
        assert_eq!(place(&frames, kind), Some(&frames[3]));
    }
}
