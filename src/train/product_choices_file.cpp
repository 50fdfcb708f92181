// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "product_choices_text.hpp"

#include <fourfold/base/log.hpp>
#include <fourfold/kernels/product_choices.hpp>
#include <fourfold/train/product_choices_file.hpp>

#include <fmt/format.h>

namespace fourfold::train {

ProductChoicesFile::ProductChoicesFile(const runfile::RunConfig& config, comm::Communicator& world)
    : world_(world) {
  if (config.train.product_choices.empty()) {
    return;
  }
  library_ = kernels::product_library();
  if (library_.empty()) {
    log::info("train.product_choices has no effect: here each product is made in one way");
    return;
  }
  path_ = config.train.product_choices;
  LibraryChoices mine{.library = library_, .choices = {}};
  if (world.rank() == 0) {
    mine = read_product_choices(path_).value_or(mine);
  }
  LibraryChoices known =
      choices_from_json(comm::broadcast_text(world, to_json(mine), 0)).value_or(mine);
  if (known.library != library_) {
    log::info(fmt::format("{} is of {}, and this is {}: products are measured anew", path_.string(),
                          known.library, library_));
    known.choices.clear();
  }
  kernels::choose_products(known.choices, true);
}

void ProductChoicesFile::write() {
  if (path_.empty()) {
    return;
  }
  std::vector<LibraryChoices> all;
  for (const std::string& text : comm::all_gather_text(
           world_, to_json({.library = library_, .choices = kernels::chosen_products()}))) {
    all.push_back(choices_from_json(text).value_or(LibraryChoices{}));
  }
  if (world_.rank() == 0) {
    all.push_back(read_product_choices(path_).value_or(LibraryChoices{}));  // others may have added
    const LibraryChoices choices = merged(all);
    write_product_choices(path_, choices);
    log::info(fmt::format("{}: the ways of {} products", path_.string(), choices.choices.size()));
  }
}

}  // namespace fourfold::train
