#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# What the batch scripts make of Slurm's answers, and of none: recorded ones of Slurm 22.05, told by stand-ins for its
# commands. How they work with a real Slurm: tests/slurm. Usage: batch_scripts.bash BUILD_DIR
# shellcheck disable=SC2016  # what is asked of a script is expanded there
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
begin "$1"
slurm=$1/share/fourfold/slurm
mkdir bin answers
PATH=$work/bin:$PATH
export work
unset "${!SLURM_@}" "${!FOURFOLD_@}"

# scontrol show WHAT NAME: the file answers/WHAT-NAME, if it is there.
cat >bin/scontrol <<'END'
#!/bin/bash
[[ $1 != --oneliner ]] || shift
case "$1 $2" in
  'show hostnames') tr , '\n' <<<"$3" ;;
  show\ *)
    echo "$*" >>"$work/asked"
    cat "$work/answers/$2-$3" 2>/dev/null || { echo "slurm_load_jobs error: ${REFUSAL-Unable to contact slurm controller}" >&2 && exit 1; }
    ;;
  *) echo "$*" >>"$work/orders" ;;
esac
END
chmod +x bin/scontrol

# job JOB FIRST_LINE LINE...: how Slurm shows it.
job() {
  local number=$1 first=$2
  shift 2
  {
    echo "JobId=$number $first"
    printf '   %s\n' 'UserId=ada(1000) GroupId=ada(1000) MCS_label=N/A' 'Priority=1 Nice=0 Account=(null) QOS=(null)' \
      'JobState=RUNNING Reason=None Dependency=(null)' 'Requeue=1 Restarts=2 BatchFlag=1 Reboot=0 ExitCode=0:0' \
      'RunTime=00:00:05 TimeLimit=08:00:00 TimeMin=N/A' 'StartTime=2026-11-23T10:00:00 EndTime='"${end_time:-2026-11-23T18:00:00}"' Deadline=N/A' \
      'Partition=gpu AllocNode:Sid=login:1' 'ReqNodeList=(null) ExcNodeList=(null)' 'NodeList=n[1-2]' \
      'NumNodes=2 NumCPUs=16 NumTasks=8 CPUs/Task=2 ReqB:S:C:T=0:0:*:*' 'TRES=cpu=16,mem=12052M,node=2,billing=1' \
      'Socks/Node=* NtasksPerN:B:S:C=4:0:*:* CoreSpec=*' "$@"
    echo
  } >>"answers/job-$number"
}
plain=('MinCPUsNode=8 MinMemoryNode=0 MinTmpDiskNode=0' 'Features=(null) DelayBoot=00:00:00'
  'OverSubscribe=OK Contiguous=0 Licenses=(null) Network=(null)')
# told WORD...: what they print to a script that has sourced job.bash, as job SLURM_JOB_ID.
told() {
  : >asked
  bash -c '. "$0/job.bash" && "$@"' "$slurm" "$@" 2>&1
}
expect_told() {
  local expected=$1 saw
  shift
  saw=$(told "$@")
  [[ $saw == "$expected" ]] || complain "'$saw', not '$expected', from: $*"
}

# A job whose name, command and comment look like facts; and the last task of an array, which has the array's number.
job 7 'JobName=Restarts=9 Nice=3' "${plain[@]}" 'Command=/runs/a b.sh --set log.dir=runs/Nice=4' 'Comment=Partition=none' 'Power='
export SLURM_JOB_ID=7
expect_told 2 eval 'echo "$SLURM_RESTART_COUNT"'
ends=$(date --date=2026-11-23T18:00:00 +%s)
expect_told "$ends" eval 'echo "$deadline"'
# An end that was set by hand counts, but not for the job after or a restart.
later=$(($(date +%s) + 1000))
FOURFOLD_DEADLINE=$later expect_told "$later none" eval 'echo "$deadline $(printenv FOURFOLD_DEADLINE || echo none)"'
for wrong in 1000 soon; do FOURFOLD_DEADLINE=$wrong expect_told "$ends" eval 'echo "$deadline"'; done
# Slurm's warning of the end is passed on where the run does not know that end: it is far away yet, was moved nearer, or is not known.
end_time=$(date --date='+100 seconds' +%FT%T) job 71 'JobName=ends' "${plain[@]}"
for case in '0 :' '1 deadline=$((deadline+60))' '1 deadline=$((deadline+500))' '1 deadline=' '1 deadline=1'; do
  SLURM_JOB_ID=71 expect_told "${case%% *}" eval "${case#* }; is_end_known >/dev/null; echo \$?"
