/* Makes every call of the C API whose name ends in Async, with and without options, and checks the results.
 * Run with 1 to 4 workers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "warren/c_api.h"

#define CHECK(condition)                                                                               \
  do {                                                                                                 \
    if (!(condition)) {                                                                                \
      fprintf(stderr, "rank %d: line %d: %s: %s\n", rank, __LINE__, #condition, WarrenGetLastError()); \
      exit(1);                                                                                         \
    }                                                                                                  \
  } while (0)

enum { kMostRanks = 4, kCalls = 19 };

static int Lower(const void* right, void* left, size_t count, void* context) {
  (void)right, (void)left, (void)count, (void)context;
  return 0;
}

static int released = 0;
static void Release(void* context) {
  (void)context;
  ++released;
}

/* Fills a buffer of kMostRanks elements. */
static void Fill(int* buffer, int value) {
  int i;
  for (i = 0; i < kMostRanks; ++i) buffer[i] = value;
}

static void CallAll(WarrenComm world, int rank, int size, const WarrenCallOptions* options) {
  int own[kMostRanks], results[kCalls][kMostRanks], i, n = 0;
  const int sum = size * (size - 1) / 2;
  const int type = WARREN_INT32;
  size_t counts[kMostRanks];
  WarrenHandle handles[kCalls + 2];
  WarrenCustomOp lower;
  lower.function = Lower;
  lower.context = NULL;
  lower.element_bytes = sizeof(int);
  lower.release = Release;
  released = 0;
  Fill(own, rank);
  for (i = 0; i < kCalls; ++i) Fill(results[i], i == 7 ? rank : -1);
  for (i = 0; i < size; ++i) counts[i] = 1;
#define NEXT results[n], 1
#define END options, &handles[n]
#define BEGIN(call)     \
  do {                  \
    CHECK((call) == 0); \
    ++n;                \
  } while (0)
  BEGIN(WarrenAllreduceAsync(world, own, NEXT, type, WARREN_SUM, END));
  BEGIN(WarrenAllreduceCustomAsync(world, own, NEXT, &lower, END));
  BEGIN(WarrenReduceAsync(world, own, NEXT, type, WARREN_SUM, 0, END));
  BEGIN(WarrenReduceCustomAsync(world, own, NEXT, &lower, 0, END));
  BEGIN(WarrenReduceScatterAsync(world, own, NEXT, type, WARREN_SUM, END));
  BEGIN(WarrenReduceScatterVAsync(world, own, results[n], counts, type, WARREN_SUM, END));
  BEGIN(WarrenReduceScatterVCustomAsync(world, own, results[n], counts, &lower, END));
  BEGIN(WarrenBroadcastAsync(world, NEXT, type, size - 1, END));
  BEGIN(WarrenAllgatherAsync(world, own, NEXT, type, END));
  BEGIN(WarrenAllgatherVAsync(world, own, results[n], counts, type, END));
  BEGIN(WarrenGatherAsync(world, own, NEXT, type, 0, END));
  BEGIN(WarrenGatherVAsync(world, own, 1, results[n], counts, type, 0, END));
  BEGIN(WarrenScatterAsync(world, own, NEXT, type, 0, END));
  BEGIN(WarrenScatterVAsync(world, own, counts, NEXT, type, 0, END));
  BEGIN(WarrenAllToAllAsync(world, own, NEXT, type, END));
  BEGIN(WarrenAllToAllVAsync(world, own, counts, results[n], counts, type, END));
  BEGIN(WarrenSendRecvAsync(world, own, 1, (rank + 1) % size, NEXT, (rank + size - 1) % size, type, END));
  BEGIN(WarrenBarrierAsync(world, END));
  handles[n] = NULL;
  if (rank == 0 && size > 1) CHECK(WarrenSendAsync(world, own, 1, type, 1, END) == 0);
  if (rank == 1) CHECK(WarrenRecvAsync(world, NEXT, type, 0, END) == 0);
  CHECK(WarrenWaitAll(handles, (size_t)n + 1) == 0);
  for (i = 0; i < 7; ++i) {
    const int is_of_root = i == 2 || i == 3;
    const int is_custom = i == 1 || i == 3 || i == 6;
    CHECK(results[i][0] == (is_of_root && rank != 0 ? -1 : is_custom ? 0 : sum));
  }
  CHECK(results[7][0] == size - 1);
  for (i = 0; i < size; ++i) {
    CHECK(results[8][i] == i && results[9][i] == i && results[14][i] == i && results[15][i] == i);
    CHECK(rank != 0 || (results[10][i] == i && results[11][i] == i));
  }
  CHECK(results[12][0] == 0 && results[13][0] == 0);
  CHECK(results[16][0] == (rank + size - 1) % size);
  CHECK(results[n][0] == (rank == 1 ? 0 : -1));
  CHECK(released == 3);
}

