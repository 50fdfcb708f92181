// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/remedies.hpp>

namespace fourfold::runfile {

/// Of programs that do what a run file says: which of its keys help.
Remedies run_remedies();

}  // namespace fourfold::runfile