done
warned='[job 71] SIGUSR2: the job ends soon, as the run knows (another one would stop it now)'
SLURM_JOB_ID=71 expect_told "$warned" is_end_known
SLURM_JOB_ID=71 expect_told "$warned"$'\nanother is passed on' eval 'is_end_known; is_end_known || echo another is passed on'
# A later end is taken from the file of this start alone; a file that says something else is somebody's, and stays.
for case in '71 2 4000000000:4000000000:gone' '70 2 4000000000:9:gone' '71 1 4000000000:9:gone' 'my notes:9:stays' '71 0 soon:9:stays'; do
  IFS=: read -r text ends_at stays <<<"$case"
  printf '%s\n' "$text" >job-end
  SLURM_JOB_ID=71 expect_told "$ends_at $stays" eval \
    'deadline=9 end_file=$PWD/job-end; take_moved_end; forget_moved_end; echo "$deadline $([[ -e job-end ]] && echo stays || echo gone)"'
done
# After its launch a script removes its own alone: it may have outlived its slurmd, and the file be of the start after it.
for case in '71 2 4000000000:gone' '71 3 4000000000:stays' '72 0 4000000000:stays'; do
  printf '%s\n' "${case%:*}" >job-end
  SLURM_JOB_ID=71 expect_told "${case##*:}" eval 'end_file=$PWD/job-end; forget_moved_end "71 2"; [[ -e job-end ]] && echo stays || echo gone'
done
rm -f job-end
for value in soon -1 1.5 '1 2' 9999999; do
  FOURFOLD_SETTLE_S=$value expect_told "[job 7] FOURFOLD_SETTLE_S=$value is ignored (it is no number of seconds): 15
15" seconds_in FOURFOLD_SETTLE_S 15
done
FOURFOLD_SETTLE_S=0 expect_told 0 seconds_in FOURFOLD_SETTLE_S 15
expect_told 0 eval 'field Nice "$own_facts"'
expect_told '' eval 'field Account "$own_facts"'
expect_told '/runs/a b.sh --set log.dir=runs/Nice=4' command_of 7
expect_told 7 eval 'echo "$own_number"'
job 21 'ArrayJobId=20 ArrayTaskId=1 JobName=sweep' 'Sentinel=first'
{ cat answers/job-21 && job 20 'ArrayJobId=20 ArrayTaskId=2 JobName=sweep' 'Sentinel=last' && cat answers/job-20; } >both
mv both answers/job-20 && cp answers/job-20 answers/job-20_2 && cp answers/job-21 answers/job-20_1
expect_told '20_2 last' eval 'SLURM_JOB_ID=20; . "$0/job.bash" && echo "$own_number $(field Sentinel "$own_facts")"'
expect_told '20_2' eval 'number_of "$(facts_of 20)" 20'
expect_told 7 eval 'number_of "$(facts_of 7)" 7'
expect_told '20_1 first' eval 'SLURM_JOB_ID=21; . "$0/job.bash" && echo "$own_number $(field Sentinel "$own_facts")"'

# What a job inherits from one that it was submitted in.
job 8 'JobName=plain' 'CPUs/Task=1'
sed -i 's|CPUs/Task=2 |CPUs/Task=1 |; s|NtasksPerN:B:S:C=4:|NtasksPerN:B:S:C=0:|' answers/job-8
expect_told 'none none none none none' eval 'export SRUN_CPUS_PER_TASK=9; SLURM_JOB_ID=8 SLURM_NTASKS_PER_NODE=9 SLURM_CPUS_PER_TASK=9
  SLURM_GPUS_PER_NODE=9 SBATCH_WAIT=1; . "$0/job.bash"
  echo "${SLURM_NTASKS_PER_NODE-none} ${SLURM_CPUS_PER_TASK-none} ${SRUN_CPUS_PER_TASK-none} ${SLURM_GPUS_PER_NODE-none} ${SBATCH_WAIT-none}"'

