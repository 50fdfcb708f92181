// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/plan/simulate.hpp>

#include <algorithm>

namespace fourfold::plan {
namespace {

bool fills_the_vee(const schedule::ScheduleRequest& request) {
  return request.micro_batches >= 2 * request.stages - 1;
}

}  // namespace

std::optional<double> bubble_closed_form(const schedule::ScheduleRequest& request,
                                         const PassCosts& rank) {
  const double others = request.stages - 1;
  const double fused = others * rank.sum_s();
  if (request.name == "naive") {
    return request.micro_batches * fused;
  }
  if (request.name == "gpipe" || request.name == "1f1b") {
    return fused;
  }
  if (request.name == "interleaved") {
    return fused / chunks_of(request);
  }
  const double weight_s = rank.backward_weight_s;
  if (request.name == "zb-h1" && request.micro_batches >= request.stages &&
      weight_s <= std::min(rank.forward_s, rank.backward_input_s)) {
    return others * (rank.forward_s + rank.backward_input_s - weight_s);
  }
  const bool equal = rank.forward_s == rank.backward_input_s && rank.forward_s == weight_s;
  if (request.name == "zb-v" && equal && fills_the_vee(request)) {
    return others * rank.forward_s / 2;
  }
  return std::nullopt;
}

std::optional<double> peak_activations_closed_form(const schedule::ScheduleRequest& request,
                                                   int rank) {
  const int stages = request.stages;
  const int micro_batches = request.micro_batches;
  FOURFOLD_EXPECT(0 <= rank && rank < stages);
  if (request.name == "naive") {
    return 1;
  }
  if (request.name == "gpipe") {
    return micro_batches;
  }
  if (request.name == "1f1b") {
    return std::min(micro_batches, stages - rank);
  }
  if (request.name == "interleaved") {
    const int chunks = chunks_of(request);
    const int groups = micro_batches / stages;
    const int longest = (micro_batches + groups - 1) / groups;
    const int live = 2 * (stages - rank - 1) + (chunks - 1) * longest + 1;
    const double most_live = std::min(micro_batches * chunks, live);
    return most_live / chunks;
  }
  if (request.name == "zb-h1") {
    return std::min(micro_batches, stages);
  }
  if (request.name == "zb-v" && fills_the_vee(request)) {
    return stages;
  }
  return std::nullopt;
}

}  // namespace fourfold::plan
