#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# A start that ends before its first step leaves the record of the run as it is, also where what stops it is found last: no room
# for config.toml, a file that this user may not write, no descriptor left, validation data that the model cannot read after a
# node-local step; and folders of the user's under the names of a run's own files. Usage: kept_record.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
# shellcheck source=tests/integration/small_run.bash
. "$(dirname "$0")/small_run.bash"
begin "$1"
unset "${!SLURM_@}" "${!FOURFOLD_@}"
small_run 4 'micro_batch = 2'
expect_exit 0 "$fourfold" train run.toml --set checkpoint.dir=steps

# sums DIR...: all that is in there, names and contents.
sums() {
  find "$@" ! -name .run-lease ! -name .lease | sort
  find "$@" -type f ! -name .run-lease ! -name .lease -exec sha256sum {} + | sort
}
# keeps CODE TEXT COMMAND...: it ends so, says so, and the folder run is what it was.
keeps() {
  local code=$1 text=$2
  shift 2
  sums run >before.txt
  expect_exit "$code" "$@"
  expect_stderr "$text"
  sums run >after.txt
  expect diff before.txt after.txt
}
longer=("$fourfold" train run.toml --set checkpoint.dir=steps --set train.steps=8)

# Checkpoints that were moved away: nothing begins anew over the record, unless that is asked for.
mv steps moved
keeps 78 'has the record of a run that has saved step 4, and checkpoint.dir = "steps" holds no step' "$fourfold" train run.toml --set checkpoint.dir=steps
keeps 78 'has the record of a run that has saved step 4' "${longer[@]}" --set checkpoint.dir=stepz
rm -rf steps stepz && mv moved steps

# Checkpoints of another run do not go on over the record, though a copy of the run's own does, and a copied run with its own.
expect_exit 0 "$fourfold" train run.toml --set log.dir=another --set train.seed=2
keeps 78 'those of checkpoint.dir = "another/checkpoints" are of another run (log.dir: "another" -> "run")' \
  "$fourfold" train run.toml --set train.seed=2 --set checkpoint.dir=another/checkpoints --set train.steps=8
cp -r steps copied && cp -r run run.kept
expect_exit 0 "$fourfold" train run.toml --set checkpoint.dir=copied --set train.steps=6
rm -r run copied && mv run.kept run
cp -r another fork
expect_exit 0 "$fourfold" train run.toml --set log.dir=fork --set train.seed=2 --set train.steps=6
rm -r another fork

# What cannot be replaced, whoever asks.
if [[ $EUID -eq 0 ]]; then
  cp run/config.toml outside.toml
  if unshare --mount true 2>/dev/null; then
    sums run >before.txt
    expect_exit 73 unshare --mount bash -c 'mount --bind outside.toml run/config.toml && exec "$@"' - "${longer[@]}"
    expect_stderr 'run/config.toml: is mounted there by itself, so it cannot be replaced'
    sums run >after.txt
    expect diff before.txt after.txt
  fi
  if chattr +i run/status.json 2>/dev/null; then
    keeps 73 'run/status.json: is immutable (chattr +i), so it cannot be replaced' "${longer[@]}"
    chattr -i run/status.json
  fi
fi

# A folder that only looks like one where ranks met.
mkdir run/.start-watch-notes && echo precious >run/.start-watch-notes/page
cp -r run run.kept && cp -r steps steps.kept
expect_exit 0 "${longer[@]}"
expect grep -qx precious run/.start-watch-notes/page
rm -r run steps && mv run.kept run && mv steps.kept steps && rm -r run/.start-watch-notes

# Nor does retention, or gc, remove what somebody has put into a folder with the name of a step.
cp -r run run.kept && cp -r steps steps.kept
mkdir steps/step-000000001 && echo precious >steps/step-000000001/thesis.tex
expect_exit 0 "${longer[@]}" --set checkpoint.keep_last=1
expect_stderr 'step-000000001: is not removed, since it holds thesis.tex, which no checkpoint has'
expect_exit 0 "$fourfold" ckpt gc steps --keep-last 1
expect_stderr 'step-000000001: is not removed'
expect grep -qx precious steps/step-000000001/thesis.tex
rm -r run steps && mv run.kept run && mv steps.kept steps

