#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# Installs fourfold with Spack, Debian's libraries as externals, and runs what was installed.
# Looks for Spack in FOURFOLD_SPACK_ROOT, then on PATH; skipped (77) without. Everything it writes, Spack's own
# configuration and caches included, goes to a temporary folder.
set -euo pipefail
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
spack=${FOURFOLD_SPACK_ROOT:+$FOURFOLD_SPACK_ROOT/bin/}spack
if ! command -v "$spack" >/dev/null; then
  echo "skipped: no Spack at hand (set FOURFOLD_SPACK_ROOT to the folder of one)"
  exit 77
fi
if [[ ! -e /usr/include/oneapi/dnnl/dnnl.hpp ]]; then
  echo "skipped: the externals are Debian's, which are not installed"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export SPACK_DISABLE_LOCAL_CONFIG=1 SPACK_USER_CACHE_PATH=$work/cache

# A copy of the sources, since Spack builds a develop spec inside its folder.
mkdir -p "$work/sources" "$work/environment"
(cd "$source_dir" && git ls-files -z | xargs -0 cp --parents -t "$work/sources")
cat >"$work/environment/spack.yaml" <<END
spack:
  include: [$source_dir/tests/spack/debian_externals.yaml]
  specs: [fourfold@main ~openmp]
  develop: {fourfold: {spec: fourfold@main, path: $work/sources}}
  repos: [$source_dir/spack/spack_repo/fourfold]
  view: $work/view
  concretizer: {unify: true, reuse: false}
  config: {install_tree: {root: $work/store}, build_stage: [$work/stage], ccache: $(command -v ccache >/dev/null && echo true || echo false)}
END
spack() { command "$spack" -e "$work/environment" "$@"; }
export CCACHE_BASEDIR=$work/sources CCACHE_NOHASHDIR=1

# Before 1.0 compilers are not externals; Spack finds this machine's by itself there.
spack compiler find --scope "env:$work/environment" >/dev/null 2>&1 || spack compiler find >/dev/null
spack concretize
spack install --fail-fast
fourfold=$work/view/bin/fourfold
"$fourfold" version
mkdir "$work/tiny"
bash "$source_dir/tests/spack/train_tiny.bash" "$fourfold" "$work/tiny"
