// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"

#include <fourfold/base/enum_name.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>

#include <algorithm>
#include <array>
#include <charconv>

namespace fourfold::bench {
namespace {

constexpr int most_threads = 256;
constexpr std::array dtypes{DType::f32, DType::bf16, DType::f16,
                            DType::f64, DType::i32,  DType::i64};
constexpr std::int64_t most_bytes = std::int64_t{1} << 36;

constexpr const char* manual = R"(
HOW IT MEASURES
  Sizes are those of nccl-tests: bytes of the larger buffer of a rank. For each, one call is
  checked in every element, then calls are timed in five rounds: the mean of a round's calls, of
  the slowest rank; shown is the median of the rounds. With --library the MPI library's own
  collective takes turns with ours on the same ranks and buffers.

COLUMNS
  size     bytes of the buffer: all_reduce, send_recv: the data; all_gather: what is received;
           reduce_scatter, all_to_all: what is sent
  count    elements: all of them (all_reduce, send_recv), of each rank's part (the others)
  algbw    size / time
  busbw    algbw x 2(n-1)/n for all_reduce, (n-1)/n for all_gather, reduce_scatter, all_to_all,
           1 for send_recv (a ring: each rank sends to the next): what a rank's link carries
  wrong    elements that are not what they have to be, of all ranks
  ratio    the MPI library's time over ours

MESH
  --mesh dp=2,tp=4 --axis tp  measures the lines of that axis, all at the same time, as training
  uses them. Axes that are not named have degree 1; dp=auto is what the others leave.

EXAMPLES
  mpiexec -n 2 fourfold bench comm --library
  mpiexec -n 8 fourfold bench comm --mesh dp=4,tp=2 --axis dp --operation all_reduce --dtype bf16
  fourfold bench comm --threads 4 --max-bytes 16M --csv comm.csv --svg comm.svg
)";

[[noreturn]] void refuse(ExitCode code, const std::string& message) {
  throw UserError(code, message);
}

std::vector<std::string> line_names() {
  std::vector<std::string> names = names_in(comm::all_axes);
  names.insert(names.begin(), "world");
  return names;
}

void describe_what(CLI::App& command, Arguments& arguments) {
  command
      .add_option("--threads", arguments.threads,
                  "Ranks are threads of this process; otherwise those that mpiexec or srun started")
      ->check(program::whole_number(1, most_threads))
      ->type_name("N");
  command
      .add_option(
          "--mesh", arguments.mesh,
          "The mesh whose axis is measured, as pp=1,dp=2,cp=1,tp=2. Default: all ranks on dp")
      ->type_name("MESH");
  command.add_option("--axis", arguments.axis, "Which ranks talk: a line of the mesh, or all")
      ->check(CLI::IsMember(line_names()))
      ->capture_default_str();
  command
      .add_option("--operation", arguments.operations,
                  "What to measure, once or several times. Default: everything")
      ->check(CLI::IsMember(names_in(exchange::all_operations)))
      ->delimiter(',')
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      .add_option("--algorithm", arguments.algorithms,
                  "How collectives go, once or several times: auto (shared memory where all ranks "
                  "of a line have it and it pays, else direct), direct, shared, ring, tree; the "
                  "last two have ways of their own for all_reduce, the ring for all_gather too")
      ->check(CLI::IsMember(names_in(named_values<comm::Algorithm>)))
      ->delimiter(',')
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_option("--dtype", arguments.dtype, "Type of the elements")
      ->check(CLI::IsMember(names_in(dtypes)))
      ->capture_default_str();
}

void describe_sizes(CLI::App& command, Arguments& arguments) {
  const auto bytes = [&](const char* option, std::int64_t& target, const char* meaning) {
    command.add_option(option, target, meaning)
        ->transform(CLI::AsSizeValue(false))
        ->check(program::whole_number(1, most_bytes))
        ->type_name("BYTES");
  };
  bytes("--min-bytes", arguments.min_bytes,
        "The smallest size; K, M and G are powers of 1024. Default: 8");
  bytes("--max-bytes", arguments.max_bytes, "The largest size. Default: 1G");
  command.add_option("--factor", arguments.factor, "From one size to the next")
      ->check(program::whole_number(2, 1024))
      ->capture_default_str();
  command
      .add_option("--iterations", arguments.pace.iterations,
                  "Calls per round. Default: as many as --seconds allows")
      ->check(program::whole_number(1, 1'000'000));
  command
      .add_option("--seconds", arguments.pace.budget_s,
                  "Time for all rounds of a size together, about")
      ->check(program::number_between(0, 3600))
      ->capture_default_str();
  command.add_option("--warmup", arguments.pace.warmup, "Calls of each size before it is timed")
      ->check(program::whole_number(0, 1000))
      ->capture_default_str();
}

void describe_output(CLI::App& command, Arguments& arguments) {
  command.add_flag("--library", arguments.library,
                   "Measure the MPI library's own collectives beside ours");
  command.add_option("--csv", arguments.csv, "Write the table for programs")
      ->check(program::place_to_write())
      ->type_name("FILE");
  command.add_option("--svg", arguments.svg, "Draw the bus bandwidth over the size")
      ->check(program::place_to_write())
      ->type_name("FILE");
}

int degree_of(const std::string& text, const std::string& item) {
  int degree = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, degree);
  if (error != std::errc{} || stop != end || degree < 1) {
    refuse(ExitCode::usage,
           format_message("--mesh has '{}' (a degree is a number from 1); write, say, dp=2", item));
  }
  return degree;
}

