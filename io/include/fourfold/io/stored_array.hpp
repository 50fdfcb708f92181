// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/dtype.hpp>
#include <fourfold/base/shape.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace fourfold::io {

class InputFile;

/// An array in a file of another program: dense, row-major, little-endian. Cheap to copy; the file
/// stays open as long as one of its arrays lives. Reading is thread-safe.
class StoredArray {
 public:
  struct Description {
    std::string name;
    std::string type;                 ///< as the file spells it
    std::optional<DType> dtype = {};  ///< nothing for types that this program has no name for
    Shape shape = {};
    std::uint64_t first_byte = 0;  ///< in the file
    std::uint64_t bytes = 0;
  };
  /// @param path  what messages call the file  @pre the file has these bytes
  StoredArray(std::shared_ptr<const InputFile> file, std::filesystem::path path,
              Description description);

  const std::string& name() const noexcept { return description_.name; }
  const std::string& type() const noexcept { return description_.type; }
  std::optional<DType> dtype() const noexcept { return description_.dtype; }
  const Shape& shape() const noexcept { return description_.shape; }
  std::uint64_t bytes() const noexcept { return description_.bytes; }
  const std::filesystem::path& path() const noexcept { return path_; }

  /// Fills `target` from byte `first` of the array on. Blocks.
  /// @pre first + target.size() <= bytes()
  /// @throws UserError (data_corrupt) naming file and place when it cannot be read
  void read(std::uint64_t first, std::span<std::byte> target) const;

 private:
  std::shared_ptr<const InputFile> file_;
  std::filesystem::path path_;
  Description description_;
};

/// An array that is to be written.
struct ArrayToWrite {
  std::string name;
  DType dtype = DType::f32;
  Shape shape = {};
  std::int64_t bytes() const { return shape.elements() * size_in_bytes(dtype); }
};

}  // namespace fourfold::io