# The options of a job, for the next of its chain.
expect_told '--partition=gpu
--time=08:00:00
--mem=0
--mincpus=8
--cpus-per-task=2
--ntasks-per-node=4' eval 'options_of "$own_facts"'
job 9 'JobName=x' 'MinCPUsNode=1 MinMemoryCPU=3G MinTmpDiskNode=0' 'Features=a100&ib DelayBoot=00:00:00 Reservation=ours' \
  'OverSubscribe=NO Contiguous=0 Licenses=matlab:2 Network=(null)' 'Power=' 'TresPerJob=gres:gpu:8' 'TresPerNode=gres:gpu:a100:4,gres:nvme:1' \
  'TresPerTask=cpu=2,gres/gpu:1'
sed -i 's/Nice=0 Account=(null) QOS=(null)/Nice=50 Account=lab QOS=high/' answers/job-9
expect_told '--account=lab
--partition=gpu
--qos=high
--time=08:00:00
--constraint=a100&ib
--reservation=ours
--licenses=matlab:2
--mem-per-cpu=3G
--nice=50
--cpus-per-task=2
--ntasks-per-node=4
--gres=gpu:a100:4,nvme:1
--gpus=8
--gpus-per-task=1
--exclusive' eval 'options_of "$(facts_of 9)"'

job 10 'JobName=x' 'MinCPUsNode=4 MinMemoryNode=0 MinTmpDiskNode=0' 'Power=' 'CpusPerTres=gres:gpu:2' 'MemPerTres=gres:gpu:100' 'TresPerJob=gres:gpu:1'
expect_told '--partition=gpu
--time=08:00:00
--mem-per-gpu=100
--cpus-per-gpu=2
--ntasks-per-node=4
--gpus=1' eval 'options_of "$(facts_of 10)"'

# A controller that does not answer is asked again; a job that is not there is not.
: >orders
rm -f answers/job-6
(sleep 3 && job 6 'JobName=late' 'Sentinel=came') &
expect_told came eval 'field Sentinel "$(facts_of 6)"'
wait
FOURFOLD_ASK_S=1 expect_told '[job 5] Slurm does not say what this job is: its end is not known, nor how often it was restarted
5' eval 'unset SLURM_RESTART_COUNT; SLURM_JOB_ID=5; . "$0/job.bash"; echo "$own_number$deadline"'
expect test "$(grep -c 'show job 5' asked)" -ge 1
REFUSAL='Invalid job id specified' expect_told 1 eval 'facts_of 4; echo $?'
expect test "$(grep -c 'show job 4' asked)" -eq 1
# Whoever is not told that the job was cancelled or requeued asks for it.
FOURFOLD_ASK_S=0 expect_told "[job 5] Slurm does not say what this job is: its end is not known, nor how often it was restarted
[job 5] Slurm does not say how this job stands: asking for its requeue all the same" eval 'unset SLURM_RESTART_COUNT; SLURM_JOB_ID=5 bad_nodes=; . "$0/job.bash"; requeue'
expect grep -qx 'requeue 5' orders

# Which nodes are left to a job that leaves some out.
printf '#!/bin/bash\ncat <<END\nn1 idle fast,ib\nn2 mixed fast\nn3 allocated ib\nn4 down* fast,ib\nn5 idle* fast\nn6 drained fast\nEND\n' >bin/sinfo
chmod +x bin/sinfo
echo 'ReservationName=ours StartTime=x Nodes=n1,n3,n4 NodeCnt=3' >answers/reservation-ours
expect_told 'n1 n2 n3' eval 'nodes_that_work "Partition=gpu" | xargs'
expect_told 'n1 n2' eval 'nodes_that_work "Features=fast" | xargs'
expect_told 'n1 n3' eval 'nodes_that_work "Reservation=ours" | xargs'
expect_told n1 eval 'nodes_that_work "Reservation=ours
Features=fast" | xargs'
export SLURM_JOB_NUM_NODES=1
job 30 'JobName=next' "${plain[@]}"
job 31 'JobName=next' 'Features=a&b'
job 32 'JobName=next' 'Reservation=ours'
sed -i 's/ExcNodeList=(null)/ExcNodeList=n2/' answers/job-30
expect_told '[job 7] job 30 leaves out n2,n1' leave_out 30 n1
expect grep -qx 'update JobId=30 ExcNodeList=n2,n1' orders
expect_told '[job 7] would leave out n1, but which others may be had under --constraint=a&b is not known' leave_out 31 n1
expect_told '[job 7] job 32 leaves out n1' leave_out 32 n1
expect_told '[job 7] would leave out n1,n3, but there are too few others' leave_out 32 n1,n3
expect_told '' leave_out 30 ''
job 33 'JobName=next' "${plain[@]}"
sed -i 's/ReqNodeList=(null)/ReqNodeList=n1,n3/' answers/job-33
expect_told '[job 7] would leave out n1, but job 33 asks for nodes by name (--nodelist=n1,n3)' leave_out 33 n1
expect test "$(grep -c '^update' orders)" -eq 2

