// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "collectives.hpp"

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace fourfold::comm {

/// Puts a check in front of a collective: all ranks exchange what they called and with what; only
/// when they agree is the operation itself started. For contract builds. Does not block either.
class CheckedMachine : public Machine {
 public:
  using Start = std::function<std::unique_ptr<Machine>()>;
  /// @param call  the operation and every argument that must agree on all ranks
  CheckedMachine(Endpoint& endpoint, int tag, std::string_view communicator, std::string_view call,
                 Start start);
  bool advance() override;

 private:
  void compare(std::span<const void* const> blocks) const;

  Endpoint& endpoint_;
  std::string communicator_;
  Start start_;
  std::unique_ptr<SmallGather> gather_;
  std::unique_ptr<Machine> machine_;
};

}  // namespace fourfold::comm
