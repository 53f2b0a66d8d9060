//! The open file limit of a running process: connections, logs, libraries.

use crate::edit::{Edit, Place, Thread};
use crate::error::{Error, Result};
use crate::knob::{COMMON, Context, Current, Doc, Draft, Knob};
use crate::open_files::OpenFiles;
use crate::target::Target;
use crate::turn::Turn;

/// `rpc.nofile`
pub(crate) static KNOB: Knob = Knob {
    id: "rpc.nofile",
    summary: "how many files, and so connections, a process may have open",
    values: "PID:NUMBER for a running process, such as 4242:65536",
    doc: Doc {
        does: "Sets the limit in force (RLIMIT_NOFILE, soft). The hard limit is raised only where it is lower.",
        helps: "When a process has used more than four fifths of its limit, or its log shows EMFILE or \"too many open \
                files\".",
        costs: "Kernel memory per open file. A program that uses select(2) breaks above 1024 of them.",
        undone: "Both limits are restored, unless they were changed since or the process has ended. Open files stay \
                 open.",
        sources: "prlimit(2), getrlimit(2); A-Tune's profile for Dubbo sets 32768. To keep it, LimitNOFILE= of systemd.exec(5).",
    },
    writes: &[Target::OpenFiles],
    turn: Turn::Own { read, draft },
    ..COMMON
};

#[expect(
    clippy::unnecessary_wraps,
    reason = "the signature that a turn asks for"
)]
fn read(_: &Context<'_>) -> Result<Current> {
    Ok(Current::unknown(
        "every process has its own limit; run `rungwise check --pid PID`",
    ))
}

fn draft(context: &Context<'_>, wish: &str) -> Result<Draft> {
    let bad = |why: String| KNOB.bad_wish(wish, why);
    let (pid, number) = wish
        .split_once(':')
        .ok_or_else(|| bad("it names no process".to_owned()))?;
    let pid: u32 = pid
        .parse()
        .map_err(|_| bad(format!("'{pid}' is not a process id")))?;
    let soft: u64 = number
        .parse()
        .map_err(|_| bad(format!("'{number}' is not a number of files")))?;
    let failed = |answer| {
        let tried = format!("read the limits of process {pid}");
        Error::kernel(KNOB.id, tried, context.machine.name(), answer)
    };
    let process = Thread::find(context.machine, pid, pid).map_err(failed)?;
    let now = OpenFiles::read(context.machine, &process).map_err(failed)?;
    let hard = now.hard.max(soft);
    let value = OpenFiles { soft, hard }.to_string();
    let edit = Edit::OpenFiles { process, value };
    Ok(Draft::default().edit(&Place::Host, edit))
}