# A next job waits at least so long, but as its user has told it where that is longer.
job 34 'JobName=next'
sed -i 's/StartTime=[^ ]*/StartTime=Unknown/' answers/job-34
job 35 'JobName=next'
sed -i 's/StartTime=[^ ]*/StartTime=2099-01-01T00:00:00/' answers/job-35
later='link=1; . "$0/successor.bash"; begin_later'
expect_told '' eval "$later 34 5"
expect grep -qx 'update JobId=34 StartTime=now+5' orders
expect_told '' eval "$later 35 5"
expect_exit 1 grep -q 'JobId=35' orders
# How soon Slurm forgets a job.
expect_told 300 eval 'link=1; . "$0/successor.bash"; seconds_to_forget'
printf 'MinJobAge               = 15 sec\nMpiDefault              = none\n' >answers/config-
expect_told 15 eval 'link=1; . "$0/successor.bash"; seconds_to_forget'
# Who cancels a job names no reason; its time limit, a failed node, and preemption do.
for state in 'COMPLETING Reason=None yes' 'CANCELLED Reason=None yes' 'COMPLETING Reason=TimeLimit no' 'COMPLETING Reason=NodeDown no' 'RUNNING Reason=None no'; do
  rm -f answers/job-36
  job 36 'JobName=ended'
  sed -i "s/JobState=RUNNING Reason=None/JobState=${state% *}/" answers/job-36
  expect_told "${state##* }" eval 'is_cancelled 36 && echo yes || echo no'
done
rm -f answers/job-36
job 36 'JobName=ended' 'PreemptEligibleTime=2026-11-23T10:00:00 PreemptTime=2026-11-23T10:00:01'
sed -i 's/JobState=RUNNING/JobState=COMPLETING/' answers/job-36
expect_told no eval 'is_cancelled 36 && echo yes || echo no'

# A site's file may read what is not set, and says which it is by its code when it fails.
echo 'LD_LIBRARY_PATH=/opt/lib:$NEVER_SET' >site.sh
FOURFOLD_SITE=./site.sh expect_told 'sourced /opt/lib:' eval 'echo "sourced $LD_LIBRARY_PATH"'
expect_exit 78 env FOURFOLD_SITE=./none.sh bash -c '. "$0/job.bash"' "$slurm"
expect_stdout 'the site file ./none.sh cannot be read'
for ending in 'return 3' 'exit 5' 'set -e; false' false 'set -u; echo $NEVER_SET'; do
  echo "$ending" >site.sh
  expect_exit 78 env FOURFOLD_SITE=./site.sh bash -c '. "$0/job.bash" && echo went on' "$slurm"
  expect_stdout 'the site file ./site.sh ended with code'
  expect_no_stdout 'went on'
done
echo 'set -e; export SRUN_CPUS_PER_TASK=3' >site.sh
FOURFOLD_SITE=./site.sh expect_told '3 still here' eval 'false; echo "$SRUN_CPUS_PER_TASK still here"'

# A signal at the very end does not hide the code of srun; how many nodes a part of the tasks takes.
cat >bin/srun <<'END'
#!/bin/bash
echo "$*" >"$work/srun"
kill -TERM "$PPID" "$(ps -o ppid= -p "$PPID")"
exit 93
END
chmod +x bin/srun
for _ in {1..20}; do
  expect_told '93' eval 'say() { :; }; launch all train run.toml; echo $?'
