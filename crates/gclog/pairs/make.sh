#!/bin/sh
# Makes the logs of this folder: each pair differs in one option. Needs java 8, 17 and 21, and javac 17.
# Usage: ./make.sh JAVA8 JAVA17 JAVA21 [NAME...]; takes about a minute for each log.
set -eu
cd "$(dirname "$0")"
java8=$1 java17=$2 java21=$3
shift 3
classes=$(mktemp -d)
trap 'rm -rf "$classes"' EXIT
javac --release 8 -Xlint:-options -d "$classes" Steady.java

seconds=60
# name, JVM, MB per second, options
run() {
    name=$1 java=$2 rate=$3
    shift 3
    case " $only " in "  " | *" $name "*) ;; *) return ;; esac
    case $java in
        "$java8") log="-XX:+PrintGCDetails -XX:+PrintGCTimeStamps -XX:+PrintTenuringDistribution -Xloggc:$name.log" ;;
        *) log="-Xlog:gc*=info,gc+age=trace,arguments=info:file=$name.log:uptime,level,tags" ;;
    esac
    # shellcheck disable=SC2086
    (cd "$classes" && "$java" $log "$@" -XX:ParallelGCThreads=2 Steady "$rate" "$seconds")
    gzip -9n <"$classes/$name.log" >"$name.log.gz"
}
only=$*

serial="-XX:+UseSerialGC -Xms144m -Xmx144m -XX:SurvivorRatio=2"
run serial-base "$java17" 100 $serial -Xmn48m
run serial-young-96m "$java17" 100 $serial -Xmn96m
run serial-rate-50 "$java17" 50 $serial -Xmn48m

cms="-XX:+UseConcMarkSweepGC -Xms128m -Xmx128m -Xmn64m -XX:CMSInitiatingOccupancyFraction=70 -XX:+UseCMSInitiatingOccupancyOnly"
run cms-base "$java8" 100 $cms -XX:SurvivorRatio=2 -XX:MaxTenuringThreshold=15
run cms-tenuring-2 "$java8" 100 $cms -XX:SurvivorRatio=2 -XX:MaxTenuringThreshold=2
run cms-survivor-ratio-16 "$java8" 100 $cms -XX:SurvivorRatio=16 -XX:MaxTenuringThreshold=15

parallel="-XX:+UseParallelGC -XX:-UseAdaptiveSizePolicy -Xmn64m -XX:SurvivorRatio=2"
run parallel-base "$java17" 100 $parallel -Xms128m -Xmx128m -XX:MaxTenuringThreshold=2
run parallel-tenuring-6 "$java17" 100 $parallel -Xms128m -Xmx128m -XX:MaxTenuringThreshold=6
# Full collections are half a minute apart.
seconds=150
run parallel-heap-192m "$java17" 100 $parallel -Xms192m -Xmx192m -XX:MaxTenuringThreshold=2
seconds=60

g1="-XX:+UseG1GC -Xms192m -Xmx192m -XX:G1HeapRegionSize=1m"
run g1-base "$java21" 100 $g1 -Xmn32m
run g1-young-64m "$java21" 100 $g1 -Xmn64m

zgc="-XX:+UseZGC -XX:-ZProactive"
run zgc-base "$java21" 100 $zgc -Xms192m -Xmx192m
run zgc-heap-384m "$java21" 100 $zgc -Xms384m -Xmx384m
