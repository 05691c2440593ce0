// SPDX-License-Identifier: Apache-2.0
// The smallest program: every rank brings its rank + 1, all get the sum.
#include <hcomm/hcomm.h>
#include <stdio.h>

int main(void) {
  hcommComm_t comm;
  int rank = 0;
  if (hcommCommInitWorld(&comm, NULL) || hcommCommUserRank(comm, &rank)) return 1;
  float mine = (float)rank + 1, sum = 0;
  if (hcommAllReduce(&mine, &sum, 1, hcommFloat32, hcommSum, comm, NULL)) return 1;
  printf("rank %d: %g\n", rank, sum);
  return hcommCommDestroy(comm);
}
