/* Makes the calls that take one count per rank, and the calls that LightGBM makes, and checks the results.
 * Run with 1 to 4 workers. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "rabit/c_api.h"

#define CHECK(condition)                                                                              \
  do {                                                                                                \
    if (!(condition)) {                                                                               \
      fprintf(stderr, "rank %d: line %d: %s: %s\n", rank, __LINE__, #condition, RabitGetLastError()); \
      exit(1);                                                                                        \
    }                                                                                                 \
  } while (0)

enum { kMostRanks = 4, kMost = 64 };

/* The functions for LightGBM, with LightGBM's types. No header declares them: warren.lightgbm looks them up
 * by name. */
typedef void (*Reducer)(const char* input, char* output, int type_size, int32_t bytes);
void WarrenLightGBMReduceScatter(char* input, int32_t input_size, int type_size, const int32_t* block_start,
                                 const int32_t* block_len, int num_block, char* output, int32_t output_size,
                                 const Reducer* reducer);
void WarrenLightGBMAllgather(char* input, int32_t input_size, const int32_t* block_start,
                             const int32_t* block_len, int num_block, char* output, int32_t output_size);

void WarrenLightGBMCorrect(double own, double tolerance, double replacement);
int WarrenLightGBMCorrected(void);

static int reducer_calls = 0;

static void SumDoubles(const char* input, char* output, int type_size, int32_t bytes) {
  int32_t at;
  ++reducer_calls;
  for (at = 0; at < bytes; at += type_size) *(double*)(output + at) += *(const double*)(input + at);
}

static void SumIntegers(const char* input, char* output, int type_size, int32_t bytes) {
  int32_t at;
  ++reducer_calls;
  for (at = 0; at < bytes; at += type_size) *(int64_t*)(output + at) += *(const int64_t*)(input + at);
}

static void GreatestDoubles(const char* input, char* output, int type_size, int32_t bytes) {
  int32_t at;
  ++reducer_calls;
  for (at = 0; at < bytes; at += type_size) {
    *(double*)(output + at) = fmax(*(double*)(output + at), *(const double*)(input + at));
  }
}

/* 12 bytes: a sum, a minimum, and an unused int. */
typedef struct {
  int32_t sum, lowest, unused;
} Triple;
static void SumTriples(const char* input, char* output, int type_size, int32_t bytes) {
  int32_t at;
  ++reducer_calls;
  for (at = 0; at < bytes; at += type_size) {
    Triple* to = (Triple*)(output + at);
    const Triple* from = (const Triple*)(input + at);
    to->sum += from->sum;
    if (from->lowest < to->lowest) to->lowest = from->lowest;
  }
}

/* Reducers of pairs of integers, each pair treated as one element of twice the size, as in LightGBM's
 * histograms of quantized gradients. `type_size` is the size of one integer. GreatestPairs computes the
 * maximum; the others add. */
static void SumPairs(const char* input, char* output, int type_size, int32_t bytes) {
  int32_t i;
  ++reducer_calls;
  for (i = 0; i < (bytes + 2 * type_size - 1) / (2 * type_size); ++i) ((int64_t*)output)[i] += ((const int64_t*)input)[i];
}
static void GreatestPairs(const char* input, char* output, int type_size, int32_t bytes) {
  int32_t i;
  ++reducer_calls;
  for (i = 0; i < (bytes + 2 * type_size - 1) / (2 * type_size); ++i) {
    if (((int64_t*)output)[i] < ((const int64_t*)input)[i]) ((int64_t*)output)[i] = ((const int64_t*)input)[i];
  }
}
static void SumHalfPairs(const char* input, char* output, int type_size, int32_t bytes) {
  int32_t i;
  ++reducer_calls;
  for (i = 0; i < (bytes + 2 * type_size - 1) / (2 * type_size); ++i) ((int32_t*)output)[i] += ((const int32_t*)input)[i];
}

/* Pairs per rank: enough to cross a network in several pieces. */
enum { kPairs = 150001 };

/* Gathers `own` from each rank, and checks that the value received from rank r is (r + 1) * `expected`. */
static void GatherDoubles(int rank, int world, double own, double expected) {
  int i;
  int32_t start[kMostRanks], length[kMostRanks];
  double all[kMostRanks];
  for (i = 0; i < world; ++i) start[i] = 8 * i, length[i] = 8;
  WarrenLightGBMAllgather((char*)&own, 8, start, length, world, (char*)all, 8 * world);
  for (i = 0; i < world; ++i) CHECK(all[i] == (i + 1) * expected);
}

