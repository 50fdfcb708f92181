#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
#
# test_cluster.bash - a real multi-node Slurm cluster on one machine, for tests.
#
# Debian 12's own packages (slurm-wlm 22.05, munge), no systemd, loopback only:
# one munged, one slurmctld and N slurmd, one per "node". A node has its own
# host name, its own loopback address (127.0.1.1, 127.0.1.2, ...) that the name
# resolves to on every node, and its own processes; the nodes share the file
# system, the way a cluster's nodes share /home.
#
#   test_cluster.bash up [N]        start N nodes (default 4); nothing to do if they run
#   test_cluster.bash env           print the exports: eval "$(test_cluster.bash env)"
#   test_cluster.bash down          stop all of it, remove its state
#   test_cluster.bash status        processes and sinfo
#   test_cluster.bash kill-node I   power cut on node I: all its processes at once
#   test_cluster.bash kill-slurmd I kill -9 of slurmd only; its steps live on, orphaned
#   test_cluster.bash start-node I  power node I on again, or restart its slurmd
#   test_cluster.bash kill-ctld     kill -9 of slurmctld; jobs run on
#   test_cluster.bash stop-ctld     end slurmctld as its service does: it saves its state first
#   test_cluster.bash start-ctld    start it again; it recovers its state
#   test_cluster.bash kill-dbd      kill -9 of slurmdbd: who asks for accounts gets no answer
#   test_cluster.bash logs [LINES]  the end of every daemon's log
#
# Settings, all optional:
#   TEST_CLUSTER_DIR     state directory   [${TMPDIR:-/tmp}/slurm-test-cluster.<uid>]
#   TEST_CLUSTER_PORT    first TCP port; N+3 are used        [a free block from 17000]
#   TEST_CLUSTER_CPUS    CPUs that each node claims to have                        [2]
#   TEST_CLUSTER_GPUS    fake GPUs per node, for --gpus scripts without GPUs       [0]
#   TEST_CLUSTER_MEMORY  how memory is given out                                [none]
#       none    not at all: a job takes what there is
#       gather  CR_CPU_Memory, TEST_CLUSTER_MEM_PER_CPU MB by default, and a slurmstepd that looks at
#               its processes every second and ends the step that has taken more (OverMemoryKill)
#       cgroup  the same amounts, enforced by the kernel: cgroups, version 1 or 2 as they are mounted
#   TEST_CLUSTER_MEM_PER_CPU  DefMemPerCPU, in MB                                [128]
#   TEST_CLUSTER_ACCOUNTING  1: slurmdbd and mariadbd keep the records, for sacct      [0]
#   TEST_CLUSTER_EPILOG_S  seconds for which every other node is cleared after a job, if
#                        it is not 0; the others take one                          [0]
#   TEST_CLUSTER_MPI     1: also install mpich and libmpich-dev if missing         [0]
#   TEST_CLUSTER_KEEP    1: down keeps the state as <state directory>.last         [0]
#   TEST_CLUSTER_NS      what a node has of its own; needs CAP_SYS_ADMIN           [host]
#       host  host name and /etc/hosts. MPI between nodes runs through shared
#             memory, which works always.
#       full  also process ids, SysV IPC and /dev/shm. MPI between nodes has to
#             use TCP; MPICH 4.0.2 then often hangs in MPI_Finalize (its bug).
#       none  nothing (also taken where namespaces are forbidden): all nodes carry the
#             machine's host name.
#
# It needs root (slurmd, namespaces). It only ever signals processes that it
# started or that its slurmds started, by pid: daemons by the pid and start time
# it wrote down, the others by the marked /etc/hosts that their node gave them.

set -euo pipefail

