# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What Slurm says of a job; job.bash sources it.

# facts_of JOB: "Name=value" on a line each; of an array, of the task with that number ("12_3", or one of its own). Without
# what the user may have written: names and commands can look like anything. A controller that does not answer, as while
# another takes over, is asked again for FOURFOLD_ASK_S; fails when that was in vain, or there is no such job.
facts_of() {
  local answer until=$((SECONDS + ${FOURFOLD_ASK_S:-60}))
  [[ -n $1 ]] && command -v scontrol >/dev/null || return 1
  until answer=$(scontrol show job "$1" 2>&1); do
    [[ $answer != *'Invalid job id'* && $SECONDS -lt $until ]] || return 1
    sleep 2
  done
  awk -v job="$1" 'BEGIN { RS = ""; FS = "\n" }
    job ~ /_/ || $1 ~ "^JobId=" job " " {
      sub(/ JobName=.*/, "", $1)
      for (i = 1; i <= NF; i++) if ($i !~ /^ *(Command|WorkDir|Std(Err|In|Out)|(Admin|System)?Comment|Extra|Wckey)=/) print $i
      exit
    }' <<<"$answer" | tr -s ' ' '\n' | grep '='
}

# field NAME FACTS: its value; nothing for what is not set.
field() { sed -n "s|^$1=||p" <<<"$2" | grep -vxE '\(null\)|N/A|Unknown|None' | head -n 1; }

# command_of JOB: the script that was submitted; nothing for one that was no file.
command_of() { scontrol show job "$1" 2>/dev/null | sed -n 's/^ *Command=//p' | grep -vxF '(null)' | head -n 1; }

# gpus_of TRES: of "gres:gpu:a100:2" or "gres/gpu:2", what --gpus takes.
gpus_of() { sed -E 's|.*gres[:/]gpu[:=]([^,(]*).*|\1|' <<<"$1"; }

# options_of FACTS: the options of sbatch, one on a line, by which another job asks for what this one did, as far as Slurm
# tells them.
options_of() {
  local option value facts=$1
  for option in account=Account partition=Partition qos=QOS time=TimeLimit constraint=Features reservation=Reservation \
    licenses=Licenses mem=MinMemoryNode mem-per-cpu=MinMemoryCPU mem-per-gpu=MemPerTres nice=Nice mincpus=MinCPUsNode \
    cpus-per-task=CPUs/Task cpus-per-gpu=CpusPerTres ntasks-per-node=NtasksPerN:B:S:C gres=TresPerNode gpus=TresPerJob \
    gpus-per-task=TresPerTask exclusive=OverSubscribe; do
    value=$(field "${option#*=}" "$facts")
    option=${option%%=*}
    case $option in
      ntasks-per-node) value=${value%%:*} ;;&
      ntasks-per-node | nice) [[ $value != 0 ]] || continue ;;
      mem) [[ -z $(field MemPerTres "$facts") ]] || continue ;; # Slurm takes one of them, and works out the other
      mincpus | cpus-per-task) [[ $value != 1 && -z $(field CpusPerTres "$facts") ]] || continue ;;
      gres) value=$(sed -E 's|gres[:/]||g' <<<"$value") ;;
      gpus | gpus-per-task | *-per-gpu) [[ $value == *gpu* ]] || continue && value=$(gpus_of "$value") ;;
      exclusive)
        case $value in
          NO) echo --exclusive && continue ;;
          USER) value=user ;;
          *) continue ;;
        esac
        ;;
    esac
    [[ -z $value ]] || echo "--$option=$value"
  done
}
