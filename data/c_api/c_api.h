/* warren::data for languages that call C: reads a share of a data set into arrays (row_block.h).
 *
 * Functions that return int return 0, or -1 on failure; warren_data_last_error then returns the message. The
 * message belongs to the calling thread and is valid until that thread's next failure. Thread safety: one
 * thread at a time for each WarrenRows. */
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

/* Arrays of a share in CSR form. Only `weights` and `group_sizes` can be NULL; the other arrays are non-null
 * even if the share has no rows. Valid until their WarrenRows is freed or given to warren_data_arrays again.
 */
typedef struct {
  uint64_t rows;
  uint64_t entries;
  uint64_t columns;
  const uint64_t* offsets;  /* rows + 1 */
  const uint32_t* indices;  /* entries */
  const float* values;      /* entries */
  const float* labels;      /* rows * labels_of_a_row */
  uint64_t labels_of_a_row; /* the same for all rows of the data set */
  const float* weights; /* one per row, or per query if there are queries; NULL: all are 1, in all parts */
  const uint32_t* group_sizes; /* number of rows of each query, in order; NULL: no queries in any part */
  uint64_t groups;
  uint64_t bad_rows;         /* rows skipped with bad_rows=skip */
  const char* first_bad_row; /* error of the first skipped row, or NULL */
} WarrenArrays;

/* Replaces each of `count` values with its maximum over all workers. Returns 0, or another value if that
 * failed. */
typedef int (*WarrenAllreduceMax)(void* context, uint64_t* values, size_t count);

/* Adds a file of `bytes` stored bytes to `files`. Only for calls from within the `list` of WarrenFiles.
 * Copies the name. */
typedef void (*WarrenAddFile)(void* files, const char* name, uint64_t bytes);

/* Finds and reads files whose names begin with scheme://, in place of dmlc-core. Both functions return 0, or
 * another value on failure; they should then store the reason in `message`, at most `message_bytes` bytes
 * including the final NUL. They are called only during the call that was given these WarrenFiles, on any
 * thread; `read_at` is called by several threads concurrently. Error messages contain the names unchanged. */
typedef struct {
  void* context;
  /* Adds the file `path`, or the files of the folder or pattern `path`, in reading order, which must be the
   * same for all workers. */
  int (*list)(void* context, const char* path, WarrenAddFile add, void* files, char* message,
              size_t message_bytes);
  /* Reads exactly `bytes` bytes (never 0) of a listed file at `offset`, without decompressing them. The range
   * never exceeds the listed size. Most calls read 1 MiB or more; smaller reads go through read-ahead buffers
   * of up to 64 MiB in total (source/read_ahead.h). */
  int (*read_at)(void* context, const char* name, uint64_t offset, void* to, size_t bytes, char* message,
                 size_t message_bytes);
} WarrenFiles;

WARREN_DATA_API const char* warren_data_last_error(void);

/* The data set to read. */
typedef struct {
  /* path[;path...][?key=value[&key=value...]]; NULL: use `paths`. */
  const char* uri;
  /* Names of files and folders in which no character is special (except in scheme://), and their options:
   * key=value[&key=value...] or NULL. */
  const char* const* paths;
  size_t path_count;
  const char* options;
  const WarrenFiles* files; /* NULL: dmlc-core's streams */
  int threads;              /* parser threads; 0: one per core, but at most 16 (ReaderOptions in reader.h) */
} WarrenDataSet;

/* Reads part `part` of `parts` of the data set, or the part given in its URI or options. The arrays have the
 * shape of the whole data set: the number of columns, the labels per row, and whether there are weights and
 * queries. With `allreduce_max`, the call is collective and the workers agree on the shape. If it is NULL, or
 * the URI or the options give the part, the whole data set is read once more to find the shape, unless there
 * is only one part; a part of standard input, of a pipe or of a device can then not be read. Fails for a data
 * set with a cache, which is for data that does not fit into memory. The caller frees `*rows` with
 * warren_data_free. */
WARREN_DATA_API int warren_data_read_set(const WarrenDataSet* set, int part, int parts,
                                         WarrenAllreduceMax allreduce_max, void* context, WarrenRows** rows);
WARREN_DATA_API int warren_data_read(const char* uri, int part, int parts, int threads,
                                     WarrenAllreduceMax allreduce_max, void* context, WarrenRows** rows);
/* Like warren_data_read, with the caller's files; NULL uses dmlc-core's streams. */
WARREN_DATA_API int warren_data_read_from(const WarrenFiles* files, const char* uri, int part, int parts,
                                          int threads, WarrenAllreduceMax allreduce_max, void* context,
                                          WarrenRows** rows);
/* Stores in `words` the WARREN_DATA_SHAPE_WORDS values that `allreduce_max` would produce for workers that
 * together read all parts of the data set. Reads the whole data set. For callers that read several parts
 * without a job. */
enum { WARREN_DATA_SHAPE_WORDS = 10 };
WARREN_DATA_API int warren_data_shape(const WarrenDataSet* set, uint64_t* words);
WARREN_DATA_API int warren_data_arrays(WarrenRows* rows, WarrenArrays* arrays);
/* The queries of one file in this part, in increasing order. */
typedef struct {
  const char* path;
  const uint64_t* queries;
  uint64_t count;
} WarrenQueries;

/* Calls `take` for each file with rows in this part, if they have queries. If several parts report the same
 * query of a file, that query has been split. */
WARREN_DATA_API void warren_data_queries(const WarrenRows* rows,
                                         void (*take)(void* context, const WarrenQueries* queries),
                                         void* context);
WARREN_DATA_API void warren_data_free(WarrenRows* rows);

#endif /* WARREN_DATA_C_API_H_ */
