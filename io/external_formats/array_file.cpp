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
#include <utility>

namespace fourfold::io {

ArrayFile::ArrayFile(std::filesystem::path path, std::vector<ArrayToWrite> arrays,
                     const std::vector<Attribute>& attributes, comm::Communicator& communicator)
    : path_(std::move(path)),
      partial_(temporary_sibling(path_, comm::broadcast_text(communicator, random_word(), 0))),
      arrays_(std::move(arrays)),
      communicator_(communicator) {
  const SparseImage image = make_array_image(arrays_, attributes, byte_offsets_);
  const auto open = [this](OutputFile file) {
    file_ = std::make_unique<OutputFile>(std::move(file));
  };
  comm::run_on_root(communicator, [&] {
    sweep_temporaries_of(path_);
    temporary_ = std::make_unique<Temporary>(partial_);
    do {
      open(OutputFile::create(partial_, path_));
    } while (!temporary_->lock());
    file_->set_size(image.size_bytes());
    write_image(*file_, image);
  });
  comm::collective_try(communicator, [&] {
    if (communicator.rank() != 0) {
      open(OutputFile::open(partial_));
    }
  });
}

ArrayFile::~ArrayFile() = default;

void ArrayFile::write_rows(std::string_view path, std::int64_t first, ConstTensorView rows) {
  const auto array = std::ranges::find(arrays_, path, &ArrayToWrite::name);
  FOURFOLD_EXPECT(array != arrays_.end() && file_);
  FOURFOLD_EXPECT(rows.dtype() == array->dtype && rows.shape().rank() == array->shape.rank());
  FOURFOLD_EXPECT(
      std::equal(rows.shape().begin() + 1, rows.shape().end(), array->shape.begin() + 1));
  FOURFOLD_EXPECT(first >= 0 && first + rows.dim(0) <= array->shape[0]);
  const std::uint64_t row_bytes =
      array->shape.elements() / array->shape[0] * size_in_bytes(array->dtype);
  const std::uint64_t begin = byte_offsets_[array - arrays_.begin()];
  file_->write_at(begin + first * row_bytes,
                  {static_cast<const std::byte*>(rows.data()), rows.bytes()});
}

void ArrayFile::complete(const std::function<void()>& rename) {
  FOURFOLD_EXPECT(file_);
  comm::collective_try(communicator_, [&] {
    file_->sync();
    file_->close();
  });
  comm::run_on_root(communicator_, [&] {
    rename();
    temporary_->keep();
    const auto folder = path_.parent_path();
    sync_directory(folder.empty() ? "." : folder);
  });
  file_.reset();
}

void ArrayFile::publish() {
  complete([this] { rename_path(partial_, path_); });
}

void ArrayFile::publish_as_new() {
  complete([this] { rename_to_new(partial_, path_); });
}

}  // namespace fourfold::io
