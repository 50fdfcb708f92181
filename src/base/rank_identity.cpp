// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/rank_identity.hpp>

#include <utility>

namespace fourfold {
namespace {

RankIdentity& identity() {
  static RankIdentity instance;
  return instance;
}

}  // namespace

void set_rank_identity(RankIdentity next) {
  identity() = std::move(next);
}

const RankIdentity& rank_identity() noexcept {
  return identity();
}

}  // namespace fourfold