done
expect grep -qw -- '--unbuffered fourfold train run.toml' srun
expect test "$(grep -c -- --nodes srun)" -eq 0
# nodes_for COUNT VARIABLE...: what srun is told.
nodes_for() {
  local count=$1
  shift
  env SLURM_JOB_ID=8 SLURM_JOB_NUM_NODES=3 "$@" bash -c '. "$0/job.bash" && launch "$1" train' "$slurm" "$count" >"$output" 2>&1
  grep -o -- '--n[a-z-]*=[0-9]*' srun | xargs
}
expect test "$(nodes_for 8 SLURM_NTASKS=12 SLURM_TASKS_PER_NODE='4(x3)')" = '--ntasks=8 --nodes=2'
expect test "$(nodes_for 8 SLURM_NTASKS=10 SLURM_TASKS_PER_NODE=1,5,4)" = '--ntasks=8'
expect test "$(nodes_for 5 FOURFOLD_TASKS_PER_NODE=4)" = '--ntasks-per-node=4 --ntasks=5 --nodes=2'

# Signals to the script and all that it runs, as scancel --full sends them, at each moment of a start: before there is a step they
# are kept, and the run is not launched; when the step has ended they do not keep its end from being noted. With a controller that
# does not mind, a site file that goes elsewhere and is disturbed there, and a program that takes its time.
cat >bin/slow <<'END'
#!/bin/bash
echo "$*" >>"$work/asked_for"
[[ $PWD == "$work" ]] || echo "elsewhere: $PWD" >>"$work/asked_for"
case "$1 $2" in
  'job begin') touch "$work/stage-begin" && sleep 0.7 && printf 'start\nall\n' ;;
  'job end') touch "$work/stage-end" && sleep 0.7 && echo 'again n9' && exit 75 ;;
esac
END
cat >bin/srun <<'END'
#!/bin/bash
exit 75
END
printf 'cd /; touch "$work/stage-site"; sleep 0.7\n' >slow.sh
chmod +x bin/slow bin/srun
job 40 'JobName=plain' "${plain[@]}"
for signal in USR1 USR2 TERM; do
  for stage in site begin end; do
    rm -f stage-* asked_for
    SLURM_JOB_ID=40 FOURFOLD=slow FOURFOLD_SITE=./slow.sh FOURFOLD_SLURM="$slurm" setsid bash "$slurm/train.sbatch" run.toml >"$output" 2>&1 </dev/null &
    script=$!
    for _ in {1..200}; do
      [[ ! -e stage-$stage ]] || break
      sleep 0.05
    done
    kill "-$signal" -- "-$script"
    wait "$script"
    code=$?
    : >"$errors"
    [[ $code -eq 75 ]] || complain "a SIG$signal at $stage: code $code"
    expect_stdout 'outcome: again, exit code 75'
    if [[ $stage == end ]]; then
      expect grep -qx 'job end run.toml --launcher-code 75' asked_for
    else
      expect_stdout "SIG$signal: the run is not launched"
      expect grep -qx "job end run.toml --stopped-by SIG$signal" asked_for
    fi
    expect test "$(grep -c '^job' asked_for)" -eq 2
    expect_exit 1 grep elsewhere asked_for
  done
done
# One that fails by itself is not read again for that, nor without end.
printf 'kill -USR2 $$; echo read; return 3\n' >slow.sh
expect_exit 78 env SLURM_JOB_ID=40 FOURFOLD=slow FOURFOLD_SITE=./slow.sh FOURFOLD_SLURM="$slurm" bash "$slurm/train.sbatch" run.toml
expect test "$(grep -c '^read' "$output")" -eq 2
expect_stdout 'the site file ./slow.sh ended with code 3'
# Nothing that a killed script would leave.
rm -rf scratch && mkdir scratch
TMPDIR=$work/scratch expect_exit 75 env SLURM_JOB_ID=40 FOURFOLD=slow FOURFOLD_SLURM="$slurm" bash -c 'srun() { ls -A "$TMPDIR" >"$work/left"; return 75; }
export -f srun; exec bash "$1" run.toml' _ "$slurm/train.sbatch"
expect test ! -s left

# What was launched has an end of its own, whatever signal comes right after it.
# shellcheck disable=SC2016
cat >after_launch.bash <<'END'
. "$slurm/job.bash"
launch() { was_launched=$1 && shift && told_to_stop=SIGUSR2; return "${code_of_launch:-65}"; }
job_answer() { printf 'start\n%s\n' "$launched"; }
start_run run.toml
END
export slurm
for launched in 1 0; do
  rm -f asked_for
  sed -i "s/was_launched=.*shift/was_launched=$launched \&\& shift/" after_launch.bash
  launched=all SLURM_JOB_ID=40 FOURFOLD=slow bash after_launch.bash >"$output" 2>&1
  if [[ $launched == 1 ]]; then
    expect grep -q '^job end run.toml --launcher-code 65' asked_for
  else
    expect grep -q '^job end run.toml --stopped-by SIGUSR2' asked_for
  fi
