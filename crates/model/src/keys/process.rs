//! Keys: what processes are held by, wait for and run out of.

keys! { PROCESS;
    DEPENDENCY_CLIENTS = "dependency.clients", Count, Process, "Client connections of the process whose request has been unanswered for more than 20 ms, median of the samples";
    DEPENDENCY_CLIENT_WAIT = "dependency.client_wait", Seconds, Process, "Median time for which these requests have been unanswered";
    DEPENDENCY_CONNECTING = "dependency.connecting", Count, Process, "Connection attempts of the process that stayed unanswered from one sample to the next";
    DEPENDENCY_CONNECTING_TO = "dependency.connecting_to", Text, Process, "Where most of them go";
    DEPENDENCY_RESOLVER = "dependency.resolver", Text, Process, "DNS server that has not answered";
    DEPENDENCY_RESOLVING = "dependency.resolving", Count, Process, "DNS queries of the process that stayed unanswered from one sample to the next";
    DEPENDENCY_SAMPLES = "dependency.samples", Count, Host, "Samples of the sockets in which open requests were looked for";
    DEPENDENCY_UPSTREAM = "dependency.upstream", Text, Process, "Server that owes the process most answers";
    DEPENDENCY_WAIT = "dependency.wait", Seconds, Process, "Median time for which that server has not answered, of the requests it has acknowledged";
    DEPENDENCY_WAITING = "dependency.waiting", Count, Process, "Requests to that server unanswered for more than 20 ms, median of the samples";
    FILES_OPEN = "files.open", Fraction, Host, "Open files of the machine as a share of fs.file-max";
    LOCK_DATABASE_BACKENDS = "lock.database_backends", Count, Host, "PostgreSQL: client backends at the end of the window";
    LOCK_DATABASE_WAITING = "lock.database_waiting", Fraction, Process, "PostgreSQL: share of the busy client backends that wait for a heavyweight lock, median of the samples";
    LOCK_DATABASE_WAITERS = "lock.database_waiters", Count, Process, "PostgreSQL: client backends that wait for a heavyweight lock, median of the samples";
    LOCK_USER_MOVING = "lock.user_moving", Fraction, Process, "Share of the threads at the most waited-for lock that ran since the sample before";
    LOCK_USER_WAITERS = "lock.user_waiters", Count, Process, "Threads that sleep for the same held userspace lock, median of the samples";
    PROCESS_ALLOWED = "process.allowed", Text, Process, "CPUs on which its first thread may run";
    PROCESS_BLOCKED = "process.blocked", Fraction, Process, "Share of the samples in which its first thread was in an uninterruptible wait (state D)";
    PROCESS_BUSIEST_DELAY = "process.busiest_delay", Fraction, Process, "Share of the window in which its busiest thread waited for a CPU";
    PROCESS_BUSIEST_NAME = "process.busiest_name", Text, Process, "Name and id of its busiest thread";
    PROCESS_BUSIEST_THREAD = "process.busiest_thread", Fraction, Process, "CPU time of its busiest thread as a share of the window";
    PROCESS_CHILDREN_CPU = "process.children_cpu", Ratio, Process, "CPU time of its children that ended in the window, in CPUs";
    PROCESS_DESCRIPTORS = "process.descriptors", Fraction, Process, "Open file descriptors as a share of its limit (RLIMIT_NOFILE)";
    PROCESS_DESCRIPTOR_LIMIT = "process.descriptor_limit", Count, Process, "Its limit of open file descriptors";
    PROCESS_PARENT = "process.parent", Count, Process, "Pid of its parent";
    PROCESS_SCHEDULING = "process.scheduling", Text, Process, "Scheduling policy and nice value where they are not the usual ones: SCHED_FIFO, SCHED_IDLE, nice 19; else normal";
    PROCESS_SLEEPS = "process.sleeps", Text, Process, "Kernel functions in which its threads sleep, with the number of threads";
    PROCESS_STOPPED = "process.stopped", Text, Process, "Stopped by a signal: in every sample, with a terminal (a job of a shell) or without; or now and then, in some";
    PROCESS_THREADS = "process.threads", Count, Process, "Threads";
    PROCESS_THREADS_ADDED = "process.threads_added", Count, Process, "Threads at the end of the window less those at its begin";
    PROCESS_TRACER = "process.tracer", Text, Process, "Process that traces it (ptrace): name and pid";
    PROCESS_UNREAD = "process.unread", Count, Process, "Its connections with data that it has not read, those in its accept queues included, in every sample";
    PROCESS_ZOMBIES = "process.zombies", Count, Process, "Children that ended and that it has not waited for";
    TASKS_MADE = "tasks.made", PerSecond, Host, "Processes and threads made (fork, clone)";
    TASKS_SHARE = "tasks.share", Fraction, Host, "Processes and threads of the machine as a share of the smaller of kernel.pid_max and kernel.threads-max";
}
