/* A C program for rabit/c_api.h. It checks its own results, in jobs of up to 4 workers. With an argument
 * "misuse=..." it makes that mistake instead. */
#include <rabit/c_api.h>
#include <stdint.h>
#include <string.h>

static int failures = 0;
static void Check(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "failed: %s\n", what);
  failures = 1;
}

static void Prepare(void* arg) {
  *(double*)arg = 2.5;
}

static int Misuse(const char* how) {
  double value = 1;
  if (strcmp(how, "null") == 0) RabitAllreduce(NULL, 3, 7, 2, NULL, NULL);
  if (strcmp(how, "type") == 0) RabitAllreduce(&value, 1, 12, 2, NULL, NULL);
  if (strcmp(how, "operation") == 0) RabitAllreduce(&value, 1, 7, -1, NULL, NULL);
  if (strcmp(how, "or") == 0) RabitAllreduce(&value, 1, 7, 3, NULL, NULL);
  if (strcmp(how, "half or") == 0) RabitAllreduce(&value, 1, RABIT_FLOAT16, 3, NULL, NULL);
  if (strcmp(how, "root") == 0) RabitBroadcast(&value, sizeof(value), 99);
  if (strcmp(how, "late") == 0) {
    RabitFinalize();
    RabitBroadcast(&value, sizeof(value), 0);
  }
  return 0;
}

int main(int argc, char* argv[]) {
  int rank, world, i;
  double value = 0;
  long long big; /* NOLINT */
  int64_t slices[64];
  char name[256];
  char* global = name;
  char* local = name;
  rbt_ulong length, global_length = 1, local_length = 1;

  Check(RabitGetRank() == 0 && RabitGetWorldSize() == 1 && !RabitIsDistributed(), "answers before init");
  if (argc > 1 && strcmp(argv[1], "misuse=early") == 0) return RabitAllreduce(&value, 1, 7, 2, NULL, NULL);
  if (!RabitInit(argc, argv)) return 3;
  if (argc > 1 && strncmp(argv[1], "misuse=", 7) == 0) return Misuse(argv[1] + 7);
  rank = RabitGetRank();
  world = RabitGetWorldSize();
  Check(RabitGetRingPrevRank() == (rank + world - 1) % world, "ring");
  RabitGetProcessorName(name, &length, sizeof(name));
  Check(length > 0 && length == strlen(name), "name");
  RabitGetProcessorName(name, &length, 3);
  Check(length <= 2 && length == strlen(name), "short name");

  RabitAllreduce(&value, 1, 7, 2, Prepare, &value);
  Check(value == 2.5 * world, "sum with a prepare function");
  big = rank;
  RabitAllreduce(&big, 1, 8, 0, NULL, NULL);
  Check(big == world - 1, "max of long long");

  {
    /* Rank 0 contributes 1, and each other rank half a unit in the last place of 1. The sum is rounded only
     * once, to nearest even. */
    static const uint16_t sums[4][2] = {
        {0x3c00, 0x3f80}, {0x3c00, 0x3f80}, {0x3c01, 0x3f81}, {0x3c02, 0x3f82}};
    uint16_t half = rank == 0 ? 0x3c00 : 0x1000;
    uint16_t brain = rank == 0 ? 0x3f80 : 0x3b80;
    RabitAllreduce(&half, 1, RABIT_FLOAT16, 2, NULL, NULL);
    Check(half == sums[world - 1][0], "sum of float16");
    RabitAllreduce(&brain, 1, RABIT_BFLOAT16, 2, NULL, NULL);
    Check(brain == sums[world - 1][1], "sum of bfloat16");
    half = (uint16_t)(0x3c00 + rank);
    RabitAllreduce(&half, 1, RABIT_FLOAT16, 0, NULL, NULL);
    Check(half == 0x3c00 + world - 1, "max of float16");
  }

  for (i = 0; i < 2 * world; ++i) slices[i] = -1;
  slices[2 * rank] = slices[2 * rank + 1] = rank;
  RabitAllgather(slices, (size_t)(2 * world), (size_t)(2 * rank), 2, 2, 4);
  for (i = 0; i < 2 * world; ++i) Check(slices[i] == i / 2, "allgather");

  value = rank;
  RabitBroadcast(&value, sizeof(value), world - 1);
  Check(value == world - 1, "broadcast");

  Check(RabitLoadCheckPoint(&global, &global_length, &local, &local_length) == 0, "no checkpoint");
  Check(global == NULL && global_length == 0 && local == NULL && local_length == 0, "and nothing loaded");
  /* A model longer than 65,535 bytes. */
  {
    static char model[100000];
    model[99999] = 'm';
    RabitCheckPoint(model, sizeof(model), "first", 5);
    Check(RabitLoadCheckPoint(&global, &global_length, NULL, NULL) == 1, "version 1");
    Check(global_length == sizeof(model) && memcmp(global, model, sizeof(model)) == 0, "global model");
  }
  RabitCheckPoint("global", 6, "local", 5);
  Check(RabitVersionNumber() == 2, "version 2");
  Check(RabitLoadCheckPoint(&global, &global_length, &local, &local_length) == 2, "load version 2");
  Check(global_length == 6 && memcmp(global, "global", 6) == 0, "global model");
  Check(local_length == 5 && memcmp(local, "local", 5) == 0, "local model");

  RabitTrackerPrint("printed from C\n");
  Check(RabitLinkTag() == 0, "link tag");
  Check(RabitFinalize() == 1, "finalize");
  return failures;
}
