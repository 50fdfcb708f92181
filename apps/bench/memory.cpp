// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "measured_rank.hpp"

#include <fourfold/base/amount.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>

#include <algorithm>
#include <string>

namespace fourfold::bench {
namespace {

std::int64_t needed_bytes(const Request& request, std::int64_t size_bytes,
                          std::int64_t line_ranks) {
  const std::int64_t element_bytes = size_in_bytes(request.dtype);
  std::int64_t most = 0;
  for (const exchange::Operation operation : request.operations) {
    const exchange::Extent extent =
        exchange::extent_of(operation, size_bytes, element_bytes, line_ranks);
    most = std::max(most, buffer_bytes(extent, element_bytes));
  }
  return most;
}

}  // namespace

void require_memory(const Request& request, std::int64_t line_ranks, std::int64_t ranks_on_host,
                    std::optional<std::int64_t> available_bytes) {
  // The transport needs some as well.
  const auto fits = [&](std::int64_t size_bytes) {
    const std::int64_t all = needed_bytes(request, size_bytes, line_ranks) * ranks_on_host;
    return !available_bytes || all <= *available_bytes / 10 * 9;
  };
  const std::int64_t largest = request.sizes_bytes.back();
  if (fits(largest)) {
    return;
  }
  const auto fitting =
      std::ranges::find_if(request.sizes_bytes.rbegin(), request.sizes_bytes.rend(), fits);
  throw UserError(
      ExitCode::config,
      format_message(
          "buffers for {} bytes do not fit ({} ranks on this machine need {:.1f} GiB each, "
          "and it has {:.1f} GiB left); use {}fewer ranks",
          largest, ranks_on_host, gib(needed_bytes(request, largest, line_ranks)),
          gib(*available_bytes),
          fitting == request.sizes_bytes.rend() ? std::string()
                                                : format_message("--max-bytes {}, or ", *fitting)));
}

}  // namespace fourfold::bench
