// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/dtype.hpp>
#include <fourfold/comm/algorithm.hpp>
#include <fourfold/comm/mesh.hpp>
#include <fourfold/exchange/measure.hpp>
#include <fourfold/exchange/operation.hpp>
#include <fourfold/program/command_line.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fourfold::bench {

/// `fourfold bench comm` as it was asked for.
struct Arguments {
  int threads = 0;  ///< 0: the ranks are those of MPI
  std::string mesh;
  std::string axis = "world";
  std::vector<std::string> operations;
  std::vector<std::string> algorithms;
  std::string dtype = "f32";
  std::int64_t min_bytes = 8;
  std::int64_t max_bytes = std::int64_t{1} << 30;
  int factor = 2;
  exchange::Pace pace;
  bool library = false;
  std::string csv;
  std::string svg;
};

/// The options and the manual page.
void describe(CLI::App& command, Arguments& arguments);

/// What the options mean, once the number of ranks is known.
struct Request {
  std::vector<exchange::Operation> operations;
  std::vector<comm::Algorithm> algorithms;
  DType dtype = DType::f32;
  std::vector<std::int64_t> sizes_bytes;  ///< rising
  comm::MeshShape mesh;                   ///< all ranks on dp if none was named
  std::optional<comm::Axis> axis;         ///< nothing: the world
};

/// @throws UserError: usage for options that do not go together, config for a mesh that does not
/// fit the ranks and an axis of one rank
Request request_of(const Arguments& arguments, int ranks);

}  // namespace fourfold::bench
