// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/at_signal.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/fatal_exit.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <tuple>

namespace fourfold::io {
namespace {

enum class What : std::uint8_t { remove, remove_if_empty, give_lease_back };

/// A path that a signal handler can remove. Never moves.
struct Slot {
  enum class State : std::uint8_t { free, filling, used };
  std::atomic<State> state = State::free;
  What what = What::remove;
  std::size_t lease_bytes = 0;  ///< of a work folder: so much of its path is that of the lease
  std::array<char, 4096> path{};
};
static_assert(std::atomic<Slot::State>::is_always_lock_free, "a signal handler reads it");
std::array<Slot, 64> slots;

static_assert(nothing_at_signal >= slots.size());

std::size_t take_slot(const std::string& path, What what, std::size_t lease_bytes = 0) {
  set_at_end_by_signal([] { remove_noted(); });
  for (std::size_t i = 0; i < slots.size() && path.size() < slots[i].path.size(); ++i) {
    Slot::State expected = Slot::State::free;
    if (slots[i].state.compare_exchange_strong(expected, Slot::State::filling)) {
      std::memcpy(slots[i].path.data(), path.c_str(), path.size() + 1);
      slots[i].what = what;
      slots[i].lease_bytes = lease_bytes;
      slots[i].state = Slot::State::used;
      return i;
    }
  }
  return nothing_at_signal;  // a very long path, or very many files: only the next run sweeps them
}

bool is_dot(const char* name) noexcept {
  return std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0;
}

/// What is in an open folder, and below it. Async-signal-safe: std::filesystem is not.
// NOLINTNEXTLINE(misc-no-recursion): ours are one deep
void empty_folder(int folder, int levels) noexcept {
  alignas(dirent64) std::array<char, 2048> entries;
  ssize_t bytes = 0;
  while ((bytes = ::getdents64(folder, entries.data(), entries.size())) > 0) {
    for (ssize_t at = 0; at < bytes;) {
      const auto* const entry = reinterpret_cast<const dirent64*>(entries.data() + at);
      at += entry->d_reclen;
      if (is_dot(entry->d_name) || ::unlinkat(folder, entry->d_name, 0) == 0 || levels == 0) {
        continue;
      }
      const int inner =
          ::openat(folder, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
      if (inner >= 0) {
        empty_folder(inner, levels - 1);
        ::close(inner);
        ::unlinkat(folder, entry->d_name, AT_REMOVEDIR);
      }
    }
  }
}

/// Whether a file has these bytes among its first. Async-signal-safe.
bool holds_word(const char* path, const char* word) noexcept {
  std::array<char, 1024> text;
  const int file = ::open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  const ssize_t bytes = file >= 0 ? ::read(file, text.data(), text.size() - 1) : -1;
  if (file >= 0) {
    ::close(file);
  }
  if (bytes <= 0) {
    return false;
  }
  text[bytes] = '\0';
  return std::strstr(text.data(), word) != nullptr;
}

/// By a rename into the work folder, as the lease itself does it: that fails where another has
/// taken over and swept the folder. Async-signal-safe.
void give_lease_back(const Slot& slot) noexcept {
  std::array<char, 4096> lease;
  std::array<char, 4096> target;
  constexpr const char* name = "/given-back";
  const std::size_t size = std::strlen(slot.path.data());
  if (size + std::strlen(name) >= target.size()) {
    return;
  }
  std::memcpy(lease.data(), slot.path.data(), slot.lease_bytes);
  lease[slot.lease_bytes] = '\0';
  std::memcpy(target.data(), slot.path.data(), size);
  std::memcpy(target.data() + size, name, std::strlen(name) + 1);
  const char* const word = std::strrchr(slot.path.data(), '-') + 1;
  if (holds_word(lease.data(), word)) {
    std::ignore = ::rename(lease.data(), target.data());
  }
  remove_now(slot.path.data());
}

}  // namespace

/// A file or a folder. Async-signal-safe.
void remove_now(const char* path) noexcept {
  constexpr int most_levels = 8;
  if (::unlink(path) == 0) {
    return;
  }
  const int folder = ::open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder >= 0) {
    empty_folder(folder, most_levels);
    ::close(folder);
    ::rmdir(path);
  }
}

std::size_t remove_at_signal(const std::filesystem::path& path) {
  return take_slot(path.string(), What::remove);
}

std::size_t remove_empty_folder_at_signal(const std::filesystem::path& folder) {
  return take_slot(folder.string(), What::remove_if_empty);
}

std::size_t give_lease_back_at_signal(const std::filesystem::path& work_folder,
                                      const std::filesystem::path& lease) {
  const std::string path = work_folder.string();
  FOURFOLD_EXPECT(path.starts_with(lease.string()));
  return take_slot(path, What::give_lease_back, lease.string().size());
}

void keep_at_signal(std::size_t slot) noexcept {
  if (slot < slots.size()) {
    slots[slot].state = Slot::State::free;
  }
}

void remove_noted() noexcept {
  for (const Slot& slot : slots) {
    if (slot.state.load() != Slot::State::used) {
      continue;
    }
    if (slot.what == What::remove) {
      remove_now(slot.path.data());
    } else if (slot.what == What::give_lease_back) {
      give_lease_back(slot);
    }
  }
  // What was in these is gone by now. They may lie in each other, whatever their slots.
  for (std::size_t pass = 0; pass < slots.size(); ++pass) {
    bool has_gone = false;
    for (const Slot& slot : slots) {
      has_gone |= slot.state.load() == Slot::State::used && slot.what == What::remove_if_empty &&
                  ::rmdir(slot.path.data()) == 0;
    }
    if (!has_gone) {
      return;
    }
  }
}

}  // namespace fourfold::io
