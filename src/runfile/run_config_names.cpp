// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/enum_name.hpp>
#include <fourfold/runfile/run_config.hpp>

#include <array>

namespace fourfold::runfile {

std::string_view name(CudaGraphs graphs) noexcept {
  constexpr std::array<std::string_view, 3> names{"auto", "true", "false"};
  return name_in(names, graphs);
}

std::string_view name(ZeroKeep keep) noexcept {
  constexpr std::array<std::string_view, 2> names{"micro_batch", "step"};
  return name_in(names, keep);
}

std::string_view name(GradientReduce reduce) noexcept {
  constexpr std::array<std::string_view, 3> names{"auto", "step", "micro_batch"};
  return name_in(names, reduce);
}

std::string_view name(DataParallelMode mode) noexcept {
  constexpr std::array<std::string_view, 2> names{"sync", "local"};
  return name_in(names, mode);
}

std::string_view name(OuterOptimizerKind kind) noexcept {
  constexpr std::array<std::string_view, 2> names{"average", "nesterov"};
  return name_in(names, kind);
}

std::string_view name(OptimizerKind kind) noexcept {
  constexpr std::array<std::string_view, 3> names{"adamw", "adam", "sgd"};
  return name_in(names, kind);
}

std::string_view name(ProgressMode mode) noexcept {
  constexpr std::array<std::string_view, 4> names{"auto", "bar", "plain", "none"};
  return name_in(names, mode);
}

std::string_view name(BusySave policy) noexcept {
  return policy == BusySave::wait ? "wait" : "skip";
}

}  // namespace fourfold::runfile
