// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "external_formats/external_file.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/text.hpp>
#include <fourfold/io/mapped_file.hpp>
#include <fourfold/io/stored_array.hpp>

#include <system_error>
#include <utility>

namespace fourfold::io {

std::shared_ptr<const InputFile> open_external(const std::filesystem::path& path) {
  // A model in the cache of Hugging Face is made of links. What they lead to must be a file.
  std::error_code failure;
  const std::filesystem::path target = std::filesystem::canonical(path, failure);
  if (failure && std::filesystem::is_symlink(path)) {
    throw UserError(
        ExitCode::config,
        format_message("{}: is a symbolic link to {}, which cannot be opened ({}); fetch "
                       "or copy what it should lead to",
                       path.string(), printable(std::filesystem::read_symlink(path).string()),
                       failure.message()));
  }
  auto opened = std::make_shared<InputFile>();
  if (const Defect defect = opened->open(failure ? path : target)) {
    throw UserError(ExitCode::config, format_message("{}: {}", path.string(), *defect));
  }
  return opened;
}

std::string text_of_file(const std::filesystem::path& path, std::uint64_t limit) {
  const std::shared_ptr<const InputFile> opened = open_external(path);
  const std::uint64_t bytes = opened->size_bytes();
  if (bytes > limit) {
    throw UserError(ExitCode::data_corrupt,
                    format_message("{}: has {}, more than the {} that such a file may have",
                                   path.string(), bytes_text(bytes), bytes_text(limit)));
  }
  std::string text(bytes, '\0');
  if (const Defect defect = opened->read_at(0, std::as_writable_bytes(std::span(text)))) {
    throw UserError(ExitCode::data_corrupt, format_message("{}: {}", path.string(), *defect));
  }
  return text;
}

StoredArray::StoredArray(std::shared_ptr<const InputFile> file, std::filesystem::path path,
                         Description description)
    : file_(std::move(file)), path_(std::move(path)), description_(std::move(description)) {
  FOURFOLD_EXPECT(description_.first_byte <= file_->size_bytes() &&
                  description_.bytes <= file_->size_bytes() - description_.first_byte);
}

void StoredArray::read(std::uint64_t first, std::span<std::byte> target) const {
  FOURFOLD_EXPECT(first <= bytes() && target.size() <= bytes() - first);
  if (const Defect defect = file_->read_at(description_.first_byte + first, target)) {
    throw UserError(ExitCode::data_corrupt,
                    format_message("{}: {} {}; the file is damaged, fetch or make it again",
                                   path().string(), printable(name()), *defect));
  }
}

}  // namespace fourfold::io
