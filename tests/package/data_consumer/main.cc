// A third-party program that reads rows and uses nothing else of Warren.
#include <data/agreement.h>
#include <data/cache/pages.h>
#include <data/reader.h>

#include <cstdio>

int main(int, char** argv) {
  using namespace warren::data;
  auto rows = ReadAll<std::uint32_t>(ParseDataUri(argv[1]));
  Agree(rows, Indexing::kZero);
  std::printf("%zu rows, %zu entries, %llu columns\n", rows.rows(), rows.entries(),
              static_cast<unsigned long long>(rows.columns));
  return 0;
}
