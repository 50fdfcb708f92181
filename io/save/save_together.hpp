// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/comm/fail_together.hpp>

#include <functional>
#include <optional>

namespace fourfold::io {

/// comm::agree() on a part of a save that ranks did alone. Who cannot write says that what was
/// saved before is there still. Collective.
void agree_on_save(comm::Communicator& communicator, std::optional<comm::Failure> mine);
/// comm::together() for such a part. Collective, and a barrier.
void write_together(comm::Communicator& communicator, const std::function<void()>& work);
/// comm::run_on_root() for such a part. Collective, and a barrier.
void first_rank_writes(comm::Communicator& communicator, const std::function<void()>& work);

}  // namespace fourfold::io