/* A custom operation is released when its call is refused, whatever the reason. */
static void RefuseCustom(WarrenComm world, int rank) {
  int own[kMostRanks], result[kMostRanks];
  WarrenCallOptions options = WARREN_CALL_OPTIONS;
  WarrenHandle handle = NULL;
  WarrenCustomOp op;
  op.function = Lower;
  op.context = NULL;
  op.element_bytes = sizeof(int);
  op.release = Release;
  released = 0;
  Fill(own, rank);
  CHECK(WarrenAllreduceCustom(NULL, own, result, 1, &op) == -1 && released == 1);
  CHECK(WarrenReduceCustomAsync(world, own, result, 1, &op, 99, NULL, &handle) == -1 && released == 2);
  CHECK(WarrenAllreduceCustomAsync(world, own, result, 1, &op, NULL, NULL) == -1 && released == 3);
  options.struct_bytes = 0;
  CHECK(WarrenAllreduceCustomAsync(world, own, result, 1, &op, &options, &handle) == -1 && released == 4);
  CHECK(WarrenEnqueueAllreduceCustom(NULL, "sum", own, result, 1, &op, NULL, &handle) == -1 && released == 5);
  op.function = NULL;
  CHECK(WarrenAllreduceCustom(world, own, result, 1, &op) == -1 && released == 6);
  CHECK(WarrenAllreduceCustom(world, own, result, 1, NULL) == -1 && released == 6);
}

int main(int argc, char* argv[]) {
  WarrenComm world = NULL;
  WarrenHandle handle = NULL;
  WarrenCallOptions options = WARREN_CALL_OPTIONS;
  char name[] = "gradients";
  double one = 1, other = 0;
  int rank = -1, size = 0;
  CHECK(WarrenInit(argc, argv) == 0 && WarrenCommWorld(&world) == 0);
  CHECK(WarrenCommRank(world, &rank) == 0 && WarrenCommSize(world, &size) == 0);
  CallAll(world, rank, size, NULL);
  CallAll(world, rank, size, &options);
  options.name = name;
  options.timeout_seconds = 60;
  CallAll(world, rank, size, &options);

  RefuseCustom(world, rank);

  /* Invalid arguments are refused, and no handle is returned. */
  options.timeout_seconds = -0.5;
  CHECK(WarrenBarrierAsync(world, &options, &handle) == -1 && handle == NULL);
  CHECK(strstr(WarrenGetLastError(), "WarrenBarrierAsync 'gradients': a timeout of -0.5 s") != NULL);
  options.timeout_seconds = 60;
  options.struct_bytes = 0;
  CHECK(WarrenBarrierAsync(world, &options, &handle) == -1 && handle == NULL);
  CHECK(strstr(WarrenGetLastError(), "initialise them with WARREN_CALL_OPTIONS") != NULL);
  options.struct_bytes = sizeof(options);
  CHECK(WarrenBarrierAsync(world, &options, NULL) == -1);
  CHECK(strstr(WarrenGetLastError(), "`handle` is NULL") != NULL);

  /* The ranks' counts differ. The error contains the operation's name as it was when the call was made. */
  CHECK(WarrenAllreduceAsync(world, &one, &other, rank == 0, WARREN_FLOAT64, WARREN_SUM, &options, &handle) ==
        0);
  strcpy(name, "another");
  CHECK(WarrenWait(handle) == (size == 1 ? 0 : -1));
  CHECK(size == 1 || strstr(WarrenGetLastError(), "WarrenAllreduceAsync 'gradients': ") != NULL);
  CHECK(WarrenCommFree(world) == 0 && WarrenFinalize() == (size == 1 ? 0 : -1));
  puts("all handles well");
  return 0;
}
