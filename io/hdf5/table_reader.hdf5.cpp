// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "hdf5/table_reader.hpp"

#include <fourfold/base/message.hpp>

#include <algorithm>

namespace fourfold::io {

std::size_t TableReader::rows(const std::string& path) {
  const h5::Id dataset = open(path);
  const std::vector<hsize_t> dims = dims_of(dataset.get());
  if (dims.size() != 1 || dims[0] > most_rows) {
    fail(format_message("{} is not a column", path));
    return 0;
  }
  return dims[0];
}

std::vector<std::string> TableReader::text_column(const std::string& path, std::size_t count) {
  std::vector<std::string> texts(count);
  const h5::Id dataset = open(path);
  const h5::Id type(dataset ? H5Dget_type(dataset.get()) : -1);
  const bool fixed = type && H5Tget_class(type.get()) == H5T_STRING &&
                     H5Tis_variable_str(type.get()) == 0 &&
                     H5Tget_size(type.get()) <= most_text_bytes;
  const std::size_t width = fixed ? H5Tget_size(type.get()) : 0;
  std::string cells(width * count, '\0');
  if (!fixed || dims_of(dataset.get()) != std::vector<hsize_t>{count} ||
      H5Dread(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, cells.data()) < 0) {
    fail(format_message("{} is not a column of {} texts", path, count));
    return texts;
  }
  for (std::size_t row = 0; row < count; ++row) {
    texts[row] = cells.substr(row * width, width);
    texts[row].resize(std::min(texts[row].size(), texts[row].find('\0')));
  }
  return texts;
}

std::vector<std::string> TableReader::names(const std::string& group_path) {
  std::vector<std::string> result;
  const h5::Id group(H5Gopen2(file_, group_path.c_str(), H5P_DEFAULT));
  H5G_info_t info = {};
  if (!group || H5Gget_info(group.get(), &info) < 0) {
    fail(format_message("{} is missing", group_path));
  }
  for (hsize_t i = 0; i < info.nlinks && !defect_; ++i) {
    std::string name(most_text_bytes, '\0');
    const ssize_t length = H5Lget_name_by_idx(group.get(), ".", H5_INDEX_NAME, H5_ITER_INC, i,
                                              name.data(), name.size(), H5P_DEFAULT);
    if (length <= 0 || length >= std::ssize(name)) {
      fail(format_message("{} has a name that cannot be read", group_path));
      break;
    }
    name.resize(length);
    H5L_info_t link = {};
    if (H5Lget_info(group.get(), name.c_str(), &link, H5P_DEFAULT) < 0 ||
        link.type != H5L_TYPE_HARD) {
      fail(format_message("{} holds {}, a link out of it", group_path, name));
      break;
    }
    result.push_back(std::move(name));
  }
  return result;
}

std::vector<std::int64_t> TableReader::integers(const std::string& path, const char* attribute) {
  const h5::Id opened = attribute_of(path, attribute);
  const h5::Id space(opened ? H5Aget_space(opened.get()) : -1);
  const h5::Id type(opened ? H5Aget_type(opened.get()) : -1);
  const hssize_t count = space ? H5Sget_simple_extent_npoints(space.get()) : -1;
  if (!type || H5Tequal(type.get(), H5T_STD_I64LE) <= 0 || count < 0 || count > most_integers) {
    fail(format_message("{} has no numbers \"{}\"", path, attribute));
    return {};
  }
  std::vector<std::int64_t> values(count);  // none: a null space
  if (count > 0 && H5Aread(opened.get(), H5T_NATIVE_INT64, values.data()) < 0) {
    fail(format_message("{} has no numbers \"{}\" that can be read", path, attribute));
  }
  return values;
}

std::int64_t TableReader::integer(const std::string& path, const char* attribute,
                                  std::int64_t least) {
  const std::vector<std::int64_t> values = integers(path, attribute);
  if (values.size() != 1 || values[0] < least) {
    fail(format_message("\"{}\" of {} is not one number of at least {}", attribute, path, least));
    return least;
  }
  return values[0];
}

std::string TableReader::text(const std::string& path, const char* attribute) {
  const h5::Id opened = attribute_of(path, attribute);
  const h5::Id type(opened ? H5Aget_type(opened.get()) : -1);
  const h5::Id space(opened ? H5Aget_space(opened.get()) : -1);
  const bool fixed = type && space && H5Tget_class(type.get()) == H5T_STRING &&
                     H5Tis_variable_str(type.get()) == 0 &&
                     H5Tget_size(type.get()) <= most_text_bytes &&
                     H5Sget_simple_extent_npoints(space.get()) == 1;
  std::string value(fixed ? H5Tget_size(type.get()) : 0, '\0');
  if (!fixed || H5Aread(opened.get(), type.get(), value.data()) < 0) {
    fail(format_message("{} has no text \"{}\"", path, attribute));
    return {};
  }
  value.resize(std::min(value.size(), value.find('\0')));
  return value;
}

h5::Id TableReader::attribute_of(const std::string& path, const char* attribute) {
  return h5::Id(H5Aopen_by_name(file_, path.c_str(), attribute, H5P_DEFAULT, H5P_DEFAULT));
}

h5::Id TableReader::open(const std::string& path) {
  h5::Id dataset(H5Dopen2(file_, path.c_str(), H5P_DEFAULT));
  if (!dataset) {
    fail(format_message("{} is missing", path));
  }
  return dataset;
}

std::vector<hsize_t> TableReader::dims_of(hid_t dataset) {
  const h5::Id space(H5Dget_space(dataset));
  const int rank = space ? H5Sget_simple_extent_ndims(space.get()) : -1;
  std::vector<hsize_t> dims(std::max(rank, 0));
  if (rank > 0) {
    H5Sget_simple_extent_dims(space.get(), dims.data(), nullptr);
  }
  return dims;
}

bool TableReader::is_stored_as(hid_t dataset, hid_t type) {
  const h5::Id stored(H5Dget_type(dataset));
  return stored && H5Tequal(stored.get(), type) > 0;
}

}  // namespace fourfold::io
