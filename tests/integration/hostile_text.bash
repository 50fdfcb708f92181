#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# Names and values from outside that would write to a terminal, or begin a line that reads like one of ours, through every
# verb that prints and the batch scripts; and what lies in log.dir and is no regular file. Usage: hostile_text.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
begin "$1"
slurm=$1/share/fourfold/slurm

# C0 and C1 controls, DEL, and what turns the direction of text.
forbidden=$'[\x01-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae]|\xe2\x81[\xa6-\xa9]'
# What other programs say, and text of documents, are lines; a name or a value that has a line feed forges one.
lines=$'\x1b]0;title\x07\x1b[2J\xc2\x9b1m\xe2\x80\xae\x7f'
evil=$lines$'\n  forged\nforged\r'
toml_evil='\u001b]0;title\u0007\u001b[2J\u009b1m\u202e\u007f\n  forged\nforged\r'
shown='\u001b]0;title\u0007\u001b[2J\u009b1m\u202e\u007f'
# is_clean: neither stream of the last command has a byte of those, or a line that is not ours.
is_clean() {
  ! cat "$output" "$errors" | grep -qaE '^ *forged' || complain "a line is forged"
  ! LC_ALL=C grep -qaE "$forbidden" "$output" || complain "stdout can write to a terminal"
  ! LC_ALL=C grep -qaE "$forbidden" "$errors" || complain "stderr can write to a terminal"
}
# clean CODE COMMAND...: as expect_exit, and what it prints can write to no terminal; the name is shown.
clean() {
  expect_exit "$@"
  is_clean
  cat "$output" "$errors" | grep -qiF -- "$shown" || complain "$shown is not shown"
}

# The check itself finds each of them.
for one in $'\x1b' $'\x07' $'\r' $'\x7f' $'\xc2\x9b' $'\xe2\x80\xae' $'\xe2\x81\xa6'; do
  printf 'a%sb\n' "$one" >"$output"
  LC_ALL=C grep -qaE "$forbidden" "$output" || complain "$(printf %q "$one") is not found"
done

for _ in $(seq 100); do printf 'all work and no %s play\n' "$lines"; done >"text$evil.txt"
clean 0 "$fourfold" data prepare --output "tok$evil" --append-eot "text$evil.txt"
clean 0 "$fourfold" data info "tok$evil" --show 40
clean 0 "$fourfold" data info "tok$evil" --json
expect python3 -c 'import json, sys
(facts,) = json.load(open(sys.argv[1]))
assert facts["path"].startswith("tok" + sys.argv[2]), facts' "$output" "$evil"
clean 78 "$fourfold" data prepare --output x "no$evil"
clean 64 "$fourfold" "verb$evil"
clean 64 "$fourfold" "--option$evil"
clean 64 "$fourfold" data info "--option$evil"
clean 64 "$fourfold" plan "--ranks=$evil"
expect_exit 78 "$fourfold" train $'no\xff'
is_clean
expect_stderr 'no\xff'

