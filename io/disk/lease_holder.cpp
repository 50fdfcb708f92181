// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/batch_job.hpp>
#include <fourfold/io/lease_holder.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <tuple>

namespace fourfold::io {
namespace {

/// Process numbers mean the same where this is the same: in one PID namespace (containers of a node
/// may have one each, under one host name) until the machine is started anew.
std::string processes_of_this_place() {
  std::array<char, 64> name{};
  std::string boot;
  if (::readlink("/proc/self/ns/pid", name.data(), name.size() - 1) <= 0 ||
      !(std::ifstream("/proc/sys/kernel/random/boot_id") >> boot)) {
    return "";
  }
  return fmt::format("{},{}", name.data(), boot);
}

std::optional<long> number_of(const std::string& job) {
  long number = 0;
  const auto [end, error] = std::from_chars(job.data(), job.data() + job.size(), number);
  return error == std::errc{} && end == job.data() + job.size() ? std::optional(number)
                                                                : std::nullopt;
}

/// Whether it has ended, and only waits for its parent to ask how: an init in a container may take
/// seconds. Not while other threads of it still end, which may hang in a write.
bool is_zombie(long pid) {
  const std::string process = fmt::format("/proc/{}", pid);
  std::string stat;
  std::getline(std::ifstream(process + "/stat"), stat);
  const auto name_end = stat.rfind(") ");  // the name may hold anything
  if (name_end == std::string::npos || (stat[name_end + 2] != 'Z' && stat[name_end + 2] != 'X')) {
    return false;
  }
  std::error_code error;
  const std::filesystem::directory_iterator threads(process + "/task", error);
  return !error && std::distance(begin(threads), end(threads)) == 1;
}

/// The host's name as one word of a lease's line, whatever it was set to.
std::string name_of_this_host() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  std::string word = name.data();
  std::ranges::replace_if(
      word, [](unsigned char one) { return one <= ' ' || one == 0x7f; }, '?');
  return word;
}

}  // namespace

std::string LeaseHolder::str() const {
  const std::string process = fmt::format("process {} on {}", pid, host.empty() ? "?" : host);
  return job.empty() ? process : fmt::format("job {} ({})", job, process);
}

bool LeaseHolder::replaces(const LeaseHolder& earlier) const {
  if (job.empty() || job == earlier.job) {
    return !job.empty() && std::tie(restarts, launch) > std::tie(earlier.restarts, earlier.launch);
  }
  // Slurm starts one job of a chain at a time, and numbers them as they are submitted.
  const auto number = number_of(job);
  const auto earlier_number = number_of(earlier.job);
  return !chain.empty() && chain == earlier.chain && number && earlier_number &&
         *number > *earlier_number;
}

bool LeaseHolder::is_gone_from_machine_of(const LeaseHolder& me) const {
  if (host != me.host || processes.empty() || processes != me.processes || pid <= 0 ||
      pid == me.pid) {
    return false;
  }
  return ::kill(static_cast<pid_t>(pid), 0) != 0 ? errno == ESRCH : is_zombie(pid);
}

LeaseHolder LeaseHolder::this_process() {
  const BatchJob batch = BatchJob::of_this_process();
  return {.host = name_of_this_host(),
          .processes = processes_of_this_place(),
          .pid = ::getpid(),
          .job = batch.id,
          .restarts = batch.restarts,
          .launch = batch.launch,
          .chain = batch.chain};
}

}  // namespace fourfold::io
