// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "tiles.hpp"

namespace fourfold::model {

std::vector<Tile> tiles_of(const Parameters& parameters, Range flat, std::int64_t features) {
  std::vector<Tile> tiles;
  for (const Segment& segment : parameters.layout().segments) {
    const Range part = intersection(segment.flat, flat);
    if (segment.tile == Part::whole || part.count == 0) {
      continue;
    }
    const Range rows{(part.begin - flat.begin) / features, part.count / features};
    const Shape shape{rows.count, features};
    tiles.push_back({segment.part(), rows, parameters.weight_memory().at(part).reshape(shape),
                     parameters.gradient_memory().at(part).reshape(shape)});
  }
  return tiles;
}

}  // namespace fourfold::model
