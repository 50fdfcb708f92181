#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# A bundle, moved into a system that has nothing but a shell. Usage: bundle.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
begin "$1"
bundle=$SOURCE_DIR/scripts/bundle
for tool in patchelf busybox; do
  command -v "$tool" >/dev/null || { echo "skipped: no $tool here (scripts/bootstrap --checks installs it)" && exit 77; }
done

expect_exit 0 "$bundle" --build "$1" --output made
expect_exit 0 env PIP_NO_INDEX=1 "$bundle" --build "$1" --output without-pypi
expect_stderr "the bundle is beyond 60 MB; for a small one make it where PyPI can be reached"
rm -rf without-pypi
expect_exit 73 "$bundle" --build "$1" --output made
expect_stderr 'is there already'
expect_exit 78 "$bundle" --build . --output other
expect_stderr 'is no build for GPUs'
expect_exit 64 "$bundle" --output
expect_exit 64 "$bundle" --squash
[[ ! -e other ]] || complain "a folder was made of no build"

# All libraries but the loader are the bundle's, by $ORIGIN, where the system's C library is new enough.
mkdir elsewhere
mv made elsewhere/moved
outside() { # FILE: the libraries that it would load from elsewhere, but for the C library's own
  ldd "$1" | awk '$2 == "=>" { print $3 }' | xargs readlink -f | grep -v "^$(readlink -f elsewhere/moved/lib)/" |
    grep -vE '/lib(c|m|pthread|dl|rt)[.]so'
}
for file in elsewhere/moved/programs/* elsewhere/moved/lib/*_test.so; do
  found=$(outside "$file")
  [[ -z $found ]] || complain "${file##*/} takes from outside: $found"
done

# The tests of the list, as far as they are built, and programs that users start.
expect cmp "$1/tests/device_tests.txt" elsewhere/moved/tests/device_tests.txt
while read -r name _; do
  [[ ! -x $1/tests/$name.so || -r elsewhere/moved/lib/$name.so ]] || complain "the module of $name is not in the bundle"
  [[ ! -x $1/tests/$name || (-L $1/tests/$name && ! -x $1/tests/$name.so) || -x elsewhere/moved/tests/$name ]] || complain "$name is not in the bundle"
done <"$1/tests/device_tests.txt"
for name in fourfold-train gpu_step mpiexec; do
  [[ -x elsewhere/moved/bin/$name ]] || complain "$name is not in the bundle"
done
[[ ! -e elsewhere/moved/programs/take_and_copy ]] || complain "a program of a test is in the bundle"

# A machine without one of CUDA's libraries.
patchelf --add-needed libnccl-of-another-place.so.2 elsewhere/moved/programs/fourfold-watch
expect_exit 78 elsewhere/moved/bin/fourfold watch --help
expect_stderr '  libnccl-of-another-place.so.2'
expect_stderr 'FOURFOLD_CUDA_LIBRARIES'

# CPUs: an old one, one that is new enough, and one of which nothing is known.
printf 'processor\t: 0\nflags\t\t: fpu avx sse4_2 fma avx2_but_not_quite\n' >old-cpu
printf 'flags\t\t: fpu avx2 sse4_2\n' >another-cpu
printf 'flags\t\t: fma fpu avx2\nprocessor\t: 1\nflags\t\t: fpu\n' >new-cpu
: >no-cpu
expect_exit 78 env FOURFOLD_CPUINFO=old-cpu elsewhere/moved/bin/fourfold version
expect_stderr 'this CPU is too old (it has no avx2,'
expect_exit 78 env FOURFOLD_CPUINFO=another-cpu elsewhere/moved/bin/fourfold version
expect_stderr 'it has no fma,'
for cpu in new-cpu no-cpu not-there; do
  expect_exit 0 env FOURFOLD_CPUINFO="$cpu" elsewhere/moved/bin/fourfold version
done

cat >text.txt <<'END'
It is a truth universally acknowledged, that a single machine in possession of a good processor, must be in want of a
device. However little known the clock or cores of such a machine may be on its first entering a neighbourhood, this truth
is so well fixed in the minds of the surrounding people, that it is considered as the rightful property of some one of them.
END
cat >run.toml <<'END'
[model]
layers = 2
hidden = 32
heads = 2
vocab = 257
context = 32
[train]
global_batch = 4
micro_batch = 2
steps = 3
[data]
train = ["tokens"]
[log]
dir = "run"
END
cat >inside.sh <<'END'
set -e
cd /home
PATH=/opt/fourfold/bin:/bin
fourfold version
fourfold help | grep -q train
LD_BIND_NOW=1 fourfold ckpt --help | grep -q reshard # no library lacks a function
fourfold data prepare --tokenizer byte --progress none --output tokens text.txt
fourfold train run.toml --progress plain
FOURFOLD_EMULATED_GPUS=2 mpiexec -n 2 fourfold train run.toml --set log.dir=two --progress plain
/opt/fourfold/tests/device_test
/opt/fourfold/tests/model_golden_test
ln -s /opt/fourfold/bin/fourfold /bin/my-fourfold
if my-fourfold version; then exit 1; fi
END

# A root folder of its own: the bundle, a static shell, and what every kernel gives. (A loader that is started by its name
# keeps 104 bytes, which a build with sanitizers would take for our leak.)
if ! unshare --mount true 2>/dev/null; then
  echo "skipped: no mount namespaces here; what is above held"
  expectations_met && exit 77
  exit 1
fi
mkdir -p system/{bin,dev,proc,sys,tmp,home,opt,etc}
cp "$(command -v busybox)" system/bin/busybox
for applet in sh cat env grep ln readlink; do ln -s busybox "system/bin/$applet"; done
echo 'root:x:0:0::/home:/bin/sh' >system/etc/passwd
echo "127.0.0.1 localhost $(uname -n)" >system/etc/hosts
mv elsewhere/moved system/opt/fourfold
cp text.txt run.toml inside.sh system/home
expect_exit 0 unshare --mount bash -c 'mount --rbind /dev system/dev && mount -t proc proc system/proc &&
  mount -t sysfs sysfs system/sys &&
  exec chroot system /bin/env -i ASAN_OPTIONS=detect_leaks=0 TMPDIR=/tmp HOME=/home /bin/sh /home/inside.sh'
[[ $(grep -c 'All tests passed' "$output") -eq 2 ]] || complain "tests in the bundle failed"
expect_stderr 'step 3/3'
expect_stderr "there is no program 'my-fourfold'"
expect_exit 0 grep -c '"event":"step"' system/home/two/metrics.jsonl
expect_stdout 3
expectations_met
