// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "measured_rank.hpp"

#include "results.hpp"

#include <fourfold/base/log.hpp>
#include <fourfold/exchange/collective_benchmark.hpp>
#include <fourfold/exchange/measure.hpp>
#include <fourfold/io/atomic_file.hpp>
#include <fourfold/io/own_file.hpp>
#include <fourfold/io/step_place.hpp>
#include <fourfold/program/print.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

namespace fourfold::bench {
namespace {

constexpr io::OwnFile own_csv{"operation,algorithm,transport,axis,ranks,lines,bytes",
                              "fourfold bench --csv"};
constexpr io::OwnFile own_svg{"<!-- made by fourfold bench -->", "fourfold bench --svg"};

/// A file that was asked for, on rank 0: opened before anything is measured, so that one that
/// cannot be written is told at once. Nothing on other ranks.
std::optional<io::AtomicFile> opened(const std::string& path, const io::OwnFile& own,
                                     const comm::Communicator& world) {
  if (path.empty() || world.rank() != 0) {
    return std::nullopt;
  }
  io::refuse_place_in_step(path);
  io::refuse_foreign_file(path, own);
  return std::optional<io::AtomicFile>(std::in_place, io::followed(path));
}

void publish(io::AtomicFile& file, const std::string& text) {
  file.write(text);
  file.publish();
  program::print("# wrote {}\n", file.path().string());
}

/// Everything that one rank needs, the same on all.
struct Session {
  const Arguments& arguments;
  Request request;
  Setting setting;
  comm::Communicator& world;
  comm::Communicator& line;
  comm::LibraryCollectives* library;
};

Row measure_row(Session& session, Row row) {
  exchange::CollectiveBenchmark collective_benchmark(row.operation, row.extent,
                                                     session.request.dtype, session.line);
  row.wrong = comm::all_reduce_scalar(session.world, collective_benchmark.wrong_elements(),
                                      comm::ReduceOp::sum);
  comm::LibraryCollectives* const library =
      collective_benchmark.library_can() ? session.library : nullptr;
  const exchange::Timing timing =
      exchange::measure(collective_benchmark, library, session.world, session.arguments.pace);
  row.call_s = timing.call_s;
  row.library_call_s = timing.library_call_s;
  return row;
}

/// All sizes of one operation, with the algorithm that the line uses.
void measure_sizes(Session& session, exchange::Operation operation, comm::Algorithm algorithm,
                   std::vector<Row>& rows) {
  const bool speaks = session.world.rank() == 0;
  // What rank 0 is at, on a terminal only: a line that the next one draws over.
  const auto show = [draws = speaks && ::isatty(STDERR_FILENO) != 0](const std::string& text) {
    if (draws) {
      log::draw_stderr(text);
    }
  };
  const std::int64_t element_bytes = size_in_bytes(session.request.dtype);
  std::int64_t last_bytes = 0;
  for (const std::int64_t bytes : session.request.sizes_bytes) {
    const exchange::Extent extent =
        exchange::extent_of(operation, bytes, element_bytes, session.line.size());
    if (extent.bytes == last_bytes) {
      continue;  // sizes below one element per part are all the same
    }
    last_bytes = extent.bytes;
    show(fmt::format("measuring {}, {}: {} bytes of up to {}", name(operation),
                     comm::name(algorithm), extent.bytes, session.request.sizes_bytes.back()));
    rows.push_back(
        measure_row(session, {.operation = operation, .algorithm = algorithm, .extent = extent}));
    show("");
    if (speaks) {
      program::print_text(table_line(session.setting, rows.back()));
      std::fflush(stdout);
    }
  }
}

std::vector<Row> measure_all(Session& session) {
  std::vector<Row> rows;
  for (const exchange::Operation operation : session.request.operations) {
    std::vector<comm::Algorithm> measured;  // two wishes may come to the same
    for (const comm::Algorithm wish : session.request.algorithms) {
      session.line.use(wish);
      const comm::Algorithm algorithm = way_of(operation, session.line.algorithm());
      if (std::ranges::count(measured, algorithm) == 0) {
        measured.push_back(algorithm);
        measure_sizes(session, operation, algorithm, rows);
      }
    }
  }
  return rows;
}

}  // namespace

ExitCode measure_rank(const Arguments& arguments, const Request& request,
                      const std::string& transport, comm::Communicator& world) {
  io::refuse_one_place_twice(
      std::array{io::NamedOutput{"--csv", arguments.csv}, io::NamedOutput{"--svg", arguments.svg}});
  auto csv = opened(arguments.csv, own_csv, world);
  auto svg = opened(arguments.svg, own_svg, world);
  comm::Mesh mesh(request.mesh, world);
  comm::Communicator& line = request.axis ? mesh.axis(*request.axis) : world;
  std::optional<comm::LibraryCollectives> library;
  if (arguments.library) {
    library.emplace(line);
  }
  Session session{.arguments = arguments,
                  .request = request,
                  .setting = {.transport = transport,
                              .axis = arguments.axis,
                              .ranks = line.size(),
                              .lines = world.size() / line.size(),
                              .dtype = request.dtype,
                              .library = library ? comm::LibraryCollectives::library() : ""},
                  .world = world,
                  .line = line,
                  .library = library ? &*library : nullptr};
  if (world.rank() == 0) {
    program::print_text(table_head(session.setting));
    std::fflush(stdout);
  }
  const std::vector<Row> rows = measure_all(session);
  std::int64_t wrong = 0;
  for (const Row& row : rows) {
    wrong += row.wrong;
  }
  if (world.rank() == 0) {
    program::print_text(table_foot(session.setting, rows));
    if (csv) {
      publish(*csv, to_csv(session.setting, rows));
    }
    if (svg) {
      publish(*svg, fmt::format("{}\n", own_svg.mark) + plot_svg(session.setting, rows));
    }
  }
  return wrong == 0 ? ExitCode::finished : ExitCode::differs;
}

}  // namespace fourfold::bench
