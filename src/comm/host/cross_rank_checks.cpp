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

}  // namespace

CheckedMachine::CheckedMachine(Endpoint& endpoint, int tag, std::string_view communicator,
                               std::string_view call, Start start)
    : endpoint_(endpoint), communicator_(communicator), start_(std::move(start)) {
  const Signature own(call);
  const std::vector<std::int64_t> bytes(endpoint.size(), sizeof(Signature));
  gather_ = std::make_unique<SmallGather>(
      endpoint, tag, &own, bytes, [this](std::span<const void* const> blocks) { compare(blocks); });
}

void CheckedMachine::compare(std::span<const void* const> blocks) const {
  const Signature own(blocks[endpoint_.rank()]);
  for (std::size_t rank = 0; rank < blocks.size(); ++rank) {
    const Signature theirs(blocks[rank]);
    if (theirs.hash != own.hash) {
      throw Error(ExitCode::internal,
                  format_message("ranks disagree about a collective on communicator '{}' (a bug of "
                                 "fourfold): rank {} called {}, rank {} called {}",
                                 communicator_, endpoint_.rank(), own.text, rank, theirs.text));
    }
  }
}

bool CheckedMachine::advance() {
  if (!machine_) {
    if (!gather_->advance()) {
      return false;
    }
    machine_ = start_();
  }
  return machine_->advance();
}

}  // namespace fourfold::comm