# By the name alone nothing is a file system's: a folder, or what is called like one of its files.
cp -r run run.kept && cp -r steps steps.kept
for name in ._mine .nfsbackup ._notes; do
  rm -rf steps/step-000000001
  mkdir steps/step-000000001
  if [[ $name == ._notes ]]; then echo precious >steps/step-000000001/$name; else mkdir steps/step-000000001/$name; fi
  expect_exit 0 "$fourfold" ckpt gc steps --keep-last 1
  expect_stderr "step-000000001: is not removed, since it holds $name"
  expect test -e steps/step-000000001/$name
done
rm -r run steps && mv run.kept run && mv steps.kept steps

# Checkpoints have one record: not one more under another log.dir while the first is where it was.
keeps 78 'has the checkpoints of the run whose record is in run, and log.dir' "${longer[@]}" --set log.dir=second
[[ ! -e second ]] || complain 'a second record is begun'

# A page for Prometheus does not lie in a checkpoint.
keeps 78 'lies in the checkpoint' "$fourfold" status run --prometheus steps/step-000000004/run.prom
[[ ! -e steps/step-000000004/run.prom ]] || complain 'a checkpoint is written into'

# Folders of the user's: not removed with all that is in them.
for name in SAVE FINISHED; do
  cp -r run run.kept
  rm -f "run/$name"
  mkdir -p "run/$name/best" && echo precious >"run/$name/best/model.txt"
  keeps 78 "run/$name is a folder" "${longer[@]}"
  rm -r run && mv run.kept run
done
yes precious | head -c 5000 >run/SAVE
keeps 78 'run/SAVE is not a file that fourfold wrote' "${longer[@]}"
rm run/SAVE

# Too few descriptors for the files that stay open: whatever the number, all of it or nothing.
sums run >before.txt
for most in $(seq 14 40); do
  (ulimit -n "$most" && exec "${longer[@]}") >"$output" 2>"$errors" </dev/null && break
  sums run >after.txt
  # A program of which nothing could be opened cannot give back what it took.
  expect diff <(grep -v '\.run-lease' before.txt) <(grep -v '\.run-lease' after.txt)
done
expect grep -qx 'step 8' run/FINISHED
rm -r run steps
expect_exit 0 "$fourfold" train run.toml --set checkpoint.dir=steps

# A record that another user has protected.
if [[ $EUID -eq 0 ]] && command -v setpriv >/dev/null; then
  user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
  chmod 755 . && chown -R 65534:65534 run steps
  chown 0:0 run/metrics.jsonl && chmod 644 run/metrics.jsonl
  if "${user[@]}" test -x "$fourfold"; then
    keeps 73 'run/metrics.jsonl: cannot be written' "${user[@]}" "${longer[@]}"
    chown 65534:65534 run/metrics.jsonl && chmod 444 run/metrics.jsonl
    keeps 73 'run/metrics.jsonl: cannot be written' "${user[@]}" "${longer[@]}"
    chmod 644 run/metrics.jsonl
    # In a folder where each removes only his own.
    chown 0:0 run run/status.json && chmod 1777 run
    keeps 73 "run/status.json: is another user's" "${user[@]}" "${longer[@]}"
    chown 65534:65534 run run/status.json && chmod 755 run
    # A checkpoint that this user may not read is whole for all that he knows: nothing is called damaged, or worked around.
    for file in MANIFEST.json index.h5 shard-00000-of-00001.h5; do
      chown 0:0 "steps/step-000000004/$file" && chmod 600 "steps/step-000000004/$file"
      sums steps >steps.txt
      keeps 78 "steps/step-000000004/$file: cannot be read (Permission denied), and may be whole" "${user[@]}" "${longer[@]}"
      for verb in 'ckpt verify steps' 'ckpt info steps/step-000000004'; do
        read -ra words <<<"$verb"
        expect_exit 78 "${user[@]}" "$fourfold" "${words[@]}"
        expect_no_stdout DAMAGED
      done
      sums steps | expect diff steps.txt -
      chown 65534:65534 "steps/step-000000004/$file" && chmod 644 "steps/step-000000004/$file"
    done
  fi
  chmod 644 run/metrics.jsonl && chown -R 0:0 run steps
