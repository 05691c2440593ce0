// SPDX-License-Identifier: Apache-2.0
// Dense float32 matrices and the one product that training needs. Values, rows one after the other.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace train {

// Somebody's floats, seen as rows x columns. A transposed view has columns that lie apart.
struct View {
  const float* data = nullptr;
  size_t rows = 0, columns = 0;
  size_t row_stride = 0, column_stride = 1;

  View transposed() const { return {data, columns, rows, column_stride, row_stride}; }
  View subrows(size_t first, size_t count) const {
    return {data + first * row_stride, count, columns, row_stride, column_stride};
  }
};

struct Matrix {
  Matrix() = default;
  Matrix(size_t row_count, size_t column_count)
      : rows(row_count), columns(column_count), values(row_count * column_count) {}
  void resize(size_t row_count, size_t column_count) {
    rows = row_count;
    columns = column_count;
    values.resize(rows * columns);
  }
  View view() const { return {values.data(), rows, columns, columns}; }
  std::span<float> row(size_t index) { return {values.data() + index * columns, columns}; }
  std::span<const float> row(size_t index) const {
    return {values.data() + index * columns, columns};
  }

  size_t rows = 0, columns = 0;
  std::vector<float> values;
};

// out = a b, row after row; calls `between` after each few columns. The order of the additions is
// fixed, so equal inputs give equal bits.
void multiply(const View& a, const View& b, float* out, const std::function<void()>& between);

}  // namespace train
