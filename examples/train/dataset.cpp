// SPDX-License-Identifier: Apache-2.0
#include "dataset.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <memory>
#include <stdexcept>

namespace train {

namespace {

constexpr float kMean = 0.2860f, kDeviation = 0.3530f;  // of the training pixels, 0..1

class GzipFile {
 public:
  explicit GzipFile(std::string path) : path_(std::move(path)), file_(gzopen(path_.c_str(), "rb")) {
    if (file_ == nullptr)
      fail("cannot be opened; install the package dataset-fashion-mnist, or give --data DIR");
  }
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;
  ~GzipFile() { gzclose(file_); }

  void read(uint8_t* to, size_t bytes) {
    while (bytes > 0) {
      const auto part = static_cast<unsigned>(std::min<size_t>(bytes, 1U << 20));
      const int got = gzread(file_, to, part);
      if (got <= 0) fail("ends too early or is damaged");
      to += got;
      bytes -= static_cast<size_t>(got);
    }
  }

  // IDX: two zero bytes, the element type (8: bytes), the number of dimensions, their lengths.
  template <size_t N>
  std::array<size_t, N> read_head() {
    uint8_t magic[4];
    read(magic, sizeof magic);
    if (magic[0] != 0 || magic[1] != 0 || magic[2] != 8 || magic[3] != N)
      fail("is not an IDX file of bytes in " + std::to_string(N) + " dimension(s)");
    std::array<size_t, N> lengths;
    for (size_t& length : lengths) {
      uint8_t big[4];
      read(big, sizeof big);
      length = size_t{big[0]} << 24 | size_t{big[1]} << 16 | size_t{big[2]} << 8 | size_t{big[3]};
    }
    return lengths;
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw std::runtime_error(path_ + " " + why);
  }

 private:
  std::string path_;
  gzFile file_;
};

}  // namespace

Dataset read_dataset(const std::string& directory, Part part, size_t limit) {
  const std::string stem = directory + (part == Part::train ? "/train" : "/t10k");
  GzipFile images(stem + "-images-idx3-ubyte.gz"), labels(stem + "-labels-idx1-ubyte.gz");
  const auto [count, rows, columns] = images.read_head<3>();
  const auto [label_count] = labels.read_head<1>();
  if (label_count != count)
    labels.fail("has " + std::to_string(label_count) + " labels for " + std::to_string(count) +
                " images");

  const size_t used = limit == 0 ? count : std::min(limit, count);
  std::vector<uint8_t> pixels(used * rows * columns);
  images.read(pixels.data(), pixels.size());
  Dataset set{Matrix(used, rows * columns), std::vector<uint8_t>(used)};
  labels.read(set.labels.data(), used);
  std::transform(pixels.begin(), pixels.end(), set.images.values.begin(), [](uint8_t pixel) {
    return (static_cast<float>(pixel) / 255.0f - kMean) / kDeviation;
  });
  return set;
}

}  // namespace train
