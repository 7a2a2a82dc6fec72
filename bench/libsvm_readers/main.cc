// Reads a LibSVM file once with the given reader and prints the time taken as one line of JSON. bench/libsvm
// starts it, a new process for each run.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>

#include "bench/libsvm_readers/peers.h"
#include "data/reader.h"
#include "data/text/simd/kernels.h"

namespace {

using namespace warren;

struct Arguments {
  std::string path;
  int threads = 1;
};

using bench::Found;

Found ReadWithWarren(const Arguments& arguments) {
  data::ReaderOptions options;
  options.threads = arguments.threads;
  const auto rows = data::ReadAll<std::uint32_t>(data::ParseDataUri(arguments.path), {}, options);
  return {rows.rows(), rows.entries()};
}

/// Reads block by block without keeping the blocks.
Found ReadBlocksWithWarren(const Arguments& arguments) {
  data::ReaderOptions options;
  options.threads = arguments.threads;
  data::Reader<std::uint32_t> reader(data::ParseDataUri(arguments.path), {}, options);
  data::RowBlock<std::uint32_t> block;
  Found found;
  while (reader.Next(block)) {
    found.rows += block.rows();
    found.entries += block.entries();
  }
  return found;
}

/// A lower bound for the time of a reader: finds all line ends in one pass over the file.
Found FindLineEnds(const Arguments& arguments) {
  const int fd = open(arguments.path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (fd < 0 || fstat(fd, &status) != 0) throw std::runtime_error("cannot open " + arguments.path);
  constexpr std::size_t kBlock = std::size_t{4} << 20;
  std::string block(kBlock, '\0');
  Found found;
  for (ssize_t got = 0; (got = read(fd, block.data(), kBlock)) > 0;) {
    const char* at = block.data();
    const char* const end = at + got;
    while (const void* line_end = std::memchr(at, '\n', static_cast<std::size_t>(end - at))) {
      ++found.rows;
      at = static_cast<const char*>(line_end) + 1;
    }
  }
  close(fd);
  return found;
}

const std::map<std::string, std::function<Found(const Arguments&)>>& Readers() {
  static const std::map<std::string, std::function<Found(const Arguments&)>> readers {
    {"warren", ReadWithWarren}, {"warren-blocks", ReadBlocksWithWarren}, {"memchr", FindLineEnds},
#if defined(HAVE_DMLC)
        {"dmlc", [](const Arguments& a) { return bench::ReadWithDmlc(a.path); }},
#endif
#if defined(HAVE_XGBOOST)
        {"xgboost-dmatrix", [](const Arguments& a) { return bench::LoadWithXgboost(a.path, a.threads); }},
        {"warren-dmatrix", [](const Arguments& a) { return bench::LoadThroughWarren(a.path, a.threads); }},
        {"xgboost-first-round",
         [](const Arguments& a) { return bench::FirstRound(false, a.path, a.threads); }},
        {"warren-first-round", [](const Arguments& a) { return bench::FirstRound(true, a.path, a.threads); }},
#endif
  };
  return readers;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Reads a LibSVM file once and prints how long that took.");
  Arguments arguments;
  std::string reader;
  std::string known;
  for (const auto& [name, unused] : Readers()) known += (known.empty() ? "" : ", ") + name;
  app.add_option("reader", reader, known)->required();
  app.add_option("file", arguments.path, "LibSVM text")->required();
  app.add_option("--threads", arguments.threads, "for readers that can be told");
  CLI11_PARSE(app, argc, argv);
  try {
    const auto begin = std::chrono::steady_clock::now();
    const Found found = Readers().at(reader)(arguments);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    fmt::print(R"({{"reader": "{}", "simd": "{}", "seconds": {}, "rows": {}, "entries": {}}})"
               "\n",
               reader, data::simd::Best().name, seconds, found.rows, found.entries);
  } catch (const std::exception& error) {
    fmt::print(stderr, "libsvm-readers: {}\n", error.what());
    return 1;
  }
  return 0;
}
