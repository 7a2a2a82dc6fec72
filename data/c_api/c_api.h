/* warren::data for languages that call C: a share of a data set as arrays (row_block.h).
 *
 * Functions that return int return 0, or -1 and leave a message, which warren_data_last_error gives to the
 * same thread. Thread safety: one thread at a time for each handle. */
#ifndef WARREN_DATA_C_API_H_
#define WARREN_DATA_C_API_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define WARREN_DATA_API extern "C" __attribute__((visibility("default")))
#else
#define WARREN_DATA_API __attribute__((visibility("default")))
#endif

typedef struct WarrenRows WarrenRows;

/* Arrays of a share in CSR form. Those of fields that no row of the data set has are NULL; those of a share
 * without rows have no elements. They live as long as their WarrenRows. */
typedef struct {
  uint64_t rows;
  uint64_t entries;
  uint64_t columns;
  const uint64_t* offsets;  /* rows + 1 */
  const uint32_t* indices;  /* entries */
  const float* values;      /* entries */
  const float* labels;      /* rows * labels_of_a_row */
  uint64_t labels_of_a_row; /* the same in all rows of the data set */
  const float* weights;     /* rows, or with queries one for each of them; NULL: all weigh 1, in all parts */
  const uint32_t* group_sizes; /* rows of each query, in order; NULL: no queries in any part */
  uint64_t groups;
  uint64_t bad_rows;         /* left out, with bad_rows=skip */
  const char* first_bad_row; /* what was wrong with the first of them; NULL: there are none */
} WarrenArrays;

/* Replaces each of `count` values by the greatest of all workers'. Returns 0, or anything else when that
 * failed. */
typedef int (*WarrenAllreduceMax)(void* context, uint64_t* values, size_t count);

/* Adds a file to `files`; for WarrenFiles::list alone, while it is called. Copies the name. */
typedef void (*WarrenAddFile)(void* files, const char* name, uint64_t bytes);

/* Who finds and reads files behind scheme://..., instead of dmlc-core. Both return 0, or anything else and
 * leave in `message` why, in at most `message_bytes` bytes with a zero at the end; without one, the error
 * says which file could not be read. They are called by several threads at once, none of which has to be that
 * of the read, and only while the read is going on. Names are what messages call the files. */
typedef struct {
  void* context;
  /* Adds the file `path`, or the files of the folder or pattern `path`, in the order in which they are read:
   * the same for all workers. */
  int (*list)(void* context, const char* path, WarrenAddFile add, void* files, char* message,
              size_t message_bytes);
  /* Reads exactly `bytes` bytes (never 0) of a file that was listed, as it is stored, from `offset` on: never
   * beyond its listed end. Mostly 1 MiB and more at once; what is in between is read ahead, in up to 64 MiB
   * (source/read_ahead.h). */
  int (*read_at)(void* context, const char* name, uint64_t offset, void* to, size_t bytes, char* message,
                 size_t message_bytes);
} WarrenFiles;

WARREN_DATA_API const char* warren_data_last_error(void);

/* What is read. */
typedef struct {
  /* path[;path...][?key=value[&key=value...]]; NULL: `paths`. */
  const char* uri;
  /* Names of files and folders in which no character has a meaning (but that of scheme://), and
   * key=value[&key=value...] or NULL. */
  const char* const* paths;
  size_t path_count;
  const char* options;
  const WarrenFiles* files; /* NULL: dmlc-core's streams */
  int threads;              /* 0: one for each core */
} WarrenDataSet;

/* Reads part `part` of `parts` of the data set, or the part that its name says. All parts have the same
 * columns, and the same of labels, weights and queries: with `allreduce_max`, which makes this a collective
 * call, all workers agree on them; where it is NULL, or the name of the data set says the part, the whole
 * data set is read once more for them (of streams, such as standard input, only the whole can be read then).
 * Fails for a data set with a cache, which is for data that does not fit into memory. */
WARREN_DATA_API int warren_data_read_set(const WarrenDataSet* set, int part, int parts,
                                         WarrenAllreduceMax allreduce_max, void* context, WarrenRows** rows);
WARREN_DATA_API int warren_data_read(const char* uri, int part, int parts, int threads,
                                     WarrenAllreduceMax allreduce_max, void* context, WarrenRows** rows);
/* The same with files of the caller's; `files` NULL: the same. */
WARREN_DATA_API int warren_data_read_from(const WarrenFiles* files, const char* uri, int part, int parts,
                                          int threads, WarrenAllreduceMax allreduce_max, void* context,
                                          WarrenRows** rows);
/* What `allreduce_max` gives to the workers who read all parts of the data set: WARREN_DATA_SHAPE_WORDS
 * values. Reads the whole data set: for callers who read several parts without a job. */
enum { WARREN_DATA_SHAPE_WORDS = 8 };
WARREN_DATA_API int warren_data_shape(const WarrenDataSet* set, uint64_t* words);
WARREN_DATA_API int warren_data_arrays(WarrenRows* rows, WarrenArrays* arrays);
/* The queries of this part that one file has, in increasing order. */
typedef struct {
  const char* path;
  const uint64_t* queries;
  uint64_t count;
} WarrenQueries;

/* Calls `take` for each file that the rows of this part are from, if they have queries: a query that several
 * parts have of one file is torn. */
WARREN_DATA_API void warren_data_queries(const WarrenRows* rows,
                                         void (*take)(void* context, const WarrenQueries* queries),
                                         void* context);
WARREN_DATA_API void warren_data_free(WarrenRows* rows);

#endif /* WARREN_DATA_C_API_H_ */
