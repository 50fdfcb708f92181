// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "format/payload_file.hpp"

namespace fourfold::io {

void write_scalars(hid_t file, const CheckpointScalars& scalars) {
  for (const char* group : {"/scalars", "/scalars/integers", "/scalars/reals", "/scalars/texts"}) {
    h5::create_group(file, group);
  }
  const h5::Id scalar = h5::space_of({});
  for (const auto& [name, value] : scalars.integers) {
    h5::write_dataset(file, "/scalars/integers/" + name, h5::type_of(DType::i64), scalar, &value);
  }
  for (const auto& [name, value] : scalars.reals) {
    h5::write_dataset(file, "/scalars/reals/" + name, h5::type_of(DType::f64), scalar, &value);
  }
  for (const auto& [name, value] : scalars.texts) {  // as bytes: a text may hold anything
    const std::int64_t count = std::ssize(value);
    const h5::Id space = h5::simple_space({&count, 1});
    h5::write_dataset(file, "/scalars/texts/" + name, h5::type_of(DType::u8), space, value.data());
  }
}

CheckpointScalars read_scalars(TableReader& reader) {
  CheckpointScalars scalars;
  for (const std::string& name : reader.names("/scalars/integers")) {
    scalars.integers[name] = reader.scalar<std::int64_t>("/scalars/integers/" + name);
  }
  for (const std::string& name : reader.names("/scalars/reals")) {
    scalars.reals[name] = reader.scalar<double>("/scalars/reals/" + name);
  }
  for (const std::string& name : reader.names("/scalars/texts")) {
    const std::string path = "/scalars/texts/" + name;
    const auto bytes = reader.column<std::uint8_t>(path, reader.rows(path));
    scalars.texts[name] = std::string(bytes.begin(), bytes.end());
  }
  return scalars;
}

}  // namespace fourfold::io