cat >run.toml <<END
[model]
layers = 1
hidden = 16
heads = 2
vocab = 257
context = 32
[train]
global_batch = 2
micro_batch = 2
steps = 2
[data]
train = ["tok$toml_evil"]
[log]
dir = "run$toml_evil"
END
printf '[model]\nfamily = "%s"\n"key%s" = 1\n' "$toml_evil" "$toml_evil" >wrong.toml
clean 78 "$fourfold" train wrong.toml
printf '[model\x1b]0;title\x07]\n' >damaged.toml
expect_exit 78 "$fourfold" train damaged.toml
is_clean
clean 78 "$fourfold" train run.toml --set "model.family=\"$evil\""
clean 0 "$fourfold" train run.toml --print-config
cp "$output" printed.toml
expect cmp <("$fourfold" train printed.toml --print-config | sed 's/ *#.*//') <(sed 's/ *#.*//' printed.toml)
clean 0 "$fourfold" train run.toml
clean 0 "$fourfold" status "run$evil"
clean 0 "$fourfold" status "run$evil" --json
expect python3 -c 'import json, sys
assert json.load(open(sys.argv[1]))["runs"][0]["checkpoint"].startswith("run" + sys.argv[2])' "$output" "$evil"
clean 0 "$fourfold" watch "run$evil"
clean 0 "$fourfold" report "run$evil"
! LC_ALL=C grep -qaE $'[\x01-\x08\x0b-\x1f]' "run$evil/report.html" || complain "the report has control characters"
# shellcheck disable=SC2016  # the stand-in expands it
mkdir bin && printf '#!/bin/sh\nprintf "%%s\\n" "$EVIL" >&2; exit 1\n' >bin/sinfo && chmod +x bin/sinfo
clean 0 env "EVIL=$lines" "PATH=$PWD/bin:$PATH" "$fourfold" submit run.toml --nodes 1 --tasks-per-node 1 --time 10
expect_stderr "sinfo ended with code 1: $shown"
step=run$evil/checkpoints/step-000000002
for verb in 'info --tensors' verify 'verify --deep' 'info --json' 'verify --json' 'repair-index'; do
  read -ra words <<<"$verb"
  clean 0 "$fourfold" ckpt "${words[@]}" "$step"
done
clean 0 "$fourfold" ckpt diff "$step" "$step"
clean 0 "$fourfold" ckpt reshard "$step" "there$evil" --to dp=1
clean 0 "$fourfold" ckpt merge "$step" "merged$evil.safetensors"
clean 0 "$fourfold" ckpt export --format hf "$step" "hf$evil"
clean 78 "$fourfold" sample --checkpoint "no$evil" --prompt x
clean 78 "$fourfold" evaluate --checkpoint "no$evil" --data "tok$evil"

# A manifest and tensors that say what they like.
cp -r "$step" step-000000002
cp step-000000002/MANIFEST.json before.json
sed -i 's/layers.0./layers.\\u001b]0;x\\u0007\\nforged./g; s/"pp"/"p\\u009b"/' step-000000002/MANIFEST.json
expect_exit 1 cmp -s before.json step-000000002/MANIFEST.json
for verb in info verify; do
  "$fourfold" ckpt "$verb" step-000000002 >"$output" 2>"$errors" </dev/null
  is_clean
