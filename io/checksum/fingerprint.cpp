// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/io/fingerprint.hpp>

#include <fmt/format.h>
#define XXH_STATIC_LINKING_ONLY  // the layout of XXH3_state_t, to own one without malloc'ed opaque
                                 // state
#include <xxhash.h>

namespace fourfold::io {

Fingerprint::Fingerprint() : state_(std::make_unique<XXH3_state_s>()) {
  XXH3_128bits_reset(state_.get());
}

Fingerprint::~Fingerprint() = default;

void Fingerprint::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
}

void Fingerprint::add(std::int64_t value) {
  add(std::as_bytes(std::span(&value, 1)));
}

void Fingerprint::add(std::string_view text) {
  add(text.size());
  add(std::as_bytes(std::span(text)));
}

std::array<std::uint64_t, 2> Fingerprint::words() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
  return {hash.low64, hash.high64};
}

std::string Fingerprint::str() const {
  const auto [low, high] = words();
  return fmt::format("{:016x}{:016x}", high, low);
}

}  // namespace fourfold::io
