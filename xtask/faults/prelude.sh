#!/bin/sh
# Functions that every script of a fault may use. PID is the service, GROUP a path of control groups that is unique to the trial.
CG=/sys/fs/cgroup

# A process and its descendants.
family() {
    echo "$1"
    for child in $(cat /proc/"$1"/task/*/children 2>/dev/null); do family "$child"; done
}

# group CONTROLLER [PATH]: puts the service with its children into a group of its own and prints its folder.
group() {
    folder=$CG/$1/${2:-$GROUP}
    mkdir -p "$folder"
    if [ "$1" = cpuset ]; then
        path=$folder
        until [ "$path" = $CG/cpuset ]; do levels="$path ${levels:-}"; path=${path%/*}; done
        for level in $levels; do cat $CG/cpuset/cpuset.cpus > "$level/cpuset.cpus"; cat $CG/cpuset/cpuset.mems > "$level/cpuset.mems"; done
    fi
    for pid in $(family "$PID"); do echo "$pid" > "$folder/cgroup.procs"; done
    echo "$folder"
}

# leave CONTROLLER: puts it back to the top.
leave() {
    for pid in $(family "$PID"); do echo "$pid" > $CG/"$1"/cgroup.procs; done
}

# more FILE FIELD AT_LEAST: the first number behind a word in a file, if it is that much.
more() {
    awk -v field="$2" -v least="$3" '$1 == field { print field, $2; if ($2 + 0 >= least) good = 1 } END { exit !good }' "$1"
}

# counter NAME AT_LEAST: a counter of this namespace as nstat names it.
counter() {
    nstat -asz "$1" | awk -v least="$2" '$1 !~ /^#/ { print $1, $2; if ($2 + 0 >= least) good = 1 } END { exit !good }'
}

# qdisc AT_LEAST: packets that qdiscs dropped or held back.
qdisc() {
    tc -s qdisc show dev "$DEV" | tr -d ',)' | awk -v least="$1" '
        { for (i = 1; i < NF; i++) if ($i == "dropped" || $i == "overlimits") sum += $(i + 1) }
        END { print "dropped and over limits", sum + 0; exit !(sum + 0 >= least) }'
}

# rules AT_LEAST: packets that counting nft rules took, here or in the client's namespace.
rules() {
    { nft list ruleset; nsenter --net=/run/netns/"$CLIENT_NS" nft list ruleset; } | awk -v least="$1" '
        { for (i = 1; i < NF; i++) if ($i == "packets") sum += $(i + 1) }
        END { print "packets taken by rules", sum + 0; exit !(sum + 0 >= least) }'
}

# client COMMAND...: in the client's namespace.
client() { nsenter --net=/run/netns/"$CLIENT_NS" -- "$@"; }

# delay: nanoseconds that threads of the service waited for a CPU.
delay() {
    for pid in $(family "$PID"); do cat /proc/"$pid"/task/*/schedstat 2>/dev/null; done | awk '{ sum += $2 } END { printf "%.0f\n", sum }'
}

# waited AT_LEAST_MS: the same since `delay > delay.before`.
waited() {
    awk -v before="$(cat delay.before)" -v now="$(delay)" -v least="$1" \
        'BEGIN { ms = (now - before) / 1e6; printf "run delay %.0f ms\n", ms; exit !(ms >= least) }'
}

# spin NUMBER [COMMAND...]: so many processes that only use a CPU, through a command such as chrt.
spin() {
    count=$1
    shift
    while [ "$count" -gt 0 ]; do
        "$@" perl -e '1 while 1' &
        count=$((count - 1))
    done
}

# duty MILLISECONDS ON OFF: runs ON, MILLISECONDS later OFF, each second.
duty() {
    perl -e 'my ($ms, $on, $off) = @ARGV;
        while (1) { system($on); select(undef, undef, undef, $ms / 1000); system($off); select(undef, undef, undef, 1 - $ms / 1000) }' "$1" "$2" "$3" &
}

# disk MEGABYTES: a small ext4 file system on a loop device at ./disk; LOOP is its device, LOOPNO its numbers.
disk() {
    truncate -s "$1M" disk.img
    mkfs.ext4 -q -F disk.img
    mkdir -p disk
    mount -o loop disk.img disk
    chmod 777 disk
}

# slowdisk MEGABYTES: the same, with its file on another file system at ./below, so that `stops` can make it slow.
slowdisk() {
    mkdir -p below disk
    fallocate -l "$(($1 + 40))M" below.img
    mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0,nodiscard below.img
    mount -o loop,barrier=0 below.img below
    fallocate -l "$1M" below/disk.img
    mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0,nodiscard below/disk.img
    mount -o loop,nodiscard below/disk.img disk
    chmod 777 disk
}

# limiteddisk MEGABYTES: the same, on a disk that carries 8 MB a second, of all programs together.
limiteddisk() {
    mkdir -p served disk
    nbdfuse "$TMP/served/disk" [ nbdkit --filter=rate memory "$1M" rate=64000000 burstiness=0.05 ] &
    until [ -e served/disk ]; do sleep 0.05; done
    mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0,nodiscard served/disk
    mount -o loop,nodiscard served/disk disk
    chmod 777 disk
}

# stops STOPPED_MS WORKING_MS: a slow disk stops for so long, works for so long, and again. Undo it by `fsfreeze --unfreeze below`.
stops() {
    perl -e 'open my $disk, "<", shift or die $!;
        my ($stopped, $working) = map { $_ / 1000 } @ARGV;
        while (1) {
            ioctl $disk, 0xc0045877, 0; select undef, undef, undef, $stopped;
            ioctl $disk, 0xc0045878, 0; select undef, undef, undef, $working;
        }' "$TMP/below/disk.img" "$1" "$2" &
}

loop() { findmnt --noheadings --output SOURCE "$TMP/disk"; }
loopno() { findmnt --noheadings --output MAJ:MIN "$TMP/disk" | tr -d ' '; }

# A DNS server where the client is, which echoes each query after the milliseconds in dns.delay.
slow_dns() {
    client perl -MIO::Socket::INET -MTime::HiRes=sleep -e '
        $SIG{CHLD} = "IGNORE";
        my $socket = IO::Socket::INET->new(LocalAddr => "10.83.0.2", LocalPort => 53, Proto => "udp") or die "port 53: $!";
        while (1) {
            my $to = recv $socket, my $query, 512, 0 or next;
            next if fork;
            open my $file, "<", $ARGV[0];
            sleep <$file> / 1000 if $file;
            send $socket, $query, 0, $to;
            exit;
        }' "$TMP/dns.delay" &
}

# unix_app BACKLOG: an application of two processes on a Unix socket, 5 ms for each request.
unix_app() {
    perl -MIO::Socket::UNIX -MTime::HiRes=sleep -e '
        my ($path, $backlog) = @ARGV;
        unlink $path;
        umask 0;
        my $socket = IO::Socket::UNIX->new(Local => $path, Listen => $backlog) or die "$path: $!";
        fork;
        while (1) {
            my $client = $socket->accept or next;
            sysread $client, my $request, 4096;
            sleep 0.005;
            syswrite $client, "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nok\n";
            close $client;
        }' "$TMP/app.sock" "$1" &
    until [ -S "$TMP/app.sock" ]; do sleep 0.02; done
}
