#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# The site of the documentation: it is built without a warning, nothing in it leads nowhere or comes from elsewhere, and its search
# finds what people look for. Skipped where PyPI or Doxygen cannot be had. Usage: site.bash
set -eu
cd "$(dirname "$0")/../.."
scripts/site
"$(scripts/site --tools)/bin/python" tests/integration/site_search.py build/site