done
# Who asks for the next job again and again tells only news.
cat >sees.bash <<'END'
. "$slurm/job.bash"
link=1 most=0 by_script=0 own_script='' successor=(none) FOURFOLD_ASK_AGAIN_S=5
. "$slurm/successor.bash"
seconds_to_forget() { echo 300; }
submit_next() { no_next='always the same'; return 1; }
exec {from}<> <(:) {to}<> <(:)
see_to_next "$from" "$to" &
sleep 17
echo ended >&"$to"
wait
while read -r -t 1 -u "$from" line; do echo "$line"; done
END
SLURM_JOB_ID=40 bash sees.bash >"$output" 2>&1
expect test "$(grep -c 'always the same' "$output")" -eq 1

# A program that this node has not, or that is killed there, is its node's fault, for three starts in a row; nobody is to end a chain for it.
printf '#!/bin/bash\nkill -KILL $$\n' >bin/killed
chmod +x bin/killed
cannot() { # COMMENT PROGRAM
  rm -f answers/job-40 orders
  job 40 'JobName=plain' "${plain[@]}" ${1:+"Comment=$1 "}
  sed -i 's/Restarts=2/Restarts=0/' answers/job-40
  env SLURM_JOB_ID=40 SLURMD_NODENAME=n1 FOURFOLD="$2" FOURFOLD_SLURM="$slurm" bash "$slurm/train.sbatch" run.toml
}
expect_exit 85 cannot '' "$work/none"
expect_stdout "$work/none job begin cannot be run on n1 (code 127)"
expect_stdout 'outcome: again, exit code 85'
expect grep -qx 'update JobId=40 Comment=fourfold-not-run=1' orders
expect grep -qx 'requeue 40' orders
expect_exit 85 cannot 'mine fourfold-not-run=1 too' killed
expect_stdout 'killed job begin cannot be run on n1 (code 137)'
expect grep -qx 'update JobId=40 Comment=fourfold-not-run=2 mine too' orders
expect_exit 127 cannot 'fourfold-not-run=2' "$work/none"
expect_stdout 'the same of the two starts before this one'
expect_stdout 'outcome: stop, exit code 127'
expect test ! -e orders
# An end that cannot be noted ends nothing: the next start knows it. One of a moment is asked again.
cat >bin/vanishes <<'END'
#!/bin/bash
case "$1 $2" in
  'job begin') printf 'start\nall\n' ;;
  'job end') [[ -e $work/is_back ]] && echo finished || { touch "$work/${comes_back:-}"; kill -KILL $$; } ;;
esac
END
chmod +x bin/vanishes
rm -f is_back
comes_back=is_back expect_exit 0 cannot '' vanishes
expect_stdout 'outcome: finished, exit code 0'
rm -f is_back
comes_back=not_back expect_exit 85 cannot '' vanishes
expect_stdout 'vanishes job end cannot be run (code 137): how the run has ended the next start notes'
expect_stdout 'outcome: again, exit code 85'