/// "dp=2,tp=2".
comm::MeshShape mesh_from(const std::string& text) {
  comm::MeshShape shape;
  std::string seen;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string item = text.substr(begin, end - begin);
    const std::string axis = item.substr(0, item.find('='));
    const auto found = value_named<comm::Axis>(axis);
    if (!found || axis.size() == item.size()) {
      refuse(
          ExitCode::usage,
          format_message("--mesh has '{}' (it takes {} with a degree each); write, say, dp=2,tp=2",
                         item, comm::axis_names()));
    }
    if (seen.find(axis) != std::string::npos) {
      refuse(ExitCode::usage,
             format_message("--mesh names {} twice (an axis has one degree); leave one out", axis));
    }
    seen += axis + " ";
    const std::string degree = item.substr(axis.size() + 1);
    shape[*found] = found == comm::Axis::dp && degree == "auto" ? 0 : degree_of(degree, item);
    begin = end + 1;
  }
  return shape;
}

void require_others(const Arguments& arguments, const Request& request, int ranks) {
  if (ranks == 1) {
    refuse(ExitCode::config,
           "there is one rank (nothing is sent); start more: mpiexec -n 2 fourfold bench comm, or "
           "--threads 2");
  }
  if (request.axis && request.mesh[*request.axis] == 1) {
    refuse(ExitCode::config, format_message("--axis {} has one rank in {} (nothing is sent); give "
                                            "it a degree in --mesh, or name another axis",
                                            arguments.axis, request.mesh.str()));
  }
}

}  // namespace

void describe(CLI::App& command, Arguments& arguments) {
  describe_what(command, arguments);
  describe_sizes(command, arguments);
  describe_output(command, arguments);
  command.footer(std::string(manual) + "\nEXIT CODES\n" +
                 program::exit_codes_table({ExitCode::differs, ExitCode::cannot_write,
                                            ExitCode::config, ExitCode::node_fault}));
}

Request request_of(const Arguments& arguments, int ranks) {
  if (arguments.library && arguments.threads > 0) {
    refuse(ExitCode::usage,
           "--library and --threads do not go together (threads are no ranks of MPI); start ranks "
           "with mpiexec, or leave one out");
  }
  if (arguments.min_bytes > arguments.max_bytes) {
    refuse(ExitCode::usage,
           format_message(
               "--min-bytes {} is more than --max-bytes {} (no size is left); turn them round",
               arguments.min_bytes, arguments.max_bytes));
  }
  Request request;
  request.dtype = *dtype_from_name(arguments.dtype);
  request.axis = value_named<comm::Axis>(arguments.axis);
  const comm::MeshShape wanted =
      arguments.mesh.empty() ? comm::MeshShape{.dp = 0} : mesh_from(arguments.mesh);
  request.mesh = comm::resolve_mesh(wanted, ranks);
  require_others(arguments, request, ranks);
  for (const std::string& operation : arguments.operations) {
    request.operations.push_back(*value_named<exchange::Operation>(operation));
  }
  if (request.operations.empty()) {
    request.operations.assign(exchange::all_operations.begin(), exchange::all_operations.end());
  }
  for (const std::string& algorithm : arguments.algorithms) {
    request.algorithms.push_back(*value_named<comm::Algorithm>(algorithm));
  }
  if (request.algorithms.empty()) {
    request.algorithms.push_back(comm::Algorithm::automatic);
  }
  for (std::int64_t bytes = arguments.min_bytes; bytes <= arguments.max_bytes;
       bytes *= arguments.factor) {
    request.sizes_bytes.push_back(bytes);
  }
  return request;
}

}  // namespace fourfold::bench