static void CheckCorrections(int rank, int world) {
  /* A value that does not match is kept. A value that matches within the tolerance is replaced, but only
   * once. */
  WarrenLightGBMCorrect(5, 1e-6, 7 * (rank + 1));
  GatherDoubles(rank, world, rank + 1, 1);
  CHECK(WarrenLightGBMCorrected() == 0);
  WarrenLightGBMCorrect(rank + 1 + 1e-7, 1e-6, 7 * (rank + 1));
  GatherDoubles(rank, world, rank + 1, 7);
  GatherDoubles(rank, world, rank + 1, 1);
  CHECK(WarrenLightGBMCorrected() == 1);
  WarrenLightGBMCorrect(NAN, 0, 3 * (rank + 1));
  GatherDoubles(rank, world, NAN, 3);
  CHECK(WarrenLightGBMCorrected() == 1);
  WarrenLightGBMCorrect(-INFINITY, 0, 3 * (rank + 1));
  GatherDoubles(rank, world, -INFINITY, 3);
  CHECK(WarrenLightGBMCorrected() == 1);
  /* A correction that is ended before any call has no effect on later calls. */
  WarrenLightGBMCorrect(rank + 1, 0, 9);
  CHECK(WarrenLightGBMCorrected() == 0);
  GatherDoubles(rank, world, rank + 1, 1);
}

static void CheckPairs(int rank, int world) {
  int i, way;
  int32_t start[kMostRanks], length[kMostRanks];
  int64_t* pairs = malloc(sizeof(int64_t) * kPairs * world);
  int64_t* own = malloc(sizeof(int64_t) * kPairs);
  for (i = 0; i < world; ++i) start[i] = 8 * kPairs * i, length[i] = 8 * kPairs;
  for (way = 0; way < 2; ++way) {
    Reducer reducer = way == 0 ? &SumPairs : &GreatestPairs;
    for (i = 0; i < kPairs * world; ++i) pairs[i] = ((int64_t)(i % 1000) << 32) + 0xfffffff0 + rank + (i % 7) * (int64_t)rank;
    reducer_calls = 0;
    WarrenLightGBMReduceScatter((char*)pairs, 8 * kPairs * world, 4, start, length, world, (char*)own, 8 * kPairs, &reducer);
    CHECK(way == 0 ? reducer_calls == 1 : world == 1 || reducer_calls > 1);
    for (i = 0; i < kPairs; ++i) {
      const int of_all = kPairs * rank + i;
      const int64_t base = ((int64_t)(of_all % 1000) << 32) + 0xfffffff0;
      const int64_t ranks = world * (world - 1) / 2;
      CHECK(own[i] == (way == 0 ? world * base + ranks + ranks * (of_all % 7) : base + (world - 1) * (1 + of_all % 7)));
    }
  }
  {
    Reducer reducer = &SumHalfPairs;
    for (i = 0; i < 2 * kPairs * world; ++i) ((int32_t*)pairs)[i] = (i % 1000 << 16) + 0xfff0 + rank;
    for (i = 0; i < world; ++i) start[i] = 4 * kPairs * i, length[i] = 4 * kPairs;
    reducer_calls = 0;
    WarrenLightGBMReduceScatter((char*)pairs, 4 * kPairs * world, 2, start, length, world, (char*)own, 8 * kPairs, &reducer);
    CHECK(reducer_calls == 1);
    for (i = 0; i < kPairs; ++i) {
      CHECK(((int32_t*)own)[i] == world * (((kPairs * rank + i) % 1000 << 16) + 0xfff0) + world * (world - 1) / 2);
    }
  }
  free(pairs);
  free(own);
}