# A code that a shell might give is fourfold's where it has answered, and no reason to ask again.
printf '#!/bin/bash\ncase "$1 $2" in "job begin") printf "start\\nall\\n" ;; "job end") echo stop && exit 137 ;; esac\n' >bin/killed_run
chmod +x bin/killed_run
expect_exit 137 cannot '' killed_run
expect_stdout 'outcome: stop, exit code 137'
SLURM_JOB_ID=40 expect_told '140 stop' eval 'told_to_stop=SIGUSR2; in_peace bash -c "echo stop; exit 140"; echo "$? $answer"'
# The folder of the run, which has what a later start goes on with, is not on this node: another one may have it.
expect_exit 78 cannot 'fourfold-run-file=/no/log/submitted/40/run.toml' "$work/none"
expect_stdout '[job 40] n1 does not have /no/log, where what this job trains is kept (a file system that is not mounted? where you have removed it, submit anew)'
expect grep -qx 'requeue 40' orders
expect grep -qx 'update JobId=40 Comment=fourfold-not-run=1 fourfold-run-file=/no/log/submitted/40/run.toml' orders
expect_no_stdout 'job begin'
# Where nobody answers which file that is, `job begin` looks for it.
rm -f answers/job-40
printf '#!/bin/bash\necho "$*" >"$work/begun" && exit 85\n' >bin/looks
chmod +x bin/looks
expect_exit 85 env SLURM_JOB_ID=40 SLURM_RESTART_COUNT=1 FOURFOLD_ASK_S=1 FOURFOLD_REQUEUE=0 FOURFOLD=looks FOURFOLD_SLURM="$slurm" bash "$slurm/train.sbatch" run.toml
expect grep -qx 'job begin --later-start --tell-files run.toml' begun
expect_stdout 'outcome: again, exit code 85'
# So does the next job of such a chain, which nobody has told; where Slurm says it by then, that counts.
for comment in '' 'Comment=fourfold-run-file=/tmp/submitted/40/run.toml '; do
  rm -f answers/job-40 begun
  job 40 'JobName=plain' "${plain[@]}" "$comment"
  expect_exit 85 env SLURM_JOB_ID=40 FOURFOLD_LATER_START=1 FOURFOLD_REQUEUE=0 FOURFOLD=looks FOURFOLD_SLURM="$slurm" bash "$slurm/train.sbatch" run.toml
  told=--later-start
  [[ -z $comment ]] || told='--kept-run-file /tmp/submitted/40/run.toml'
  expect grep -qx "job begin $told --tell-files run.toml" begun
done
# One that has learned it meanwhile begins at once.
printf '#!/bin/bash\necho "$*" >>"$work/begun"\ncp "$work/later" "$work/answers/job-40"\nexit 85\n' >bin/looks
rm -f begun && mv answers/job-40 later
expect_exit 85 env SLURM_JOB_ID=40 SLURM_RESTART_COUNT=1 FOURFOLD_ASK_S=1 FOURFOLD_REQUEUE=0 FOURFOLD=looks FOURFOLD_SLURM="$slurm" bash "$slurm/train.sbatch" run.toml
expect test "$(<begun)" = $'job begin --later-start --tell-files run.toml\njob begin --kept-run-file /tmp/submitted/40/run.toml --tell-files run.toml'
# A task of an array does not take what its line says by now.
rm -f answers/job-40
expect_exit 85 env SLURM_JOB_ID=40 SLURM_ARRAY_TASK_ID=1 SLURM_RESTART_COUNT=1 FOURFOLD_ASK_S=1 FOURFOLD=looks FOURFOLD_SLURM="$slurm" bash "$slurm/array.sbatch" sweep.txt run.toml
expect_stdout 'Slurm does not say which line of the sweep this task began with'
job 40 'JobName=plain' "${plain[@]}"
# Nodes are dealt out to ranks as Slurm has them, not as their names sort: each keeps what the one before it wrote.
expect_told $'n9\nn10' hosts_in_order n9,n10,n9
FOURFOLD_RESTARTS_INSIDE=1 SLURM_JOB_ID=7 expect_told n2,n11 eval 'SLURM_JOB_NODELIST=n1,n2,n11 nodes_used=(n1 n2 n10 n11); nodes_to_use 2'
job 41 'JobName=plain' "${plain[@]}"
sed -i 's/NodeList=n\[1-2\]/NodeList=n9,n10,n11/' answers/job-41
FOURFOLD_RESTARTS_INSIDE=1 SLURM_JOB_ID=41 expect_told "[job 41] going on inside the job, on what is left of it: n9,n11
n9,n11 n10" eval 'take_nodes_left n10; echo "$SLURM_JOB_NODELIST $nodes_left_out"'

# A next job that was told nothing of the run file at the start, since none could begin, is told at the end; once.
for told_before in '' 41; do
  SLURM_JOB_ID=40 expect_told "${told_before:-told 41 /f}" eval '. "$0/successor.bash"
    note_run() { echo "told $*"; }; facts_of() { :; }; is_next_gone() { return 1; }
    outcome=again next=41 kept_run=/f told_next='"$told_before"'; before_end; [[ -z "'"$told_before"'" ]] || echo "$told_next"'
done

