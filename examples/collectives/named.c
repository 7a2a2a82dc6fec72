/* Two sums and a broadcast by name: the order in which a rank submits them depends on the rank, and the sums
 * can be packed into one allreduce. */
#include <stdio.h>

#include "warren/c_api.h"

static int Check(int result) {
  if (result != 0) fprintf(stderr, "%s\n", WarrenGetLastError());
  return result;
}

int main(int argc, char** argv) {
  WarrenComm world = NULL;
  WarrenCoordinator coordinator = NULL;
  WarrenHandle handles[3] = {NULL, NULL, NULL};
  float losses[2] = {0, 0};
  double gradient[3] = {1, 2, 3};
  double bias = 1;
  int rank = 0;
  int i;
  if (Check(WarrenInit(argc, argv)) != 0 || Check(WarrenCommWorld(&world)) != 0) return 1;
  if (Check(WarrenCommRank(world, &rank)) != 0) return 1;
  if (Check(WarrenCoordinatorCreate(world, NULL, &coordinator)) != 0) return 1;
  losses[0] = losses[1] = (float)rank;
  for (i = 0; i < 3; ++i) {
    int result = 0;
    switch ((i + rank) % 3) {
      case 0:
        result = WarrenEnqueueAllreduce(coordinator, "gradient", gradient, gradient, 3, WARREN_FLOAT64,
                                        WARREN_SUM, NULL, &handles[i]);
        break;
      case 1:
        result = WarrenEnqueueAllreduce(coordinator, "bias", &bias, &bias, 1, WARREN_FLOAT64, WARREN_SUM,
                                        NULL, &handles[i]);
        break;
      default:
        result =
            WarrenEnqueueBroadcast(coordinator, "losses", losses, 2, WARREN_FLOAT32, 0, NULL, &handles[i]);
    }
    if (Check(result) != 0) return 1;
  }
  if (Check(WarrenWaitAll(handles, 3)) != 0) return 1;
  printf("rank %d: gradient %g %g %g, bias %g, losses %g\n", rank, gradient[0], gradient[1], gradient[2],
         bias, losses[1]);
  if (Check(WarrenCoordinatorFree(coordinator)) != 0 || Check(WarrenCommFree(world)) != 0) return 1;
  return Check(WarrenFinalize()) == 0 ? 0 : 1;
}
