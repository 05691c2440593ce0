// SPDX-License-Identifier: Apache-2.0
// Fashion-MNIST as Debian's dataset-fashion-mnist ships it: gzipped IDX files of 28 x 28 grey
// pixels and of labels 0..9. Read whole into memory; pixels become floats of mean 0, deviation 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "matrix.h"

namespace train {

struct Dataset {
  Matrix images;  // an image a row
  std::vector<uint8_t> labels;
  size_t size() const { return labels.size(); }
};

enum class Part { train, test };

// At most `limit` images (0: all). Throws std::runtime_error that names the file.
Dataset read_dataset(const std::string& directory, Part part, size_t limit);

}  // namespace train
