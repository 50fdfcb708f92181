// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace fourfold::train_program {

/// Whether SIGHUP was ignored when the process began: `nohup` does that, so that a run outlives its
/// terminal. Libraries of MPI (libpsm2) put a handler in its place as they are loaded, so it is
/// asked before they are.
bool hangup_was_ignored() noexcept;

}  // namespace fourfold::train_program
