// SPDX-License-Identifier: Apache-2.0
#include "matrix.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace train {

namespace {

// A block of the result that fits the registers: kHigh rows of kWide floats.
constexpr size_t kHigh = 4, kWide = 8;
using Lanes = float __attribute__((vector_size(4 * sizeof(float))));
constexpr size_t kLanes = sizeof(Lanes) / sizeof(float);

// kWide columns of b, one row after the other: small enough for the first-level cache.
void pack(const View& b, size_t column, float* panel) {
  for (size_t k = 0; k < b.rows; k++)
    for (size_t j = 0; j < kWide; j++)
      panel[k * kWide + j] = b.data[k * b.row_stride + (column + j) * b.column_stride];
}

void multiply_block(const View& a, const float* panel, size_t row, float* out, size_t out_stride) {
  const float* from = a.data + row * a.row_stride;
  Lanes sum[kHigh][kWide / kLanes] = {};
  for (size_t k = 0; k < a.columns; k++, from += a.column_stride, panel += kWide)
    for (size_t i = 0; i < kHigh; i++)
      for (size_t j = 0; j < kWide / kLanes; j++) {
        Lanes value;
        std::memcpy(&value, panel + j * kLanes, sizeof value);
        sum[i][j] += from[i * a.row_stride] * value;
      }
  for (size_t i = 0; i < kHigh; i++) std::memcpy(out + i * out_stride, sum[i], sizeof sum[i]);
}

// What is left at the right and at the bottom.
void multiply_rest(const View& a, const View& b, size_t row, size_t column, float* out) {
  float sum = 0;
  for (size_t k = 0; k < a.columns; k++)
    sum += a.data[row * a.row_stride + k * a.column_stride] *
           b.data[k * b.row_stride + column * b.column_stride];
  out[row * b.columns + column] = sum;
}

}  // namespace

void multiply(const View& a, const View& b, float* out, const std::function<void()>& between) {
  const size_t high = a.rows / kHigh * kHigh, wide = b.columns / kWide * kWide;
  std::vector<float> panel(a.columns * kWide);
  for (size_t column = 0; column < wide; column += kWide) {
    pack(b, column, panel.data());
    for (size_t row = 0; row < high; row += kHigh)
      multiply_block(a, panel.data(), row, out + row * b.columns + column, b.columns);
    between();
  }
  for (size_t row = 0; row < a.rows; row++)
    for (size_t column = row < high ? wide : 0; column < b.columns; column++)
      multiply_rest(a, b, row, column, out);
}

}  // namespace train
