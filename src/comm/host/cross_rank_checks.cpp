// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "collectives.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/philox.hpp>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace fourfold::comm {
namespace {

/// What one rank called: readable as far as it fits, and a hash of all of it.
struct Signature {
  std::uint64_t hash = 0;
  char text[120] = {};

  explicit Signature(std::string_view call) : hash(name_salt(call.data(), call.size())) {
    std::memcpy(text, call.data(), std::min(call.size(), sizeof(text) - 1));
  }
  explicit Signature(const void* block) { std::memcpy(this, block, sizeof(*this)); }
};

void compare(const std::string& communicator, int rank, std::span<const void* const> blocks) {
  const Signature own(blocks[rank]);
  for (std::size_t other = 0; other < blocks.size(); ++other) {
    const Signature theirs(blocks[other]);
    if (theirs.hash != own.hash) {
      throw Error(ExitCode::internal,
                  format_message("ranks disagree about a collective on communicator '{}' (a bug of "
                                 "fourfold): rank {} called {}, rank {} called {}",
                                 communicator, rank, own.text, other, theirs.text));
    }
  }
}

}  // namespace

CollectiveTask checked(Transport& transport, int tag, std::string communicator,
                       std::string_view call, std::function<CollectiveTask()> start) {
  const Signature own(call);
  const std::vector<std::int64_t> bytes(transport.size(), sizeof(Signature));
  CollectiveTask check = make_task<SmallGather>(
      transport, tag, &own, bytes,
      [communicator = std::move(communicator), rank = transport.rank()](
          std::span<const void* const> blocks) { compare(communicator, rank, blocks); });
  return
      [check = std::move(check), start = std::move(start), operation = CollectiveTask()]() mutable {
        if (!operation) {
          if (!check()) {
            return false;
          }
          operation = start();
        }
        return operation();
      };
}

}  // namespace fourfold::comm
