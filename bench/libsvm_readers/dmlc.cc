#include <dmlc/data.h>

#include <memory>

#include "bench/libsvm_readers/peers.h"

namespace warren::bench {

Found ReadWithDmlc(const std::string& path) {
  const std::unique_ptr<dmlc::RowBlockIter<std::uint32_t>> rows(
      dmlc::RowBlockIter<std::uint32_t>::Create(path.c_str(), 0, 1, "libsvm"));
  Found found;
  rows->BeforeFirst();
  while (rows->Next()) {
    found.rows += rows->Value().size;
    found.entries += rows->Value().offset[rows->Value().size] - rows->Value().offset[0];
  }
  return found;
}

}  // namespace warren::bench
