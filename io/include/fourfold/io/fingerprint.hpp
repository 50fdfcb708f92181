// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct XXH3_state_s;

namespace fourfold::io {

/// XXH3-128, streamed: for identity (plans, replicas, whole checkpoints), never for damage, which
/// is crc32c's work.
class Fingerprint {
 public:
  Fingerprint();
  ~Fingerprint();
  Fingerprint(const Fingerprint&) = delete;
  Fingerprint& operator=(const Fingerprint&) = delete;

  void add(std::span<const std::byte> bytes);
  /// Eight bytes, little-endian.
  void add(std::int64_t value);
  /// Length and characters, so that neighbouring texts cannot run together.
  void add(std::string_view text);

  /// {low, high} 64 bits.
  std::array<std::uint64_t, 2> words() const;
  /// 32 hexadecimal digits.
  std::string str() const;

 private:
  std::unique_ptr<XXH3_state_s> state_;
};

}  // namespace fourfold::io
