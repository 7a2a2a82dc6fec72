// Writes the rows of a data set to standard output, as arrays for NumPy, for comparisons with other readers.
// Each array is a line "name count", followed by its bytes. Weights and fields are left out.
#include <cstdio>
#include <exception>

#include "data/reader.h"

namespace {

template <typename Array>
void Write(const char* name, const Array& array) {
  std::printf("%s %zu\n", name, array.size());
  std::fwrite(array.data(), sizeof(array[0]), array.size(), stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    const auto rows = warren::data::ReadAll<std::uint32_t>(warren::data::ParseDataUri(argv[1]));
    Write("offsets", rows.offsets);
    Write("indices", rows.indices);
    Write("values", rows.values);
    Write("labels", rows.labels);
    Write("qids", rows.qids);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
