// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "startup_rendezvous.hpp"

#include <fourfold/base/process_identity.hpp>
#include <fourfold/base/regular_file.hpp>
#include <fourfold/comm/startup_watchdog.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>
#include <tuple>

namespace fourfold::comm {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "rank-";

/// Where Hydra's mpiexec listens, "node0:34991", which it tells its proxy on every host.
std::string address_of_mpiexec(const std::string& parent) {
  constexpr std::string_view option("--control-port\0", 15);
  const std::size_t at = parent.find(option);
  return at == std::string::npos ? "" : parent.c_str() + at + option.size();
}

std::string name_of(int rank) {
  return std::string(prefix) + std::to_string(rank);
}

/// Whose file it is; nothing for other names.
std::optional<int> rank_of(std::string_view name) {
  return name.starts_with(prefix) ? number_in(name.substr(prefix.size())) : std::nullopt;
}

/// When a file was written last; nothing: there is none.
std::optional<double> written_s(int folder, const std::string& file) {
  struct stat status = {};
  return ::fstatat(folder, file.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0
             ? std::optional(static_cast<double>(status.st_mtim.tv_sec) +
                             static_cast<double>(status.st_mtim.tv_nsec) / 1e9)
             : std::nullopt;
}

bool is_fit_for_name(char c) {
  return ('0' <= c && c <= '9') || ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || c == '.';
}

}  // namespace

std::string name_of_start(const std::string& parent) {
  const BatchJob job = BatchJob::of_this_process();
  const std::string mpiexec = address_of_mpiexec(parent);
  std::string name;
  // mpiexec inside a job starts some of its proxies in a step, and others not.
  for (const std::string& part :
       {job.id, job.restarts > 0 ? std::to_string(job.restarts) : "",
        mpiexec.empty() ? environment_text("SLURM_STEP_ID") : mpiexec,
        environment_text("PMIX_NAMESPACE"), environment_text("PALS_APID")}) {
    name += (name.empty() || part.empty() ? "" : "-") + part;
  }
  std::ranges::replace_if(
      name, [](char c) { return !is_fit_for_name(c); }, '-');
  return name.empty() ? "any" : name.substr(0, 200);
}

std::vector<int> ranks_beside(const Launch& launch) {
  std::vector<int> ranks;
  for (const char* const name : {"MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE"}) {
    if (number_in(environment_text(name)) == launch.size) {
      ranks.resize(launch.size);
      std::iota(ranks.begin(), ranks.end(), 0);
      return ranks;
    }
  }
  // Tasks of Slurm are ranks where it has started as many as there are ranks.
  std::istringstream tasks(environment_text("SLURM_GTIDS"));
  const bool are_ranks = number_in(environment_text("SLURM_STEP_NUM_TASKS")) == launch.size &&
                         number_in(environment_text("SLURM_PROCID")) == launch.rank;
  for (std::string task; are_ranks && std::getline(tasks, task, ',');) {
    if (const auto rank = number_in(task)) {
      ranks.push_back(*rank);
    }
  }
  return std::ranges::count(ranks, launch.rank) == 0 ? std::vector<int>{} : ranks;
}

bool is_startup_rendezvous(const fs::path& folder) {
  if (!folder.filename().string().starts_with(startup_rendezvous_prefix) ||
      !open_folder(folder, Links::refuse)) {
    return false;
  }
  std::error_code failure;
  fs::directory_iterator entries(folder, failure);
  const bool is_one = !failure && std::all_of(begin(entries), end(entries), [](const auto& entry) {
    return rank_of(entry.path().filename().string()).has_value();
  });
  return is_one;
}

StartMeeting::StartMeeting(const fs::path& folder, const std::string& name, int rank)
    : folder_(folder / (std::string(startup_rendezvous_prefix) + name)), rank_(rank) {}

bool StartMeeting::is_called() const {
  return open_folder(folder_, Links::refuse).get() >= 0;
}

bool StartMeeting::join(const Arrival& arrival) const {
  std::error_code error;
  fs::create_directories(folder_, error);
  const FileDescriptor folder = open_folder(folder_, Links::refuse);
  std::ostringstream text;
  text << arrival.host << ' ' << arrival.pid;
  for (const int rank : arrival.beside) {
    text << ' ' << rank;
  }
  text << '\n';
  // One of the same name may be left of a start that was killed.
  const RegularFile file =
      folder ? open_regular_file_in(folder.get(), name_of(rank_), O_WRONLY | O_CREAT)
             : RegularFile{};
  const std::string line = text.str();
  return file.descriptor && ::ftruncate(file.descriptor.get(), 0) == 0 &&
         ::write(file.descriptor.get(), line.data(), line.size()) == std::ssize(line);
}

bool StartMeeting::is_of_now(int folder, const std::string& file, double most_age_s) const {
  const auto its = written_s(folder, file);
  const auto own = written_s(folder, name_of(rank_));
  return its && own && *own - *its < most_age_s;
}

bool StartMeeting::has_come_below(double most_age_s) const {
  const FileDescriptor folder = open_folder(folder_, Links::refuse);
  for (int rank = 0; folder && rank < rank_; ++rank) {
    if (is_of_now(folder.get(), name_of(rank), most_age_s)) {
      return true;
    }
  }
  return false;
}

std::map<int, Arrival> StartMeeting::arrivals(double most_age_s) const {
  std::map<int, Arrival> come;
  const FileDescriptor folder = open_folder(folder_, Links::refuse);
  if (!folder) {
    return come;
  }
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder_, ignored)) {
    const std::string name = entry.path().filename().string();
    const auto rank = rank_of(name);
    if (!rank || !is_of_now(folder.get(), name, most_age_s)) {
      continue;
    }
    Arrival& arrival = come[*rank];
    constexpr std::uint64_t most_bytes = 1 << 20;
    std::string text;
    std::ignore =
        read_regular_file(open_regular_file_in(folder.get(), name, O_RDONLY), most_bytes, text);
    std::istringstream file(text);
    file >> arrival.host >> arrival.pid;
    for (int beside = 0; file >> beside;) {
      arrival.beside.push_back(beside);
    }
  }
  return come;
}

void StartMeeting::leave() const {
  std::error_code ignored;  // not empty: others have not left yet
  if (const FileDescriptor folder = open_folder(folder_, Links::refuse)) {
    ::unlinkat(folder.get(), name_of(rank_).c_str(), 0);
    fs::remove(folder_, ignored);
  }
}

void StartMeeting::end() const {
  std::error_code failure;
  const fs::path over = folder_.string() + ".over";
  fs::remove_all(over, failure);  // of a start that was killed
  fs::rename(folder_, over, failure);
  fs::remove_all(failure ? folder_ : over, failure);
}

}  // namespace fourfold::comm