# What becomes of the next job meanwhile is read at the end, the newest: one that was found, one that Slurm forgot, another one, none.
cat >next.bash <<END
slurm=$slurm
END
cat >>next.bash <<'END'
. "$slurm/job.bash"
link=1 most=0 by_script=0 successor=(x) own_options=() own_arguments=()
FOURFOLD_ASK_AGAIN_S=1 FOURFOLD_LOOK_AGAIN_S=1
. "$slurm/successor.bash"
answers=("$@") i=0
submit_next() {
  IFS='|' read -r next head_of_next no_next <<<"${answers[i]}"
  ((++i))
  [[ -n $next || $no_next == *'not known'* ]]
}
is_next_gone() { [[ $i -lt ${#answers[@]} ]]; }
facts_of() { echo JobState=PENDING; }
exec {from_it}<> <(:) {to_it}<> <(:)
see_to_next "$from_it" "$to_it" >/dev/null &
seeing=$!
sleep $((5 * $# + 2))
outcome=finished
before_end
echo "<$next|$cluster|$head_of_next|$no_next|$may_go_on>"
END
mkdir -p answers
for case in '<12||JobId=12 JobName=x y||1> 11|JobId=11 JobName=x y|;12|JobId=12 JobName=x y|' \
  '<|||whether is not known|0> ||whether is not known'; do
  IFS=';' read -ra of_sbatch <<<"${case#*> }"
  SLURM_JOB_ID=40 FOURFOLD_ASK_S=0 expect_exit 0 bash next.bash "${of_sbatch[@]}"
  expect_stdout "${case%%>*}>"
done

# What users set is what it is meant for, or the script says so at once.
for word in MOST_STARTS=abc STUCK_AFTER=1.5 LINK=-1 TASKS_PER_NODE=0 NODES=2- REQUEUE=yes; do
  expect_exit 78 env SLURM_JOB_ID=40 FOURFOLD_SLURM="$slurm" FOURFOLD=/bin/false "FOURFOLD_$word" bash "$slurm/train.sbatch" run.toml
  expect_stdout "[job 40] FOURFOLD_$word is not "
done
# A site's file that leaves the script, or goes elsewhere.
echo 'exit 0' >leaves.sh
expect_exit 78 env SLURM_JOB_ID=40 FOURFOLD_SLURM="$slurm" FOURFOLD=/bin/false FOURFOLD_SITE=./leaves.sh bash "$slurm/train.sbatch" run.toml
expect_stdout 'the site file ./leaves.sh has left the batch script, which reads it as a part of itself: take its exit out'
echo 'cd /' >goes.sh
SLURM_JOB_ID=40 FOURFOLD_SITE=./goes.sh expect_told "[job 40] the site file ./goes.sh has gone to /: back to $PWD, from which the run file's paths are meant
$PWD" eval 'pwd'
unset FOURFOLD_SITE

# Tasks of an array: what is wrong with the file of options is said, and nothing is trained with half of them.
sweep() { env SLURM_JOB_ID=8 FOURFOLD_SLURM="$slurm" FOURFOLD=/bin/false "$@"; }
printf -- "--set log.dir=a\n--set log.dir=a --set optim.lr='3\n\n" >sweep.txt
expect_exit 78 sweep bash "$slurm/array.sbatch" sweep.txt run.toml
expect_stdout 'an array of tasks'
expect_exit 78 sweep SLURM_ARRAY_TASK_ID=2 bash "$slurm/array.sbatch" sweep.txt run.toml
expect_stdout 'line 2 of sweep.txt cannot be split into words (unmatched single quote'
for task in 0 3 4; do
  expect_exit 78 sweep SLURM_ARRAY_TASK_ID="$task" bash "$slurm/array.sbatch" sweep.txt run.toml
  expect_stdout "sweep.txt has no line $task"
done
expect_exit 78 sweep SLURM_ARRAY_TASK_ID=1 bash "$slurm/array.sbatch" none.txt run.toml
expect_stdout 'none.txt cannot be read'
printf -- '--set log.dir=a\r\n  # lr 3e-3\n' >sweep.txt
expect_exit 78 sweep SLURM_ARRAY_TASK_ID=2 bash "$slurm/array.sbatch" sweep.txt run.toml
expect_stdout 'line 2 of sweep.txt is a comment'
cat >told.bash <<'END'
printf '<%s>' "$@" >>told.txt
exit 78
END
chmod +x told.bash && sed -i '1i #!/bin/bash' told.bash
expect_exit 78 sweep FOURFOLD="$PWD/told.bash" SLURM_ARRAY_TASK_ID=1 bash "$slurm/array.sbatch" sweep.txt run.toml
expect grep -q '<--set><log.dir=a>' told.txt
expectations_met
