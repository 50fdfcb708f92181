// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Between two collective operations a rank may fail alone. It must not leave: the others would
/// wait for it for ever. So local work runs in attempt(), and agree() makes all ranks throw alike.
#pragma once

#include <fourfold/base/error.hpp>
#include <fourfold/comm/communicator.hpp>

#include <functional>
#include <optional>
#include <string>

namespace fourfold::io {

struct Failure {
  ExitCode code = ExitCode::internal;
  std::string message;
};

/// Runs `work`; what it throws becomes a Failure.
std::optional<Failure> attempt(const std::function<void()>& work);

/// Collective. Returns when no rank failed. Otherwise every rank throws the same SystemError: the
/// failures of the lowest ranks that have any, each with its rank, under the lowest one's exit
/// code.
void agree(comm::Communicator& communicator, const std::optional<Failure>& mine);

}  // namespace fourfold::io
