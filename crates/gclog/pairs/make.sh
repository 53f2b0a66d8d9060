#!/bin/sh
# Makes the logs of this folder: each pair differs in one option. Needs java 8, 11, 17, 21 and 25, javac 17, and the right to run
# at real-time priority (chrt).
# Usage: ./make.sh JAVA8 JAVA11 JAVA17 JAVA21 JAVA25 [NAME...]; takes one to three minutes for each log.
set -eu
cd "$(dirname "$0")"
java8=$1 java11=$2 java17=$3 java21=$4 java25=$5
shift 5
classes=$(mktemp -d)
trap 'rm -rf "$classes"' EXIT
javac --release 8 -Xlint:-options -d "$classes" Steady.java Sessions.java

program=Steady
seconds=60
# name, JVM, MB per second, options
run() {
    name=$1 java=$2 rate=$3
    shift 3
    case " $only " in "  " | *" $name "*) ;; *) return 0 ;; esac
    case $java in
        "$java8") log="-XX:+PrintGCDetails -XX:+PrintGCTimeStamps -XX:+PrintTenuringDistribution -Xloggc:$name.log" ;;
        *) log="-Xlog:gc*=info,gc+age=trace,arguments=info:file=$name.log:uptime,level,tags" ;;
    esac
    # shellcheck disable=SC2086
    (cd "$classes" && chrt -r 5 "$java" $log "$@" -XX:ParallelGCThreads=2 $program "$rate" "$seconds")
    gzip -9n <"$classes/$name.log" >"$name.log.gz"
}
only=$*

serial="-XX:+UseSerialGC"
run serial-base "$java17" 100 $serial -Xms144m -Xmx144m -Xmn48m -XX:SurvivorRatio=2
run serial-young-96m "$java17" 100 $serial -Xms144m -Xmx144m -Xmn96m -XX:SurvivorRatio=2
run serial-rate-50 "$java17" 50 $serial -Xms144m -Xmx144m -Xmn48m -XX:SurvivorRatio=2
run serial-survivor-ratio-6 "$java17" 100 $serial -Xms144m -Xmx144m -Xmn48m -XX:SurvivorRatio=6
run serial-heap-96m "$java17" 100 $serial -Xms96m -Xmx96m -Xmn48m -XX:SurvivorRatio=2
# Full collections are three quarters of a minute apart.
seconds=150
run serial-heap-192m "$java17" 100 $serial -Xms192m -Xmx192m -Xmn48m -XX:SurvivorRatio=2
seconds=60

cms="-XX:+UseConcMarkSweepGC -Xmn64m -XX:CMSInitiatingOccupancyFraction=70 -XX:+UseCMSInitiatingOccupancyOnly"
run cms-base "$java8" 100 $cms -Xms128m -Xmx128m -XX:SurvivorRatio=2 -XX:MaxTenuringThreshold=15
run cms-tenuring-2 "$java8" 100 $cms -Xms128m -Xmx128m -XX:SurvivorRatio=2 -XX:MaxTenuringThreshold=2
run cms-survivor-ratio-16 "$java8" 100 $cms -Xms128m -Xmx128m -XX:SurvivorRatio=16 -XX:MaxTenuringThreshold=15
seconds=120
run cms-heap-176m "$java8" 100 $cms -Xms176m -Xmx176m -XX:SurvivorRatio=2 -XX:MaxTenuringThreshold=15
seconds=60

parallel="-XX:+UseParallelGC -XX:-UseAdaptiveSizePolicy -Xmn64m"
run parallel-base "$java17" 100 $parallel -Xms128m -Xmx128m -XX:SurvivorRatio=2 -XX:MaxTenuringThreshold=2
run parallel-tenuring-6 "$java17" 100 $parallel -Xms128m -Xmx128m -XX:SurvivorRatio=2 -XX:MaxTenuringThreshold=6
run parallel-survivor-ratio-8 "$java17" 100 $parallel -Xms128m -Xmx128m -XX:SurvivorRatio=8 -XX:MaxTenuringThreshold=2
# Full collections are half a minute apart.
seconds=150
run parallel-heap-192m "$java17" 100 $parallel -Xms192m -Xmx192m -XX:SurvivorRatio=2 -XX:MaxTenuringThreshold=2
seconds=60

g1="-XX:+UseG1GC -XX:G1HeapRegionSize=1m"
run g1-base "$java21" 100 $g1 -Xms192m -Xmx192m -Xmn32m
run g1-young-64m "$java21" 100 $g1 -Xms192m -Xmx192m -Xmn64m
# With the survivor space of the base G1 lowers the threshold to one by itself.
run g1-survivor-ratio-2 "$java21" 100 $g1 -Xms192m -Xmx192m -Xmn32m -XX:SurvivorRatio=2
run g1-survivor-ratio-2-tenuring-2 "$java21" 100 $g1 -Xms192m -Xmx192m -Xmn32m -XX:SurvivorRatio=2 -XX:MaxTenuringThreshold=2
seconds=120
run g1-heap-288m "$java21" 100 $g1 -Xms288m -Xmx288m -Xmn32m
seconds=60

zgc="-XX:+UseZGC -XX:-ZProactive"
run zgc-base "$java21" 100 $zgc -Xms192m -Xmx192m
run zgc-heap-384m "$java21" 100 $zgc -Xms384m -Xmx384m

