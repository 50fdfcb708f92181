// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "raw_disk.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/io/scratch_file.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace fourfold::benchmarks {
namespace {

constexpr std::size_t transfer_bytes = std::size_t{8} << 20;

constexpr std::uint64_t threads = 8;

struct Ways {
  bool read;
  bool write;
};

/// Every eighth block, from `first` on.
void stream_share(int descriptor, std::uint64_t first, std::uint64_t bytes, Ways ways) {
  const std::unique_ptr<void, decltype(&std::free)> buffer(
      std::aligned_alloc(io::ScratchFile::page_bytes, transfer_bytes), &std::free);
  std::memset(buffer.get(), 1, transfer_bytes);
  const auto check = [](ssize_t done) {
    if (done != static_cast<ssize_t>(transfer_bytes)) {
      throw SystemError(ExitCode::node_fault, fmt::format("the disk: {}", std::strerror(errno)));
    }
  };
  for (std::uint64_t begin = first * transfer_bytes; begin < bytes;
       begin += threads * transfer_bytes) {
    const auto offset = static_cast<off_t>(begin);
    if (ways.read) {
      check(::pread(descriptor, buffer.get(), transfer_bytes, offset));
    }
    if (ways.write) {
      check(::pwrite(descriptor, buffer.get(), transfer_bytes, offset));
    }
  }
}

/// @return bytes per second, of both ways together
double rate(int descriptor, std::uint64_t bytes, Ways ways) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::jthread> running;
  for (std::uint64_t i = 0; i < threads; ++i) {
    running.emplace_back([=] { stream_share(descriptor, i, bytes, ways); });
  }
  running.clear();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return (ways.read && ways.write ? 2 : 1) * static_cast<double>(bytes) / seconds.count();
}

}  // namespace

DiskRates raw_streaming_rates(const std::filesystem::path& directory, std::uint64_t bytes) {
  const std::uint64_t whole = (bytes + transfer_bytes - 1) / transfer_bytes * transfer_bytes;
  io::ScratchFile file(directory);
  file.extend(whole);
  const auto measured = [&](Ways ways) { return rate(file.descriptor(), whole, ways); };
  measured({.read = false, .write = true});  // also makes the blocks the file's
  DiskRates rates;
  rates.write = measured({.read = false, .write = true});
  rates.read = measured({.read = true, .write = false});
  rates.both = measured({.read = true, .write = true});
  return rates;
}

}  // namespace fourfold::benchmarks