done
python3 - "$evil" <<'END'
import json, struct, sys
header = json.dumps({sys.argv[1]: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
open("model.safetensors", "wb").write(struct.pack("<Q", len(header)) + header + bytes(4))
json.dump({"model_type": sys.argv[1], "architectures": [sys.argv[1]]}, open("config.json", "w"))
END
clean 78 "$fourfold" ckpt import --format hf . imported

# The text of a model is data; the terminal of `sample` gets it escaped (print_test).
expect_exit 0 "$fourfold" sample --checkpoint "$step" --prompt "$lines" --tokens 1
expect grep -qF "$lines" "$output"

# The programs that compare and measure.
clean 78 "$fourfold" verify run.toml --mesh dp=1 --mesh "tp=$evil"
clean 78 "$fourfold" verify run.toml --mesh dp=1 --mesh dp=2 --set "model.family=\"$toml_evil\""
expect_exit 0 "$fourfold" verify run.toml --mesh dp=1 --mesh dp=1,train.recompute=full --steps 1
is_clean
clean 64 "$fourfold" bench comm --mesh "dp=$evil"
clean 64 "$fourfold" bench "comm$evil"
clean 0 "$fourfold" bench comm --threads 2 --max-bytes 8 --seconds 0.01 --warmup 1 --csv "bench$evil.csv"
mkdir "probed$evil"
clean 0 "$fourfold" doctor --dir "probed$evil" --seconds 5
clean 78 "$fourfold" doctor "none$evil.toml"
# shellcheck disable=SC2016  # the stand-in expands it
printf '#!/bin/sh\nprintf "%%s\\n" "$EVIL"\n' >bin/nvidia-smi && chmod +x bin/nvidia-smi
expect_exit 0 env "EVIL=$evil" "PATH=$PWD/bin:$PATH" "$fourfold" doctor --seconds 5
is_clean

# A host may be called anything.
if unshare --user --map-root-user --uts true 2>/dev/null; then
  cat >as_host.py <<'END'
import os, socket, sys
socket.sethostname(sys.argv[1])
os.execvp(sys.argv[2], sys.argv[2:])
END
  as_host() { unshare --user --map-root-user --uts python3 as_host.py $'h\x1b]0;x\x07\nforged' "$@"; }
  expect_exit 0 as_host "$fourfold" doctor --seconds 5
  is_clean
  expect_exit 0 as_host "$fourfold" train run.toml --set log.dir=elsewhere --set checkpoint.dir=there
  is_clean
  for verb in status watch report; do
    expect_exit 0 as_host "$fourfold" "$verb" elsewhere
    is_clean
  done
fi

# What the batch scripts say of names that Slurm and users gave.
# shellcheck disable=SC2016  # what is asked of a script is expanded there
say() { bash -c '. "$0/job.bash"; say "$@"' "$slurm" "$@"; }
for locale in C C.UTF-8; do
  LC_ALL=$locale expect_exit 0 say "node$evil" "$evil"
  is_clean
  expect test "$(wc -l <"$output")" = 1
  LC_ALL=$locale expect_exit 0 say 'knoten-ä ist weg'
  expect_stdout 'knoten-ä ist weg'
done
SLURM_JOB_ID="7$evil" expect_exit 0 say gone
is_clean
# shellcheck disable=SC2016
expect_exit 78 env "FOURFOLD_SITE=./$evil" bash -c '. "$0/job.bash"' "$slurm"
is_clean
expect_stdout 'cannot be read'

# What lies in log.dir under names of ours and is no regular file is refused by name; nothing waits, nothing is written through.
mkdir kept && printf 'mine\n' >kept/file
for name in metrics.jsonl config.toml; do
  for kind in pipe device link dangling; do
    rm -rf odd && mkdir odd
    case $kind in
      pipe) mkfifo "odd/$name" ;;
      device) ln -s /dev/zero "odd/$name" ;;
      link) ln -s ../kept/file "odd/$name" ;;
      dangling) ln -s ../kept/none "odd/$name" ;;
    esac
    [[ $name == metrics.jsonl ]] || : >odd/metrics.jsonl
    expect_exit 78 timeout 20 "$fourfold" report odd
    expect_stderr "odd/$name: "
    expect_stderr 'is not a regular file'
    expect test ! -e odd/report.html
    if [[ $name == metrics.jsonl ]]; then
      expect_exit 78 timeout 60 "$fourfold" train run.toml --set log.dir=odd --set checkpoint.dir=of_odd --set checkpoint.resume=never
      expect_stderr "odd/$name is a link, a device, a pipe or a socket"
    fi
    expect test "$(cat kept/file)" = mine
    expect test ! -e kept/none
  done
done
mkfifo pipe.toml
expect_exit 78 timeout 20 "$fourfold" train pipe.toml
expect_stderr 'pipe.toml (it is not a regular file (it is a pipe))'
expect_exit 78 timeout 20 "$fourfold" plan pipe.toml --ranks 1
expect_exit 78 timeout 20 "$fourfold" submit pipe.toml
expect_exit 78 timeout 20 "$fourfold" train /dev/zero

# No inode is left where there is room for bytes: told so. (Needs a mount.)
if unshare --user --map-root-user --mount true 2>/dev/null; then
  mkdir small
  # shellcheck disable=SC2016
  expect_exit 73 unshare --user --map-root-user --mount bash -c '
    mount -t tmpfs -o nr_inodes=3,size=4m none small && "$0" data prepare --output small/tokens text*.txt' "$fourfold"
  expect_stderr 'free there, but no inode: no more files can be made'
  expect_stderr 'remove files or choose a folder'
fi
expectations_met
