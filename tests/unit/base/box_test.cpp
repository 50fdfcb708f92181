// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/box.hpp>

#include <catch2/catch_test_macros.hpp>

#include <vector>

using fourfold::Box;
using fourfold::Range;
using fourfold::Shape;

TEST_CASE("intersect finds the common part or nothing", "[box]") {
  const Box a{{0, 2}, {4, 6}};
  const Box b{{3, 0}, {5, 4}};
  CHECK(fourfold::intersect(a, b) == Box{{3, 2}, {1, 2}});
  CHECK(fourfold::intersect(a, Box{{4, 2}, {1, 1}}) == std::nullopt);
  CHECK(fourfold::intersect(Box{{0}, {0}}, Box{{0}, {3}}) == std::nullopt);
  CHECK(fourfold::intersect(Box{{}, {}}, Box{{}, {}}) == Box{{}, {}});  // scalars
}

TEST_CASE("even_part covers everything once, longer parts first", "[box]") {
  for (const std::int64_t total : {0, 1, 5, 7, 64, 1000}) {
    for (const std::int64_t parts : {1, 2, 3, 7, 11}) {
      std::int64_t next = 0;
      for (std::int64_t part = 0; part < parts; ++part) {
        const Range range = fourfold::even_part(total, parts, part);
        CHECK(range.begin == next);
        CHECK((range.count == total / parts || range.count == total / parts + 1));
        next = range.end();
      }
      CHECK(next == total);
    }
  }
}

TEST_CASE("for_each_run copies between two shardings like element by element", "[box]") {
  const Shape shape{5, 3, 7};
  const std::vector<Box> cuts{{{0, 0, 0}, {5, 3, 7}},
                              {{1, 0, 0}, {3, 3, 7}},
                              {{0, 1, 2}, {5, 2, 4}},
                              {{2, 0, 0}, {2, 3, 5}},
                              {{4, 2, 6}, {1, 1, 1}}};
  for (const Box& source : cuts) {
    for (const Box& target : cuts) {
      const auto part = fourfold::intersect(source, target);
      if (!part) {
        continue;
      }
      std::vector<std::int64_t> stored(static_cast<std::size_t>(source.elements()));
      fourfold::for_each_run(Box::whole(shape), source, source, [&](const fourfold::Run& run) {
        for (std::int64_t i = 0; i < run.elements; ++i) {
          stored[static_cast<std::size_t>(run.target_element + i)] = run.source_element + i;
        }
      });
      std::vector<std::int64_t> got(static_cast<std::size_t>(target.elements()), -1);
      fourfold::for_each_run(source, target, *part, [&](const fourfold::Run& run) {
        for (std::int64_t i = 0; i < run.elements; ++i) {
          got[static_cast<std::size_t>(run.target_element + i)] =
              stored[static_cast<std::size_t>(run.source_element + i)];
        }
      });
      std::size_t next = 0;
      for (std::int64_t i = 0; i < target.extent[0]; ++i) {
        for (std::int64_t j = 0; j < target.extent[1]; ++j) {
          for (std::int64_t k = 0; k < target.extent[2]; ++k) {
            const Shape position{target.offset[0] + i, target.offset[1] + j, target.offset[2] + k};
            const bool inside = fourfold::contains(*part, Box{position, {1, 1, 1}});
            CHECK(got[next++] == (inside ? fourfold::linear_index(shape, position) : -1));
          }
        }
      }
    }
  }
}

TEST_CASE("whole dims merge into one run", "[box]") {
  int runs = 0;
  const Box whole = Box::whole(Shape{6, 4, 5});
  fourfold::for_each_run(whole, whole, whole, [&](const fourfold::Run&) { ++runs; });
  CHECK(runs == 1);
  const Box rows{{2, 0, 0}, {3, 4, 5}};
  runs = 0;
  fourfold::for_each_run(whole, rows, rows, [&](const fourfold::Run& run) {
    ++runs;
    CHECK(run.elements == 60);
  });
  CHECK(runs == 1);
}

TEST_CASE("boxes_of_flat_range cover the range exactly, in order, by at most 2N-1 boxes", "[box]") {
  for (const Shape& shape : {Shape{}, Shape{11}, Shape{5, 7}, Shape{3, 4, 5}, Shape{2, 1, 3, 4}}) {
    for (std::int64_t begin = 0; begin <= shape.elements(); ++begin) {
      for (std::int64_t end = begin; end <= shape.elements(); ++end) {
        const auto boxes = fourfold::boxes_of_flat_range(shape, {begin, end - begin});
        std::int64_t next = begin;
        bool in_order = true;
        for (const Box& box : boxes) {
          fourfold::for_each_run(Box::whole(shape), box, box, [&](const fourfold::Run& run) {
            in_order = in_order && run.source_element == next;
            next += run.elements;
          });
        }
        CHECK(in_order);
        CHECK(next == end);
        CHECK(boxes.size() <= 2 * std::max<std::size_t>(shape.rank(), 1) - 1);
      }
    }
  }
}
