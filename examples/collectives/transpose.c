/* Transposes a matrix whose rows are spread evenly over the ranks, with an all-to-all of blocks.
 *
 *     dmlc-submit --num-workers 3 build/bin/collectives-transpose */
#include <stdio.h>
#include <stdlib.h>

#include "warren/c_api.h"

enum { kRows = 2 }; /* rows per rank */

static void Check(int result) {
  if (result == 0) return;
  fprintf(stderr, "%s\n", WarrenGetLastError());
  exit(1);
}

int main(int argc, char** argv) {
  WarrenComm world;
  int rank;
  int size;
  Check(WarrenInit(argc, argv));
  Check(WarrenCommWorld(&world));
  Check(WarrenCommRank(world, &rank));
  Check(WarrenCommSize(world, &size));

  const size_t block = kRows * kRows;
  int* send = malloc(size * block * sizeof(int));
  int* recv = malloc(size * block * sizeof(int));
  if (send == NULL || recv == NULL) return 1;
  /* Row r of the matrix is 100 r, 100 r + 1, ... Block b of `send` is for rank b, already transposed. */
  for (int b = 0; b < size; ++b) {
    for (int row = 0; row < kRows; ++row) {
      for (int column = 0; column < kRows; ++column) {
        send[b * block + column * kRows + row] = 100 * (rank * kRows + row) + b * kRows + column;
      }
    }
  }
  Check(WarrenAllToAll(world, send, recv, block, WARREN_INT32));
  for (int row = 0; row < kRows; ++row) {
    printf("row %d:", rank * kRows + row);
    for (int b = 0; b < size; ++b) {
      for (int column = 0; column < kRows; ++column) printf(" %d", recv[b * block + row * kRows + column]);
    }
    printf("\n");
  }
  free(send);
  free(recv);
  Check(WarrenCommFree(world));
  Check(WarrenFinalize());
  return 0;
}