readonly PROG=${0##*/}
SELF=$(readlink -f -- "${BASH_SOURCE[0]}")
DIR=${TEST_CLUSTER_DIR:-${TMPDIR:-/tmp}/slurm-test-cluster.$(id -u)}
readonly SELF DIR
readonly CONF=$DIR/etc/slurm.conf
readonly MARK=$DIR/.slurm-test-cluster      # this directory is ours to remove
readonly SOCK=$DIR/run/munge.socket
readonly LOCK=${DIR%/}.lock
readonly SAFE_PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

say() { printf '%s: %s\n' "$PROG" "$*" >&2; }
die() { say "error: $*"; exit 1; }

# shellcheck source=tests/slurm/slurmdbd.bash
. "$(dirname -- "$SELF")/slurmdbd.bash"

# This machine's name, as Slurm's daemons take it.
host_name() {
    local host
    host=$(</proc/sys/kernel/hostname)
    printf '%s\n' "${host%%.*}"
}

# ---------------------------------------------------------------- processes

# Field 22 of /proc/PID/stat, the start time: with the pid it names one process
# for good. Zombies count as gone: nothing promises that pid 1 reaps at once.
proc_start() {
    local stat
    { stat=$(<"/proc/$1/stat"); } 2>/dev/null || return 1
    stat=${stat##*) }
    local -a f
    read -r -a f <<<"$stat"
    [[ ${f[0]} != Z && ${f[0]} != X ]] || return 1
    printf '%s\n' "${f[19]}"
}

proc_ppid() {
    local stat
    { stat=$(<"/proc/$1/stat"); } 2>/dev/null || return 1
    stat=${stat##*) }
    local -a f
    read -r -a f <<<"$stat"
    printf '%s\n' "${f[1]}"
}

children_of() {
    local d p
    for d in /proc/[0-9]*; do
        p=${d#/proc/}
        [[ $(proc_ppid "$p" || true) != "$1" ]] || printf '%s\n' "$p"
    done
}

# Write down a process of ours: remember NAME PID
remember() {
    local start
    start=$(proc_start "$2") || return 1
    printf '%s %s\n' "$2" "$start" >"$DIR/run/$1.id"
}

# Its pid, if that very process still runs: alive NAME
alive() {
    local pid start now
    [[ -r $DIR/run/$1.id ]] || return 1
    read -r pid start <"$DIR/run/$1.id" || return 1
    now=$(proc_start "$pid") || return 1
    [[ $now == "$start" ]] || return 1
    printf '%s\n' "$pid"
}

signal() {   # signal SIG NAME
    local pid
    pid=$(alive "$2") || return 0
    kill "-$1" "$pid" 2>/dev/null || true
}

wait_gone() {  # wait_gone SECONDS NAME...
    local deadline=$((SECONDS + $1)) n busy
    shift
    while :; do
        busy=0
        for n in "$@"; do if alive "$n" >/dev/null; then busy=1; fi; done
        ((busy)) || return 0
        ((SECONDS < deadline)) || return 1
        sleep 0.05
    done
}

ns_mode() { cat -- "$DIR/run/ns" 2>/dev/null || echo none; }

# Every process of our nodes, daemons and tasks alike, whatever they did to their
# environment, session or parent: owned_pids [NODE]. With namespaces they are the
# ones that see our marked /etc/hosts; without, those whose environment names our
# slurm.conf (or that inherited a daemon's), this shell and its parents left out.
owned_pids() {
    local want=${1:-} d p link q keep
    if [[ $(ns_mode) != none ]]; then
        local -A seen=()
        local self
        self=$(readlink "/proc/$$/ns/mnt")
        while read -r d link; do
            p=${d#/proc/}
            p=${p%/ns}
            [[ -n $link && $link != "$self" ]] || continue
            if [[ -z ${seen[$link]:-} ]]; then
                if (cd "/proc/$p/root" && grep -sqxF "# $DIR ${want:-any node}" etc/hosts) 2>/dev/null; then
                    seen[$link]=ours
                else
                    seen[$link]=other
                fi
            fi
            if [[ ${seen[$link]} == ours ]] && proc_start "$p" >/dev/null; then printf '%s\n' "$p"; fi
        done < <(find /proc/[0-9]*/ns/mnt -maxdepth 0 -printf '%h %l\n' 2>/dev/null)
        return
    fi
    keep=" $$ $BASHPID "
    q=$$
    while q=$(proc_ppid "$q") && ((q > 1)); do keep+="$q "; done
    for d in /proc/[0-9]*; do
        p=${d#/proc/}
        [[ $keep != *" $p "* ]] || continue
        if { tr '\0' '\n' <"$d/environ"; } 2>/dev/null | awk -v owner="$DIR" -v conf="$CONF" -v want="$want" '
               /^TEST_CLUSTER_OWNER=/ { o = substr($0, 20) }  /^TEST_CLUSTER_NODE=/ { n = substr($0, 19) }
               /^SLURM_CONF=/ { c = substr($0, 12) }          /^SLURMD_NODENAME=/ { t = substr($0, 17) }
               END { if (o == owner && (want == "" || n == want)) exit 0
                     if (c == conf && t != "" && (want == "" || t == want)) exit 0
                     exit 1 }' && proc_start "$p" >/dev/null; then
            printf '%s\n' "$p"
        fi
    done
}

# Stop them all first, so that none can react to the death of another.
kill_owned() {   # kill_owned [NODE]
    local i
    local -a p
    for i in 1 2 3 4 5; do
        mapfile -t p < <(owned_pids "${1:-}" | sort -n)
        ((${#p[@]})) || return 0
        kill -STOP "${p[@]}" 2>/dev/null || true
        kill -KILL "${p[@]}" 2>/dev/null || true
        sleep 0.05
    done
    mapfile -t p < <(owned_pids "${1:-}")
    ((!${#p[@]}))
}

# ------------------------------------------------------------------ packages

install_packages() {
    local -a want=()
    command -v munged >/dev/null || want+=(munge)
    command -v slurmctld >/dev/null || want+=(slurmctld)
    command -v slurmd >/dev/null || want+=(slurmd)
    command -v srun >/dev/null || want+=(slurm-client)
    if [[ ${TEST_CLUSTER_MPI:-0} == 1 ]]; then
        command -v mpiexec.hydra >/dev/null || want+=(mpich)
        command -v mpicc.mpich >/dev/null || want+=(libmpich-dev)
    fi
    ((${#want[@]})) || return 0
    command -v apt-get >/dev/null || die "missing: ${want[*]}, and no apt-get to install them"
    say "installing ${want[*]}"
    # No daemon is to be started by a package's own script.
    local policy=/usr/sbin/policy-rc.d made=0 rc=0 log
    if [[ ! -e $policy ]]; then
        printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod 755 "$policy" && made=1
    fi
    log=$(mktemp)
    local -a apt=(apt-get -q -y -o DPkg::Lock::Timeout=300)
    {
        DEBIAN_FRONTEND=noninteractive "${apt[@]}" install --no-install-recommends "${want[@]}" ||
            { "${apt[@]}" update &&
              DEBIAN_FRONTEND=noninteractive "${apt[@]}" install --no-install-recommends "${want[@]}"; }
    } </dev/null >"$log" 2>&1 || rc=$?
    ((!made)) || rm -f -- "$policy"
    ((rc == 0)) || tail -n 20 -- "$log" >&2
    rm -f -- "$log"
    ((rc == 0)) || die "could not install ${want[*]}"
}

# ------------------------------------------------------------- configuration

# Is any socket of this machine bound to a port in [$1, $1+$2]?
ports_taken() {
    local -a files=(/proc/net/tcp)
    [[ ! -r /proc/net/tcp6 ]] || files+=(/proc/net/tcp6)
    awk -v lo="$1" -v hi="$(($1 + $2))" '
        function hex(s,  i, n) { n = 0; s = tolower(s)
            for (i = 1; i <= length(s); i++) n = n * 16 + index("0123456789abcdef", substr(s, i, 1)) - 1
            return n }
        FNR > 1 { split($2, a, ":"); p = hex(a[length(a)]); if (p >= lo && p <= hi) { hit = 1; exit } }
        END { exit !hit }' "${files[@]}"
}

pick_port() {   # a free block of $1+1 ports below the ephemeral range
    local base i
    if [[ -n ${TEST_CLUSTER_PORT:-} ]]; then
        if ports_taken "$TEST_CLUSTER_PORT" "$1"; then
            die "a port of $TEST_CLUSTER_PORT to $((TEST_CLUSTER_PORT + $1)) is taken"
        fi
        printf '%s\n' "$TEST_CLUSTER_PORT"
        return
    fi
    for ((i = 0; i < 200; i++)); do
        base=$((17000 + ($$ * 7 + i) % 200 * 70))
        if ! ports_taken "$base" "$1"; then printf '%s\n' "$base"; return; fi
    done
    die "no free block of ports"
}

unshare_flags() {   # the namespaces of a node: unshare_flags host|full
    printf '%s\n' --uts --mount
    [[ $1 != full ]] || printf '%s\n' --pid --ipc --fork --kill-child --mount-proc
}

choose_ns() {
    local mode=${TEST_CLUSTER_NS:-host} flags
    case $mode in
        none) echo none; return ;;
        host | full) mapfile -t flags < <(unshare_flags "$mode") ;;
        *) die "TEST_CLUSTER_NS is host, full or none, not '$mode'" ;;
    esac
    # shellcheck disable=SC2016
    if unshare "${flags[@]}" -- bash -c 'hostname probe && mount --bind "$0" /etc/hosts' "$MARK" \
        </dev/null >/dev/null 2>&1; then
        printf '%s\n' "$mode"
    elif [[ -n ${TEST_CLUSTER_NS:-} ]]; then
        die "no namespaces here: TEST_CLUSTER_NS=$mode cannot be had"
    else
        say "no namespaces here: the nodes will all carry the machine's host name"
        echo none
    fi
}

write_config() {   # write_config N PORT NS [PORT-OF-SLURMDBD]
    local n=$1 port=$2 ns=$3 i k host comm='' nodes='' gres='' gtypes='' mem memory epilog=''
    local track=proctrack/linuxproc task=task/none
    host=$(host_name)
    mem=$(awk '/^MemTotal:/ {print int($2 / 1024)}' /proc/meminfo)
    mem=$((mem / n > 500 ? mem / n : 500))
    # slurmctld listens on 127.0.0.1 only, if that is what the machine's own name
    # resolves to (Slurm takes the address from there). Not so slurmd and srun:
    # with NoInAddrAny an srun in a job would listen on 127.0.1.x, while slurmd
    # answers to the address that its message came from, which is 127.0.0.1.
    if [[ $(getent ahostsv4 "$host" 2>/dev/null | head -n 1) == 127.0.0.1\ * ]]; then
        comm='CommunicationParameters=NoCtldInAddrAny'
    fi
    if ((${TEST_CLUSTER_GPUS:-0} > 0)); then
        gtypes='GresTypes=gpu'
        gres="Gres=gpu:$TEST_CLUSTER_GPUS"
        # Slurm sets CUDA_VISIBLE_DEVICES only for device files: copies of /dev/null.
        for ((i = 0; i < TEST_CLUSTER_GPUS; i++)); do mknod "$DIR/etc/nvidia$i" c 1 3; done
        printf 'Name=gpu File=%s/etc/nvidia[0-%d]\n' "$DIR" $((TEST_CLUSTER_GPUS - 1)) >"$DIR/etc/gres.conf"
    fi
    if ((${TEST_CLUSTER_EPILOG_S:-0} > 0)); then
        # shellcheck disable=SC2016 # expanded by the script
        printf '#!/bin/sh\ncase $SLURMD_NODENAME in *[02468]) exec sleep 1 ;; *) exec sleep %d ;; esac\n' "$TEST_CLUSTER_EPILOG_S" >"$DIR/etc/epilog"
        chmod +x "$DIR/etc/epilog"
        epilog="Epilog=$DIR/etc/epilog"
    fi
    case ${TEST_CLUSTER_MEMORY:-none} in
        none) memory='SelectTypeParameters=CR_CPU'$'\n''JobAcctGatherType=jobacct_gather/none' ;;
        gather)
            memory="SelectTypeParameters=CR_CPU_Memory"$'\n'"DefMemPerCPU=${TEST_CLUSTER_MEM_PER_CPU:-128}"
            memory+=$'\n''JobAcctGatherType=jobacct_gather/linux'$'\n''JobAcctGatherFrequency=task=1'
            memory+=$'\n''JobAcctGatherParams=OverMemoryKill' ;;
        cgroup)
            memory="SelectTypeParameters=CR_CPU_Memory"$'\n'"DefMemPerCPU=${TEST_CLUSTER_MEM_PER_CPU:-128}"
            # what a step takes is looked at where accounts are kept of it
            memory+=$'\n'"JobAcctGatherType=jobacct_gather/$([[ ${TEST_CLUSTER_ACCOUNTING:-0} == 1 ]] && echo linux || echo none)"
            memory+=$'\n''JobAcctGatherFrequency=task=1'
            track=proctrack/cgroup task=task/cgroup
            printf 'CgroupAutomount=yes\nConstrainRAMSpace=yes\nConstrainSwapSpace=yes\nAllowedSwapSpace=0\n' >"$DIR/etc/cgroup.conf" ;;
        *) die "TEST_CLUSTER_MEMORY=$TEST_CLUSTER_MEMORY is none of none, gather, cgroup" ;;
    esac
    for ((i = 0; i < n; i++)); do
        {
            printf '# %s any node\n# %s node%d\n' "$DIR" "$DIR" "$i"
            printf '127.0.0.1 localhost %s\n::1 localhost ip6-localhost ip6-loopback\n' "$host"
            for ((k = 0; k < n; k++)); do printf '127.0.1.%d node%d\n' $((k + 1)) "$k"; done
        } >"$DIR/etc/hosts.node$i"
    done
    for ((i = 0; i < n; i++)); do
        nodes+="NodeName=node$i NodeHostname=$([[ $ns == none ]] && echo "$host" || echo "node$i")"
        nodes+=" NodeAddr=127.0.1.$((i + 1)) Port=$((port + 1 + i))"
        nodes+=" CPUs=${TEST_CLUSTER_CPUS:-2} RealMemory=$mem $gres State=UNKNOWN"$'\n'
    done
    cat >"$CONF.new" <<EOF
ClusterName=testcluster
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
$comm
# everything as root, every path below the state directory
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$DIR/state
SlurmdSpoolDir=$DIR/spool/%n
SlurmctldPidFile=$DIR/run/slurmctld.pid
SlurmdPidFile=$DIR/run/slurmd.%n.pid
SlurmctldLogFile=$DIR/log/slurmctld.log
SlurmdLogFile=$DIR/log/slurmd.%n.log
SlurmctldDebug=verbose
SlurmdDebug=verbose
# cred_expire is also how long a requeued job has to wait (default 120 s)
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$SOCK,cred_expire=5
# no CPU binding: the nodes share the machine's few cores
ProctrackType=$track
TaskPlugin=$task
SwitchType=switch/none
SlurmdParameters=config_overrides
# MPICH as Debian builds it speaks PMI2; with the default (none) every rank
# would be rank 0 of 1
MpiDefault=pmi2
# failures: seen after about 15 s (no sooner with less), and a node that comes back is used again
SlurmdTimeout=6
SlurmctldTimeout=10
MessageTimeout=5
ReturnToService=2
JobRequeue=1
$epilog
KillWait=5
UnkillableStepTimeout=30
InactiveLimit=0
# schedule at once; keep finished jobs for "scontrol show job", without accounting too
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2
# a job of the partition "urgent" takes nodes away from those of "test", which go back into the queue
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SelectType=select/cons_tres
$memory
MinJobAge=86400
$(accounting_lines "${4:-}")
JobCompType=jobcomp/filetxt
JobCompLoc=$DIR/log/jobcomp.txt
MailProg=/bin/true
$gtypes
${nodes}PartitionName=test Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1 GraceTime=10
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=2 PreemptMode=OFF
PartitionName=short Nodes=ALL MaxTime=30 MaxNodes=2 State=UP PriorityTier=1
EOF
    mv -- "$CONF.new" "$CONF"
}

# ------------------------------------------------------------------- daemons

# Start a daemon in its own session with a clean environment and no descriptor
# of ours, and write its pid down: launch NAME COMMAND...
launch() {
    local name=$1 pid
    shift
    setsid env -i PATH="$SAFE_PATH" HOME=/root LANG=C.UTF-8 \
        SLURM_CONF="$CONF" TEST_CLUSTER_OWNER="$DIR" "$@" \
        </dev/null >>"$DIR/log/$name.out" 2>&1 8>&- 9>&- &
    pid=$!
    disown "$pid"
    remember "$name" "$pid" || { tail -n 5 -- "$DIR/log/$name.out" >&2; die "$name did not start"; }
}

start_munged() {
    launch munged munged --foreground --socket="$SOCK" --key-file="$DIR/munge/munge.key" \
        --pid-file="$DIR/munge/munged.pid" --seed-file="$DIR/munge/munged.seed" \
        --log-file="$DIR/munge/munged.log" --origin=127.0.0.1 --num-threads=2
    local i
    for ((i = 0; i < 100; i++)); do
        if munge --socket="$SOCK" --no-input 2>/dev/null | unmunge --socket="$SOCK" >/dev/null 2>&1; then return 0; fi
        alive munged >/dev/null || break
        sleep 0.05
    done
    tail -n 5 -- "$DIR/munge/munged.log" "$DIR/log/munged.out" >&2 || true
    die "munged did not come up"
}

start_node() {   # start_node I
    local name=node$1 mode flags i
    mode=$(ns_mode)
    mkdir -p -- "$DIR/spool/$name"
    if [[ $mode == none ]]; then
        launch "$name" env TEST_CLUSTER_NODE="$name" slurmd -D -N "$name"
        return
    fi
    mapfile -t flags < <(unshare_flags "$mode")
    rm -f -- "$DIR/run/$name.up"
    launch "$name" unshare "${flags[@]}" -- bash -- "$SELF" __node "$name" "$DIR"
    for ((i = 0; i < 200; i++)); do
        [[ ! -e $DIR/run/$name.up ]] || return 0
        alive "$name" >/dev/null || break
        sleep 0.02
    done
    tail -n 5 -- "$DIR/log/$name.out" >&2
    die "$name did not start"
}

# Init of a node. It restarts slurmd on SIGUSR1 and ends on SIGTERM; it does not
# end when only slurmd dies, no more than a machine would.
node_main() {
    local name=$1 dir=$2 child=0 stop=0 again=1 i
    hostname "$name"
    mount --bind "$dir/etc/hosts.$name" /etc/hosts
    if [[ $(<"$dir/run/ns") == full ]]; then mount -t tmpfs -o mode=1777,nosuid,nodev shm /dev/shm; fi
    trap 'stop=1' TERM INT
    trap 'again=1' USR1
    : >"$dir/run/$name.up"
    while ((!stop)); do
        if ((again)); then
            again=0
            if ((!child)) || ! kill -0 "$child" 2>/dev/null; then
                slurmd -D -N "$name" &
                child=$!
            fi
        fi
        # "wait" returns when slurmd ends and when a trapped signal comes.
        wait "$child" || true
        while ((!stop && !again)) && ! kill -0 "$child" 2>/dev/null; do
            sleep 0.1 &
            wait "$!" || true
        done
    done
    kill -TERM "$child" 2>/dev/null || true
    for ((i = 0; i < 40; i++)); do
        kill -0 "$child" 2>/dev/null || break
        sleep 0.05
    done
    exit 0
}

# Init of a node, as this side of its namespaces sees it.
init_pid() {   # init_pid I
    local outer
    outer=$(alive "node$1") || return 1
    if [[ $(ns_mode) == full ]]; then outer=$(children_of "$outer" | head -n 1); fi
    [[ -n $outer ]] || return 1
    printf '%s\n' "$outer"
}

slurmd_pid() {   # slurmd_pid I
    local init c
    init=$(init_pid "$1") || return 1
    if [[ $(ns_mode) == none ]]; then printf '%s\n' "$init"; return; fi
    for c in $(children_of "$init"); do
        if [[ $(readlink "/proc/$c/exe" 2>/dev/null) == */slurmd* ]] && proc_start "$c" >/dev/null; then
            printf '%s\n' "$c"
            return
        fi
    done
    return 1
}

node_names() { local i; for ((i = 0; i < $1; i++)); do printf 'node%d\n' "$i"; done; }

daemons() {   # daemons N: all that run, by name
    printf 'munged\n'
    if has_accounting; then printf '%s\n' mariadbd slurmdbd; fi
    printf 'slurmctld\n'
    node_names "$1"
}

ready() {   # every node answers and is not down
    local out
    out=$(SLURM_CONF=$CONF timeout 5 sinfo -h -N -p test -o '%N %T' 2>/dev/null) || return 1
    [[ $(awk '$2 ~ /^(idle|mixed|allocated|completing)$/' <<<"$out" | wc -l) -eq $1 ]]
}

healthy() {   # all daemons of an N-node cluster run and answer
    local n
    [[ -f $MARK && -r $CONF && $(cat -- "$DIR/run/n" 2>/dev/null) == "$1" ]] || return 1
    for n in $(daemons "$1"); do alive "$n" >/dev/null || return 1; done
    ready "$1"
}

# --------------------------------------------------------------------- verbs

need_root() { [[ $(id -u) == 0 ]] || die "must run as root"; }

# One at a time per state directory. "down" removes the lock file, so whoever has
# waited for it makes sure that it is still the one that others would wait for.
lock() {
    mkdir -p -- "$(dirname -- "$LOCK")"
    while :; do
        exec 9>"$LOCK"
        flock -w 120 9 || die "another $PROG works on $DIR"
        [[ $LOCK -ef /proc/$$/fd/9 ]] && return 0
    done
}

show_logs() {   # show_logs LINES FILE...
    local f lines=$1
    shift
    for f in "$@"; do
        [[ -s $f ]] || continue
        printf '==> %s\n' "$f"
        tail -n "$lines" -- "$f"
    done
}

up() {
    local n=${1:-4} port dbd='' ns i t0=$EPOCHREALTIME
    [[ $n =~ ^([1-9]|[1-5][0-9]|6[0-4])$ ]] || die "N is 1 to 64, not '$n'"
    [[ $DIR == /* && $DIR != *[[:space:],#=%\[\]]* ]] || die "TEST_CLUSTER_DIR must be absolute, without blanks or any of ,#=%[]"
    # Unix sockets: $DIR/spool/nodeNN/nodeNN_JOBID.STEPID in 107 bytes
    ((${#DIR} <= 60)) || die "state directory's name is longer than 60 characters: $DIR"
    need_root
    lock
    if healthy "$n"; then say "already up: $n nodes in $DIR"; return; fi
    install_packages
    teardown
    [[ ! -e $DIR || -z $(ls -A -- "$DIR") ]] || die "$DIR exists and is not a test cluster's"
    umask 022
    mkdir -p -- "$DIR"
    chmod 755 -- "$DIR"
    : >"$MARK"
    trap 'rc=$?; if ((rc)); then show_logs 8 "$DIR"/log/*.out >&2; teardown; rm -f -- "$LOCK"; fi; exit $rc' EXIT
    mkdir -m 755 -- "$DIR/run" "$DIR/etc" "$DIR/spool"
    mkdir -m 700 -- "$DIR/munge" "$DIR/state" "$DIR/log"
    ns=$(choose_ns)
    printf '%s\n' "$ns" >"$DIR/run/ns"
    printf '%s\n' "$n" >"$DIR/run/n"
    port=$(pick_port $((n + 2)))
    [[ ${TEST_CLUSTER_ACCOUNTING:-0} != 1 ]] || dbd=$((port + n + 1))
    write_config "$n" "$port" "$ns" "$dbd"
    mungekey --create --bits=1024 --keyfile="$DIR/munge/munge.key"
    start_munged
    [[ -z $dbd ]] || start_accounting "$dbd"
    launch slurmctld slurmctld -D
    for ((i = 0; i < n; i++)); do start_node "$i"; done
    local deadline=$((SECONDS + 60))
    until ready "$n"; do
        ((SECONDS < deadline)) || die "nodes not ready after 60 s: $(SLURM_CONF=$CONF sinfo -h -N -p test -o '%N=%T' 2>&1 | tr '\n' ' ')"
        alive slurmctld >/dev/null || die "slurmctld died"
        if grep -qsE 'fatal: |Unable to bind' -- "$DIR"/log/node*.out; then die "a slurmd did not start"; fi
        sleep 0.1
    done
    trap - EXIT
    say "up: $n nodes on 127.0.0.1, ports $port-$((port + n)), state in $DIR," \
        "$(awk -v a="$t0" -v b="$EPOCHREALTIME" 'BEGIN {printf "%.1f", b - a}') s"
}

# Stop what runs and remove the state; quiet and harmless when nothing does.
teardown() {
    [[ -f $MARK ]] || return 0
    local n p deadline
    local -a nodes=()
    if [[ -r $DIR/run/n ]]; then mapfile -t nodes < <(node_names "$(<"$DIR/run/n")"); fi
    # End the jobs the clean way first, while slurmctld can.
    if alive slurmctld >/dev/null && alive munged >/dev/null && [[ -r $CONF ]]; then
        for p in test urgent; do
            SLURM_CONF=$CONF timeout 5 scancel --signal=KILL --full --partition=$p >/dev/null 2>&1 || true
            SLURM_CONF=$CONF timeout 5 scancel --partition=$p >/dev/null 2>&1 || true
        done
        deadline=$((SECONDS + 3))
        while ((SECONDS < deadline)) &&
              [[ -n $(SLURM_CONF=$CONF timeout 5 squeue -h 2>/dev/null) ]]; do sleep 0.1; done
    fi
    for n in ${nodes[@]+"${nodes[@]}"}; do
        if p=$(init_pid "${n#node}"); then kill -TERM "$p" 2>/dev/null || true; fi
    done
    signal TERM slurmctld
    wait_gone 8 slurmctld ${nodes[@]+"${nodes[@]}"} || true
    for n in slurmctld ${nodes[@]+"${nodes[@]}"}; do signal KILL "$n"; done
    stop_accounting
    signal TERM munged
    wait_gone 3 munged || signal KILL munged
    wait_gone 3 munged slurmctld ${nodes[@]+"${nodes[@]}"} || say "warning: a daemon does not die"
    kill_owned || say "warning: a process of a job does not die"
    if [[ ${TEST_CLUSTER_KEEP:-0} == 1 ]]; then
        rm -rf -- "$DIR.last"
        mv -- "$DIR" "$DIR.last"
        say "state kept in $DIR.last"
    else
        rm -rf -- "$DIR"
    fi
}

down() {
    need_root
    if [[ ! -e $DIR ]]; then rm -f -- "$LOCK"; say "not up"; return; fi
    [[ -f $MARK ]] || die "$DIR is not a test cluster's"
    lock
    local t0=$EPOCHREALTIME
    teardown
    rm -f -- "$LOCK"
    say "down, $(awk -v a="$t0" -v b="$EPOCHREALTIME" 'BEGIN {printf "%.1f", b - a}') s"
}

print_env() {
    [[ -r $CONF ]] || die "not up: $DIR"
    printf 'export SLURM_CONF=%q\n' "$CONF"
    printf 'export TEST_CLUSTER_DIR=%q\n' "$DIR"
    printf 'export TEST_CLUSTER_NODES=%q\n' "$(<"$DIR/run/n")"
    # slurmd and friends are in sbin, which a user's PATH may lack
    # shellcheck disable=SC2016
    printf 'case ":$PATH:" in *:/usr/sbin:*) ;; *) export PATH="$PATH:/usr/sbin" ;; esac\n'
    # MPI traffic between nodes: TCP over loopback, not the machine's real network
    printf 'export UCX_NET_DEVICES=lo\n'
    printf 'export SLURM_MPI_TYPE=pmi2\n'
}

status() {
    [[ -f $MARK ]] || { say "not up"; return 3; }
    local n
    for n in $(daemons "$(<"$DIR/run/n")"); do
        printf '%-10s %s\n' "$n" "$(alive "$n" || echo dead)"
    done
    SLURM_CONF=$CONF timeout 5 sinfo -N -l
}

want_node() {
    [[ -f $MARK ]] || die "not up"
    local n
    n=$(<"$DIR/run/n")
    if ! [[ ${1:-} =~ ^[0-9]+$ ]] || (($1 >= n)); then die "which node? 0 to $((n - 1))"; fi
}

kill_node() {
    want_node "${1:-}"
    kill_owned "node$1" || die "node$1 does not die"
    wait_gone 5 "node$1" || die "node$1 does not die"
    say "node$1 killed"
}

kill_slurmd() {
    want_node "${1:-}"
    local p
    p=$(slurmd_pid "$1") || die "node$1 has no slurmd"
    kill -KILL "$p"
    say "slurmd of node$1 killed, pid $p"
}

kill_ctld() {
    [[ -f $MARK ]] || die "not up"
    signal KILL slurmctld
    wait_gone 5 slurmctld || die "slurmctld does not die"
    say "slurmctld killed"
}

stop_ctld() {
    [[ -f $MARK ]] || die "not up"
    signal TERM slurmctld
    wait_gone 30 slurmctld || die "slurmctld does not end"
    say "slurmctld stopped"
}

kill_dbd() {
    [[ -f $MARK ]] || die "not up"
    has_accounting || die "there is no accounting"
    signal KILL slurmdbd
    wait_gone 5 slurmdbd || die "slurmdbd does not die"
    say "slurmdbd killed"
}

start_ctld() {
    [[ -f $MARK ]] || die "not up"
    lock
    local i
    if alive slurmctld >/dev/null; then say "slurmctld runs already"; return; fi
    launch slurmctld slurmctld -D
    for ((i = 0; i < 100; i++)); do
        if SLURM_CONF=$CONF timeout 2 scontrol ping 2>/dev/null | grep -q ' is UP'; then say "slurmctld started"; return; fi
        alive slurmctld >/dev/null || break
        sleep 0.1
    done
    die "slurmctld did not come up"
}

start_again() {
    want_node "${1:-}"
    lock
    if alive "node$1" >/dev/null; then
        if slurmd_pid "$1" >/dev/null; then say "node$1 runs already"; return; fi
        kill -USR1 "$(init_pid "$1")"
    else
        start_node "$1"
    fi
    say "node$1 started"
}

case ${1:-} in
    up) up "${2:-4}" ;;
    env) print_env ;;
    down) down ;;
    status) status ;;
    logs) show_logs "${2:-15}" "$DIR"/munge/munged.log "$DIR"/log/*.log ;;
    kill-node) need_root; kill_node "${2:-}" ;;
    kill-slurmd) need_root; kill_slurmd "${2:-}" ;;
    start-node) need_root; start_again "${2:-}" ;;
    kill-ctld) need_root; kill_ctld ;;
    stop-ctld) need_root; stop_ctld ;;
    start-ctld) need_root; start_ctld ;;
    kill-dbd) need_root; kill_dbd ;;
    __node) node_main "$2" "$3" ;;
    -h | --help | help) sed -n '5,/^$/s/^# \{0,1\}//p' -- "$SELF" ;;
    *)
        printf 'usage: %s up [N] | env | down | status | logs [LINES]\n' "$PROG" >&2
        printf '       %s kill-node I | kill-slurmd I | start-node I | kill-ctld | stop-ctld | start-ctld | kill-dbd\n' "$PROG" >&2
        exit 2
        ;;
esac
