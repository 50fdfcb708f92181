// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "format/checkpoint_contents.hpp"

#include <fourfold/base/message.hpp>
#include <fourfold/io/checkpoint_plan.hpp>

#include <iterator>
#include <span>
#include <string_view>

namespace fourfold::io {

void add_state(Fingerprint& fingerprint, std::int64_t step, const CheckpointScalars& scalars) {
  fingerprint.add(step);
  fingerprint.add(std::ssize(scalars.integers));
  for (const auto& [name, value] : scalars.integers) {
    fingerprint.add(std::string_view(name));
    fingerprint.add(value);
  }
  fingerprint.add(std::ssize(scalars.reals));
  for (const auto& [name, value] : scalars.reals) {
    fingerprint.add(std::string_view(name));
    fingerprint.add(std::as_bytes(std::span(&value, 1)));
  }
}

std::string state_identity(std::int64_t step, const Index& index) {
  Fingerprint fingerprint;
  fingerprint.add(format_version);
  add_state(fingerprint, step, index.scalars);
  for (const StoredTensor& tensor : index.tensors) {
    fingerprint.add(std::string_view(tensor.id.str()));
    fingerprint.add(name(tensor.dtype));
    fingerprint.add(std::string_view(tensor.shape.str()));
    fingerprint.add(std::string_view(tensor.digest.str()));
  }
  return fingerprint.str();
}

std::vector<std::string> identity_damage(const Manifest& manifest, const Index& index) {
  std::vector<std::string> damage;
  const std::string identity = state_identity(manifest.step, index);
  if (identity != manifest.identity) {
    damage.push_back(format_message("{} names the identity {}, and the state has {}", manifest_name,
                                    manifest.identity, identity));
  }
  std::vector<TensorLayout> layouts;
  for (const StoredTensor& tensor : index.tensors) {
    layouts.push_back({tensor.id, tensor.dtype, tensor.shape, {}});
  }
  const std::string model = model_fingerprint(layouts);
  if (model != manifest.model) {
    damage.push_back(format_message("{} names the model {}, and the tensors make {}", manifest_name,
                                    manifest.model, model));
  }
  return damage;
}

}  // namespace fourfold::io