int main(int argc, char* argv[]) {
  int rank = 0, world, i, other;
  size_t counts[kMostRanks], offsets[kMostRanks + 1] = {0};
  int32_t start[kMostRanks], length[kMostRanks];
  int numbers[kMost];
  double values[kMost], own[kMost];
  int64_t integers[kMost], own_integers[kMost];
  Triple triples[kMost], own_triples[kMost];
  Reducer reducer;
  CHECK(RabitTryInit(argc, argv) == 0);
  rank = RabitGetRank();
  world = RabitGetWorldSize();
  for (i = 0; i < world; ++i) counts[i] = i == 1 ? 0 : (size_t)(3 * i + 2); /* one rank contributes nothing */
  for (i = 0; i < world; ++i) offsets[i + 1] = offsets[i] + counts[i];

  /* Allgather. */
  for (i = 0; i < kMost; ++i) numbers[i] = -1;
  for (i = (int)offsets[rank]; i < (int)offsets[rank + 1]; ++i) numbers[i] = 100 * rank + i;
  CHECK(RabitTryAllgatherV(numbers, counts, 2) == 0);
  for (other = 0; other < world; ++other) {
    for (i = (int)offsets[other]; i < (int)offsets[other + 1]; ++i) CHECK(numbers[i] == 100 * other + i);
  }
  CHECK(numbers[offsets[world]] == -1);

  /* Reduce-scatter. */
  for (i = 0; i < kMost; ++i) values[i] = i + rank;
  CHECK(RabitTryReduceScatter(values, counts, 7, 2) == 0);
  for (i = (int)offsets[rank]; i < (int)offsets[rank + 1]; ++i) {
    CHECK(values[i] == (double)i * world + world * (world - 1) / 2.0);
  }
  for (i = 0; i < kMost; ++i) values[i] = i + rank;
  CHECK(RabitTryReduceScatter(values, counts, 7, 0) == 0);
  for (i = (int)offsets[rank]; i < (int)offsets[rank + 1]; ++i) CHECK(values[i] == i + world - 1);

  /* Invalid arguments are refused on all ranks and leave the job running. */
  CHECK(RabitTryAllgatherV(numbers, NULL, 2) == -1 &&
        strstr(RabitGetLastError(), "RabitAllgatherV: the counts are NULL"));
  CHECK(RabitTryAllgatherV(NULL, counts, 2) == -1 && strstr(RabitGetLastError(), "is NULL"));
  CHECK(RabitTryAllgatherV(numbers, counts, 12) == -1 &&
        strstr(RabitGetLastError(), "12 is not an element type"));
  CHECK(RabitTryReduceScatter(values, counts, 7, 3) == -1 &&
        strstr(RabitGetLastError(), "there is no bitwise or of double"));
  CHECK(RabitTryReduceScatter(values, counts, 7, 9) == -1 &&
        strstr(RabitGetLastError(), "9 is not an operation"));
  counts[0] = (size_t)1 << 62;
  CHECK(RabitTryReduceScatter(values, counts, 7, 2) == -1 &&
        strstr(RabitGetLastError(), "more than memory can hold"));
  CHECK(RabitTryAllgatherV(values, counts, 7) == -1 &&
        strstr(RabitGetLastError(), "larger than memory can hold"));

  /* LightGBM's calls: a sum of doubles is recognized by a single call of the caller's function, in the
   * first of two rounds. */
  for (i = 0; i < world; ++i) start[i] = (int32_t)(8 * offsets[i]);
  counts[0] = offsets[1];
  for (i = 0; i < world; ++i) length[i] = (int32_t)(8 * counts[i]);
  for (other = 0; other < 2; ++other) {
    for (i = 0; i < kMost; ++i) values[i] = 0.5 * i + rank;
    reducer = &SumDoubles;
    WarrenLightGBMReduceScatter((char*)values, (int32_t)(8 * offsets[world]), 8, start, length, world,
                                (char*)own, (int32_t)sizeof(own), &reducer);
    for (i = 0; i < (int)counts[rank]; ++i) {
      CHECK(own[i] == 0.5 * world * (i + (double)offsets[rank]) + world * (world - 1) / 2.0);
    }
    CHECK(reducer_calls == 1);
  }
  /* Other functions of 8-byte elements are not recognized: each is called for the check, then to do
   * the work. */
  reducer_calls = 0;
  for (i = 0; i < kMost; ++i) integers[i] = (int64_t)i * 1000000007 + rank;
  reducer = &SumIntegers;
  WarrenLightGBMReduceScatter((char*)integers, (int32_t)(8 * offsets[world]), 8, start, length, world,
                              (char*)own_integers, (int32_t)sizeof(own_integers), &reducer);
  for (i = 0; i < (int)counts[rank]; ++i) {
    CHECK(own_integers[i] ==
          world * ((int64_t)(i + (int)offsets[rank]) * 1000000007) + world * (world - 1) / 2);
  }
  CHECK(world == 1 ? reducer_calls == 1 : reducer_calls >= 1);
  for (i = 0; i < kMost; ++i) values[i] = i + rank;
  reducer = &GreatestDoubles;
  WarrenLightGBMReduceScatter((char*)values, (int32_t)(8 * offsets[world]), 8, start, length, world,
                              (char*)own, (int32_t)sizeof(own), &reducer);
  for (i = 0; i < (int)counts[rank]; ++i) CHECK(own[i] == i + (double)offsets[rank] + world - 1);

  /* Elements of other sizes. */
  for (i = 0; i < world; ++i) start[i] = (int32_t)(sizeof(Triple) * offsets[i]);
  for (i = 0; i < world; ++i) length[i] = (int32_t)(sizeof(Triple) * counts[i]);
  for (i = 0; i < kMost; ++i) triples[i].sum = i, triples[i].lowest = 10 + rank, triples[i].unused = 7;
  reducer = &SumTriples;
  WarrenLightGBMReduceScatter((char*)triples, (int32_t)(sizeof(Triple) * offsets[world]), sizeof(Triple),
                              start, length, world, (char*)own_triples, (int32_t)sizeof(own_triples),
                              &reducer);
  for (i = 0; i < (int)counts[rank]; ++i) {
    CHECK(own_triples[i].sum == world * (i + (int)offsets[rank]) && own_triples[i].lowest == 10 &&
          own_triples[i].unused == 7);
  }

  /* Allgather, in place as in LightGBM's allreduce: this rank's block is at the beginning of the output. */
  for (i = 0; i < world; ++i) start[i] = (int32_t)offsets[i], length[i] = (int32_t)counts[i];
  {
    char text[kMost];
    memset(text, '?', sizeof(text));
    for (i = 0; i < (int)counts[rank]; ++i) text[i] = (char)('a' + rank);
    WarrenLightGBMAllgather(text, length[rank], start, length, world, text, (int32_t)offsets[world]);
    for (other = 0; other < world; ++other) {
      for (i = (int)offsets[other]; i < (int)offsets[other + 1]; ++i) CHECK(text[i] == 'a' + other);
    }
  }
  CheckCorrections(rank, world);
  CheckPairs(rank, world);
  CHECK(RabitTryFinalize() == 0);
  puts("all slices well");
  return 0;
}
