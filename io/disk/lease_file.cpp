// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/lease_file.hpp"

#include "disk/file.hpp"
#include "disk/random_word.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>
#include <system_error>

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
        format_message("{}: {} has left its lease of this directory after, and it cannot "
                       "be taken away ({}); let its owner, or the directory's, remove it",
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

}  // namespace fourfold::io
