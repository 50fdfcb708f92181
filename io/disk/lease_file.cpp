// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/lease_file.hpp"

#include "disk/file.hpp"
#include "disk/temporary.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/process_identity.hpp>
#include <fourfold/io/atomic_file.hpp>
#include <fourfold/io/directory_lease.hpp>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <tuple>
#include <vector>

namespace fourfold::io {

namespace fs = std::filesystem;

std::string Lease::text() const {
  const auto shown = [](const std::string& field) { return field.empty() ? "-" : field; };
  return fmt::format("fourfold-lease 1 {} {} {} {} {} {} {} {} {}\n", word, shown(holder.host),
                     shown(holder.processes), holder.pid, shown(holder.job), holder.restarts, count,
                     shown(holder.chain), holder.launch);
}

std::optional<Lease> read_lease(const fs::path& path) {
  constexpr std::uint64_t most_bytes = 4096;
  std::string text;
  if (const Defect defect = read_file(path, most_bytes, text)) {
    return kind_of(path) == EntryKind::missing
               ? std::nullopt
               : std::optional(Lease{.word = {}, .holder = {}, .unreadable = *defect});
  }
  if (text.find_first_not_of('\0') == std::string::npos) {
    text.clear();  // as a machine that went down leaves it
  }
  std::istringstream line(text);
  std::string magic;
  int version = 0;
  Lease lease;
  LeaseHolder& holder = lease.holder;
  line >> magic >> version >> lease.word >> holder.host >> holder.processes >> holder.pid >>
      holder.job >> holder.restarts >> lease.count;
  constexpr std::string_view ours = "fourfold-lease";
  if (!text.empty() && text != ours && (magic != ours || version < 1)) {
    return Lease{.word = {}, .holder = {}, .unreadable = "is no lease", .is_foreign = true};
  }
  if (!line || magic != ours || version != 1) {
    return Lease{.word = text, .holder = {}, .unreadable = {}};
  }
  line >> holder.chain >> holder.launch;  // may be missing: of an earlier version
  for (std::string* field : {&holder.host, &holder.processes, &holder.job, &holder.chain}) {
    *field = *field == "-" ? "" : *field;
  }
  return lease;
}

Linked link_lease(const fs::path& file, const fs::path& path) {
  const int result = ::link(file.c_str(), path.c_str());
  const int error_number = errno;
  struct stat status = {};
  if (::stat(file.c_str(), &status) == 0 && status.st_nlink == 2) {
    return Linked::yes;
  }
  if (result != 0 && (error_number == EPERM || error_number == EOPNOTSUPP ||
                      error_number == ENOSYS || error_number == EMLINK)) {
    return Linked::cannot;
  }
  // ENOENT: who has the lease sweeps what others of that name have left, and swept ours.
  if (result != 0 && error_number != EEXIST && error_number != ENOENT) {
    cannot_write(path, "link", error_number);
  }
  return Linked::no;
}

fs::path set_lease_aside(const fs::path& path, const Lease& stale) {
  const fs::path aside = path.string() + "-" + random_word();
  if (::rename(path.c_str(), aside.c_str()) != 0) {
    if (errno == ENOENT || errno == ESTALE) {
      return {};
    }
    throw UserError(
        ExitCode::cannot_write,
        format_message("{}: {} has left its lease in this directory, and it cannot be "
                       "taken away ({}); let its owner, or the directory's, remove it",
                       path.string(), stale.holder.str(), std::generic_category().message(errno)));
  }
  const auto got = read_lease(aside);
  if (!got || got->word == stale.word) {
    return aside;
  }
  link_lease(aside, path);  // back; its holder would notice otherwise
  ::unlink(aside.c_str());  // should this fail it is swept later
  return {};
}

void leave_to_earlier_holder(const std::filesystem::path& file) {
  constexpr std::uint64_t part_bytes = std::uint64_t{1} << 20;
  InputFile before;
  if (before.open(file)) {
    return;
  }
  AtomicFile copy(file);
  std::vector<std::byte> part;
  for (std::uint64_t at = 0; at < before.size_bytes(); at += part.size()) {
    part.resize(std::min(part_bytes, before.size_bytes() - at));
    if (const Defect defect = before.read_at(at, part)) {
      throw UserError(ExitCode::cannot_write,
                      format_message("{}: {}; check the file system", file.string(), *defect));
    }
    copy.write(part);
  }
  copy.publish();
}

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
