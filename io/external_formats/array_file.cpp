// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/file.hpp"
#include "disk/temporary.hpp"
#include "external_formats/array_schema.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/comm/fail_together.hpp>
#include <fourfold/io/array_file.hpp>
#include <fourfold/io/temporary_name.hpp>

#include <algorithm>
#include <functional>
#include <optional>
#include <span>

namespace fourfold::io {

struct ArrayFile::Impl {
  std::filesystem::path path;
  std::filesystem::path partial;
  std::vector<ArrayToWrite> arrays;
  std::vector<std::uint64_t> byte_offsets;
  comm::Communicator& communicator;
  std::optional<Temporary> temporary;  ///< `partial`; of the first rank
  std::optional<OutputFile> file;

  bool leads() const { return communicator.rank() == 0; }

  void create(const SparseImage& image) {
    sweep_temporaries_of(path);
    temporary.emplace(partial);
    do {
      file = OutputFile::create(partial, path);
    } while (!temporary->lock());
    file->set_size(image.size_bytes());
    write_image(*file, image);
  }

  void publish(const std::function<void()>& rename) {
    FOURFOLD_EXPECT(file);
    comm::collective_try(communicator, [&] {
      file->sync();
      file->close();
    });
    comm::run_on_root(communicator, [&] {
      rename();
      temporary->keep();
      const auto folder = path.parent_path();
      sync_directory(folder.empty() ? "." : folder);
    });
    file.reset();
  }
};

ArrayFile::ArrayFile(std::filesystem::path path, std::vector<ArrayToWrite> arrays,
                     const std::vector<Attribute>& attributes, comm::Communicator& communicator)
    : impl_(new Impl{
          .path = path,
          .partial = temporary_sibling(path, comm::broadcast_text(communicator, random_word(), 0)),
          .arrays = std::move(arrays),
          .byte_offsets = {},
          .communicator = communicator,
          .temporary = {},
          .file = {}}) {
  const SparseImage image = make_array_image(impl_->arrays, attributes, impl_->byte_offsets);
  comm::run_on_root(communicator, [&] { impl_->create(image); });
  comm::collective_try(communicator, [&] {
    if (!impl_->leads()) {
      impl_->file = OutputFile::open(impl_->partial);
    }
  });
}

ArrayFile::~ArrayFile() = default;

void ArrayFile::write_rows(std::string_view path, std::int64_t first, ConstTensorView rows) {
  const auto array = std::ranges::find(impl_->arrays, path, &ArrayToWrite::name);
  FOURFOLD_EXPECT(array != impl_->arrays.end() && impl_->file);
  FOURFOLD_EXPECT(rows.dtype() == array->dtype && rows.shape().rank() == array->shape.rank());
  FOURFOLD_EXPECT(
      std::equal(rows.shape().begin() + 1, rows.shape().end(), array->shape.begin() + 1));
  FOURFOLD_EXPECT(first >= 0 && first + rows.dim(0) <= array->shape[0]);
  const std::uint64_t row_bytes =
      array->shape.elements() / array->shape[0] * size_in_bytes(array->dtype);
  const std::uint64_t begin = impl_->byte_offsets[array - impl_->arrays.begin()];
  impl_->file->write_at(begin + first * row_bytes,
                        {static_cast<const std::byte*>(rows.data()), rows.bytes()});
}

void ArrayFile::publish() {
  impl_->publish([this] { rename_path(impl_->partial, impl_->path); });
}

void ArrayFile::publish_as_new() {
  impl_->publish([this] { rename_to_new(impl_->partial, impl_->path); });
}

}  // namespace fourfold::io
