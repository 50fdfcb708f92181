// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/dtype.hpp>
#include <fourfold/base/shape.hpp>
#include <fourfold/base/tensor_view.hpp>
#include <fourfold/comm/communicator.hpp>
#include <fourfold/io/stored_array.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fourfold::io {

class OutputFile;
class Temporary;

/// An HDF5 file of dense arrays which all ranks fill side by side, for other programs to read. It
/// appears under its name whole or not at all; until then it has a temporary name of a random word
/// (temporary_name.hpp). An older one of its name is replaced then.
class ArrayFile {
 public:
  /// A text that says something about the whole file: name and value.
  using Attribute = std::pair<std::string, std::string>;

  /// Lays out the file and reserves its space, so that a full disk shows at once. Collective; the
  /// arguments agree on all ranks; the file system is one that all ranks see.
  /// @param arrays  by path, "/logits", on which groups are made; of rank >= 1 and elements() > 0
  /// @throws UserError (cannot_write), the same on all ranks
  ArrayFile(std::filesystem::path path, std::vector<ArrayToWrite> arrays,
            const std::vector<Attribute>& attributes, comm::Communicator& communicator);
  /// Without publish() rank 0 takes what it wrote away. Local.
  ~ArrayFile();
  ArrayFile(const ArrayFile&) = delete;
  ArrayFile& operator=(const ArrayFile&) = delete;

  /// Writes rows [first, first + rows.dim(0)) of array `path`. Rows nobody writes are zeros. Local.
  /// @param rows  dense, in host memory, dtype and dims after the first one as described
  /// @throws UserError (cannot_write)
  void write_rows(std::string_view path, std::int64_t first, ConstTensorView rows);

  /// Brings what all ranks wrote to stable storage and gives the file its name. Collective.
  /// @throws UserError (cannot_write), the same on all ranks
  void publish();
  /// The same, but replaces nothing that has come to that name meanwhile.
  void publish_as_new();

 private:
  void complete(const std::function<void()>& rename);

  std::filesystem::path path_;
  std::filesystem::path partial_;
  std::vector<ArrayToWrite> arrays_;
  std::vector<std::uint64_t> byte_offsets_;
  comm::Communicator& communicator_;
  std::unique_ptr<Temporary> temporary_;  ///< `partial_`; of the first rank
  std::unique_ptr<OutputFile> file_;
};

}  // namespace fourfold::io