# What follows was not there when the model was made: other JVMs, another program whose objects live otherwise, other distances. It
# shows how often the intervals hold.
program=Sessions
seconds=90

serial="-XX:+UseSerialGC -XX:SurvivorRatio=4"
run held-serial-base "$java25" 60 $serial -Xms128m -Xmx128m -Xmn30m
run held-serial-young-75m "$java25" 60 $serial -Xms128m -Xmx128m -Xmn75m
seconds=180
run held-serial-heap-176m "$java25" 60 $serial -Xms176m -Xmx176m -Xmn30m
seconds=90

parallel="-XX:+UseParallelGC -XX:-UseAdaptiveSizePolicy -Xms112m -Xmx112m -Xmn48m -XX:MaxTenuringThreshold=4"
run held-parallel-base "$java21" 60 $parallel -XX:SurvivorRatio=3
run held-parallel-survivor-ratio-10 "$java21" 60 $parallel -XX:SurvivorRatio=10
run held-parallel-rate-90 "$java21" 90 $parallel -XX:SurvivorRatio=3

cms="-XX:+UseConcMarkSweepGC -Xmn72m -XX:SurvivorRatio=2 -XX:CMSInitiatingOccupancyFraction=60 -XX:+UseCMSInitiatingOccupancyOnly"
run held-cms-base "$java11" 60 $cms -Xms140m -Xmx140m -XX:MaxTenuringThreshold=6
run held-cms-tenuring-1 "$java11" 60 $cms -Xms140m -Xmx140m -XX:MaxTenuringThreshold=1
seconds=180
run held-cms-heap-200m "$java11" 60 $cms -Xms200m -Xmx200m -XX:MaxTenuringThreshold=6
seconds=90

g1="-XX:+UseG1GC -XX:G1HeapRegionSize=1m -Xms160m -Xmx160m -Xmn40m"
run held-g1-base "$java25" 60 $g1 -XX:MaxTenuringThreshold=10
run held-g1-survivor-ratio-3 "$java25" 60 $g1 -XX:MaxTenuringThreshold=10 -XX:SurvivorRatio=3
run held-g1-survivor-ratio-3-tenuring-1 "$java25" 60 $g1 -XX:MaxTenuringThreshold=1 -XX:SurvivorRatio=3

# These were made after the model had been mended by what those before showed; and so the ones behind them.
seconds=90
serial="-XX:+UseSerialGC -XX:SurvivorRatio=3 -Xms120m -Xmx120m"
run second-serial-base "$java11" 80 $serial -Xmn40m
run second-serial-young-64m "$java11" 80 $serial -Xmn64m

parallel="-XX:+UseParallelGC -XX:-UseAdaptiveSizePolicy -XX:SurvivorRatio=4 -XX:MaxTenuringThreshold=3"
run second-parallel-base "$java25" 40 $parallel -Xms96m -Xmx96m -Xmn32m
run second-parallel-young-56m "$java25" 40 $parallel -Xms96m -Xmx96m -Xmn56m
run second-parallel-heap-128m "$java25" 40 $parallel -Xms128m -Xmx128m -Xmn32m

cms="-XX:+UseConcMarkSweepGC -Xms120m -Xmx120m -Xmn50m -XX:CMSInitiatingOccupancyFraction=65 -XX:+UseCMSInitiatingOccupancyOnly"
run second-cms-base "$java8" 70 $cms -XX:SurvivorRatio=1
run second-cms-survivor-ratio-5 "$java8" 70 $cms -XX:SurvivorRatio=5

g1="-XX:+UseG1GC -XX:G1HeapRegionSize=1m -Xms140m -Xmx140m -XX:SurvivorRatio=4"
run second-g1-base "$java17" 50 $g1 -Xmn36m
run second-g1-young-60m "$java17" 50 $g1 -Xmn60m

serial="-XX:+UseSerialGC -Xms110m -Xmx110m -Xmn36m"
run third-serial-base "$java8" 50 $serial -XX:SurvivorRatio=2
run third-serial-survivor-ratio-9 "$java8" 50 $serial -XX:SurvivorRatio=9

parallel="-XX:+UseParallelGC -XX:-UseAdaptiveSizePolicy -Xms100m -Xmx100m -Xmn40m -XX:SurvivorRatio=2"
run third-parallel-base "$java8" 60 $parallel -XX:MaxTenuringThreshold=5
run third-parallel-tenuring-1 "$java8" 60 $parallel -XX:MaxTenuringThreshold=1

g1="-XX:+UseG1GC -XX:G1HeapRegionSize=1m -XX:SurvivorRatio=3"
run third-g1-base "$java11" 70 $g1 -Xms176m -Xmx176m -Xmn44m
run third-g1-young-30m "$java11" 70 $g1 -Xms176m -Xmx176m -Xmn30m
run third-g1-heap-240m "$java11" 70 $g1 -Xms240m -Xmx240m -Xmn44m

cms="-XX:+UseConcMarkSweepGC -Xms130m -Xmx130m -XX:SurvivorRatio=3 -XX:CMSInitiatingOccupancyFraction=50 -XX:+UseCMSInitiatingOccupancyOnly"
run third-cms-base "$java11" 50 $cms -Xmn64m
run third-cms-young-40m "$java11" 50 $cms -Xmn40m
