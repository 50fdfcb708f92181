// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"
#include "memory.hpp"
#include "plot.hpp"
#include "results.hpp"

#include <fourfold/base/log.hpp>
#include <fourfold/comm/mpi_runtime.hpp>
#include <fourfold/comm/thread_group.hpp>
#include <fourfold/device/host_memory.hpp>
#include <fourfold/exchange/exercise.hpp>
#include <fourfold/exchange/measure.hpp>
#include <fourfold/io/atomic_file.hpp>
#include <fourfold/io/step_place.hpp>
#include <fourfold/program/run.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <vector>

namespace {

using fourfold::ExitCode;
namespace bench = fourfold::bench;
namespace comm = fourfold::comm;
namespace exchange = fourfold::exchange;

/// The files that were asked for, on rank 0: opened before anything is measured, so that one that
/// cannot be written is told at once.
class Files {
 public:
  Files(const bench::Arguments& arguments, bool writes) {
    for (const std::string& path : {arguments.csv, arguments.svg}) {
      if (writes && !path.empty()) {
        fourfold::io::refuse_place_in_step(path);
      }
    }
    if (writes && !arguments.csv.empty()) {
      csv_.emplace(arguments.csv);
    }
    if (writes && !arguments.svg.empty()) {
      svg_.emplace(arguments.svg);
    }
  }
  void write(const bench::Setting& setting, std::span<const bench::Row> rows) {
    if (csv_) {
      publish(*csv_, bench::to_csv(setting, rows));
    }
    if (svg_) {
      publish(*svg_, bench::plot_svg(setting, rows));
    }
  }

 private:
  static void publish(fourfold::io::AtomicFile& file, const std::string& text) {
    file.write(text);
    file.publish();
    fmt::print("# wrote {}\n", file.path().string());
  }

  std::optional<fourfold::io::AtomicFile> csv_;
  std::optional<fourfold::io::AtomicFile> svg_;
};

/// What rank 0 is at, on a terminal only: a line that the next one draws over.
class Status {
 public:
  explicit Status(bool shows) : shows_(shows && ::isatty(STDERR_FILENO) != 0) {}
  void show(const std::string& text) const { draw(text); }
  void clear() const { draw(""); }

 private:
  void draw(const std::string& text) const {
    if (shows_) {
      fourfold::log::write_stderr(fmt::format("\r{}\x1b[K", text));
    }
  }
  bool shows_;
};

/// Everything that one rank needs; all of it but the files is the same on all.
struct Session {
  const bench::Arguments& arguments;
  bench::Request request;
  bench::Setting setting;
  comm::Communicator& world;
  comm::Communicator& line;
  comm::LibraryCollectives* library;
};

bench::Row measure_row(Session& session, bench::Row row) {
  exchange::Exercise exercise(row.operation, row.extent, session.request.dtype, session.line);
  row.wrong =
      comm::all_reduce_scalar(session.world, exercise.wrong_elements(), comm::ReduceOp::sum);
  comm::LibraryCollectives* const library = exercise.library_can() ? session.library : nullptr;
  const exchange::Timing timing =
      exchange::measure(exercise, library, session.world, session.arguments.pace);
  row.call_s = timing.call_s;
  row.library_call_s = timing.library_call_s;
  return row;
}

/// All sizes of one operation, with the algorithm that the line uses.
void measure_sizes(Session& session, exchange::Operation operation, comm::Algorithm algorithm,
                   std::vector<bench::Row>& rows) {
  const bool speaks = session.world.rank() == 0;
  const Status status(speaks);
  const auto element_bytes =
      static_cast<std::int64_t>(fourfold::size_in_bytes(session.request.dtype));
  std::int64_t last_bytes = 0;
  for (const std::int64_t bytes : session.request.sizes_bytes) {
    const exchange::Extent extent =
        exchange::extent_of(operation, bytes, element_bytes, session.line.size());
    if (extent.bytes == last_bytes) {
      continue;  // sizes below one element per part are all the same
    }
    last_bytes = extent.bytes;
    status.show(fmt::format("measuring {}, {}: {} bytes of up to {}", name(operation),
                            comm::name(algorithm), extent.bytes,
                            session.request.sizes_bytes.back()));
    rows.push_back(
        measure_row(session, {.operation = operation, .algorithm = algorithm, .extent = extent}));
    status.clear();
    if (speaks) {
      fmt::print("{}", bench::table_line(session.setting, rows.back()));
      std::fflush(stdout);
    }
  }
}

std::vector<bench::Row> measure_all(Session& session) {
  std::vector<bench::Row> rows;
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

/// What one rank does. Collective over `world`.
ExitCode measure_rank(const bench::Arguments& arguments, const bench::Request& request,
                      const std::string& transport, comm::Communicator& world) {
  Files files(arguments, world.rank() == 0);
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
    fmt::print("{}", bench::table_head(session.setting));
    std::fflush(stdout);
  }
  const std::vector<bench::Row> rows = measure_all(session);
  std::int64_t wrong = 0;
  for (const bench::Row& row : rows) {
    wrong += row.wrong;
  }
  if (world.rank() == 0) {
    fmt::print("{}", bench::table_foot(session.setting, rows));
    files.write(session.setting, rows);
  }
  return wrong == 0 ? ExitCode::finished : ExitCode::differs;
}

int line_ranks(const bench::Request& request) {
  return request.axis ? request.mesh.degree(*request.axis) : static_cast<int>(request.mesh.ranks());
}

ExitCode measure_threads(const bench::Arguments& arguments) {
  const int ranks = arguments.threads;
  const bench::Request request = bench::request_of(arguments, ranks);
  bench::require_memory(request, line_ranks(request), ranks,
                        fourfold::device::available_memory_bytes());
  ExitCode code = ExitCode::finished;
  comm::run_ranks(ranks, [&](comm::Communicator& world) {
    const ExitCode own = measure_rank(arguments, request, "threads", world);
    if (world.rank() == 0) {
      code = own;
    }
  });
  return code;
}

ExitCode measure_processes(const bench::Arguments& arguments, int argc, char** argv) {
  const comm::MpiRuntime mpi(&argc, &argv);
  const bench::Request request = bench::request_of(arguments, mpi.world().size());
  // The least of all machines, so that all ranks come to the same end.
  const std::int64_t own = fourfold::device::available_memory_bytes().value_or(-1);
  const std::int64_t least = comm::all_reduce_scalar(mpi.world(), own, comm::ReduceOp::min);
  const auto most_on_host = static_cast<int>(
      comm::all_reduce_scalar(mpi.world(), std::int64_t{mpi.ranks_on_host()}, comm::ReduceOp::max));
  bench::require_memory(request, line_ranks(request), most_on_host,
                        least < 0 ? std::nullopt : std::optional(least));
  return measure_rank(arguments, request, "mpi", mpi.world());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App command{"Measures parts of fourfold on this machine or cluster.", "fourfold bench"};
  command.require_subcommand(1);
  CLI::App* const part = command.add_subcommand(
      "comm", "How fast ranks exchange and add up data: latency and bandwidth by size");
  bench::Arguments arguments;
  bench::describe(*part, arguments);
  command.footer("\nEXIT CODES\n" +
                 fourfold::program::exit_codes_table({ExitCode::differs, ExitCode::config}));
  return fourfold::program::run("fourfold bench", [&] {
    if (const auto end = fourfold::program::parse(command, argc, argv)) {
      return *end;
    }
    return arguments.threads > 0 ? measure_threads(arguments)
                                 : measure_processes(arguments, argc, argv);
  });
}