fi

# A disk with room for little more than exit.json.
# shellcheck disable=SC2016  # expanded by the shell inside
nearly_full='mkdir -p small && mount -t tmpfs -o size=1m none small || exit 71
cp -r run/. small && rm -rf more && cp -r steps more
while free=$(df --block-size=4096 --output=avail small | tail -n 1) && [[ $free -gt $1 ]]; do
  dd if=/dev/zero bs=4096 count=$((free - $1)) status=none >>small/filling 2>/dev/null || break
done
find small -type f -exec sha256sum {} + | sort >before.txt
"$0" train run.toml --set checkpoint.dir=more --set log.dir=small --set train.steps=8 && exit 72
code=$?
find small -type f -exec sha256sum {} + | sort >after.txt
cmp before.txt after.txt && exit "$code"'
if unshare --mount true 2>/dev/null; then
  for blocks in 1 2 4 8; do
    expect_exit 73 unshare --mount bash -c "$nearly_full" "$fourfold" "$blocks"
    expect_stderr 'No space left on device'
  done
else
  echo "no file system can be mounted here: a full disk is not tried"
fi

# A node-local step becomes a checkpoint only when the run can go on from there.
fast=(--set log.dir=run --set checkpoint.dir=run/checkpoints --set "checkpoint.node_local_dir=$PWD/fast" --set checkpoint.node_local_every_steps=1
  --set checkpoint.every_steps=10)
rm -r run
"$fourfold" train run.toml "${fast[@]}" --set train.steps=1000000 >train.log 2>&1 &
trainer=$!
for _ in $(seq 600); do
  ! grep -qs '"step":27,' run/metrics.jsonl || break
  sleep 0.05
done
kill -KILL "$trainer"
wait "$trainer" 2>/dev/null
cp tokens.idx beyond.idx
expect python3 -c 'import pathlib
pathlib.Path("beyond.bin").write_bytes(b"\xff\x7f" * (pathlib.Path("tokens.bin").stat().st_size // 2))'
for _ in 1 2; do
  sums run fast >before.txt
  expect_exit 65 "$fourfold" train run.toml "${fast[@]}" --set train.steps=900000 --set 'data.validation=["beyond"]'
  sums run fast >after.txt
  expect diff before.txt after.txt
done
# Records that are removed beside the same tokens: what made them is known all the same.
expect_exit 0 "$fourfold" data prepare --output known --append-eot text.txt
expect_exit 0 "$fourfold" train run.toml --set log.dir=forgotten --set 'data.train=["known"]' --set train.steps=2
rm known.json
expect_exit 0 "$fourfold" train run.toml --set log.dir=forgotten --set 'data.train=["known"]' --set train.steps=4
expect_exit 0 python3 -c 'import json
vocab = {bytes([b]).decode("latin-1") if 33 <= b < 127 else "x%d" % b: (b + 1) % 256 for b in range(256)}
json.dump({"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
           "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
           "post_processor": None, "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
           "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "", "end_of_word_suffix": "",
                     "fuse_unk": False, "byte_fallback": False, "vocab": vocab, "merges": []}}, open("other.json", "w"))'
expect_exit 78 "$fourfold" sample forgotten --tokenizer other.json --prompt a
expect_stderr 'is not the one of the data that'
# A start that begins anew says of no step that is there that it is gone.
expect_exit 78 "$fourfold" train run.toml --set log.dir=forgotten --set checkpoint.resume=never --set train.steps=4
expect_exit 1 grep -q 'not there any more' "$errors"
expectations_met
