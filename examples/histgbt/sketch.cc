#include "examples/histgbt/sketch.h"

#include <rabit/rabit.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace warren::histgbt {
namespace {

/// The size up to which the sketches of several features share an allreduce.
constexpr std::size_t kMessageBytes = std::size_t{4} << 20;

/// MurmurHash3's finalizer (Appleby): a bijection in which every bit of the input changes about half of the
/// output bits.
std::uint64_t Mix(std::uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  return x ^ x >> 33;
}

/// Hashes a row: its entries, independently of their order, and its label.
std::uint64_t HashOfRow(const data::RowView<std::uint32_t>& rows, std::size_t row) {
  std::uint64_t sum = 0;
  for (std::uint64_t e = rows.offsets[row]; e < rows.offsets[row + 1]; ++e) {
    sum += Mix(std::uint64_t{rows.indices[e]} << 32 | std::bit_cast<std::uint32_t>(rows.values[e]));
  }
  if (rows.label_offsets.empty() && row < rows.labels.size()) {
    sum ^= std::uint64_t{std::bit_cast<std::uint32_t>(rows.labels[row])} << 17;
  }
  return Mix(sum);
}

template <typename T>
void Put(std::vector<char>& bytes, const T& value) {
  const auto* const from = reinterpret_cast<const char*>(&value);
  bytes.insert(bytes.end(), from, from + sizeof value);
}

/// Throws std::runtime_error unless `count` values of `bytes` bytes each lie between `at` and `end`: another
/// worker has written the count.
void RequireThere(const char* at, const char* end, std::uint64_t count, std::size_t bytes) {
  if (count > static_cast<std::uint64_t>(end - at) / bytes) throw std::runtime_error("a sketch was cut off");
}

template <typename T>
T Take(const char*& at, const char* end) {
  RequireThere(at, end, 1, sizeof(T));
  T value;
  std::memcpy(&value, at, sizeof value);
  at += sizeof value;
  return value;
}

/// Sketches of several features, for rabit's SerializeReducer. The serialized form includes the options,
/// because Load is called on a newly constructed object.
struct Message {
  SketchOptions options;
  std::vector<FeatureSketch> sketches;

  void Save(rabit::Stream& stream) const {
    std::vector<char> bytes;
    Put(bytes, static_cast<std::uint64_t>(options.sample_size));
    Put(bytes, static_cast<std::uint64_t>(options.most_distinct));
    Put(bytes, static_cast<std::uint64_t>(sketches.size()));
    for (const FeatureSketch& sketch : sketches) sketch.Encode(bytes);
    const std::uint64_t size = bytes.size();
    stream.Write(&size, sizeof size);
    stream.Write(bytes.data(), bytes.size());
  }
  void Load(rabit::Stream& stream) {
    std::uint64_t size = 0;
    if (stream.Read(&size, sizeof size) != sizeof size) throw std::runtime_error("a sketch was cut off");
    std::vector<char> bytes(size);
    if (stream.Read(bytes.data(), size) != size) throw std::runtime_error("a sketch was cut off");
    const char* at = bytes.data();
    const char* const end = at + bytes.size();
    options.sample_size = Take<std::uint64_t>(at, end);
    options.most_distinct = Take<std::uint64_t>(at, end);
    const auto count = Take<std::uint64_t>(at, end);
    RequireThere(at, end, count, FeatureSketch::EncodedBytes(0, 0));
    sketches.resize(count);
    for (FeatureSketch& sketch : sketches) sketch = FeatureSketch::Decode(at, end);
  }
  void Reduce(const Message& other, std::size_t /*max_nbyte*/) {
    if (other.sketches.size() != sketches.size())
      throw std::runtime_error("the workers have sketches of different numbers of features");
    for (std::size_t i = 0; i < sketches.size(); ++i) {
      sketches[i].Merge(other.sketches[i], options.sample_size, options.most_distinct);
      sketches[i].Settle(options.sample_size);
    }
  }
};

constexpr std::size_t kMessageHeader = 4 * sizeof(std::uint64_t);

}  // namespace

void FeatureSketch::AddToSample(std::uint64_t hash, float value, std::size_t sample_size) {
  sample_.push_back({hash, value});
  if (sample_.size() >= 2 * sample_size) Settle(sample_size);
}

void FeatureSketch::AddToDistinct(float value, std::size_t most_distinct) {
  const auto at = std::lower_bound(distinct_.begin(), distinct_.end(), value);
  if (at != distinct_.end() && *at == value) return;
  distinct_.insert(at, value);
  too_many_ = distinct_.size() > most_distinct;
  if (too_many_) std::vector<float>().swap(distinct_);
}

void FeatureSketch::Settle(std::size_t sample_size) {
  std::sort(sample_.begin(), sample_.end(), [](const Sampled& a, const Sampled& b) {
    return a.hash != b.hash ? a.hash < b.hash : a.value < b.value;
  });
  sample_.erase(std::unique(sample_.begin(), sample_.end()), sample_.end());
  if (sample_.size() > sample_size) sample_.resize(sample_size);
  if (sample_.size() == sample_size) threshold_ = sample_.back().hash;
}

void FeatureSketch::Merge(const FeatureSketch& other, std::size_t sample_size, std::size_t most_distinct) {
  count_ += other.count_;
  least_ = std::min(least_, other.least_);
  sample_.insert(sample_.end(), other.sample_.begin(), other.sample_.end());
  Settle(sample_size);
  if (too_many_ || other.too_many_) {
    too_many_ = true;
    std::vector<float>().swap(distinct_);
    return;
  }
  for (const float value : other.distinct_) {
    if (!too_many_) AddToDistinct(value, most_distinct);
  }
}

std::vector<float> FeatureSketch::Candidates() const {
  if (!too_many_) return distinct_;
  std::vector<float> values = {least_};
  for (const Sampled& sampled : sample_) values.push_back(sampled.value);
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

std::size_t FeatureSketch::EncodedBytes(std::size_t sampled_rows, std::size_t distinct_values) {
  return 3 * sizeof(std::uint64_t) + sizeof(float) + 1 +
         sampled_rows * (sizeof(std::uint64_t) + sizeof(float)) + distinct_values * sizeof(float);
}

void FeatureSketch::Encode(std::vector<char>& bytes) const {
  Put(bytes, count_);
  Put(bytes, static_cast<std::uint64_t>(sample_.size()));
  Put(bytes, static_cast<std::uint64_t>(distinct_.size()));
  Put(bytes, least_);
  Put(bytes, static_cast<char>(too_many_));
  for (const Sampled& sampled : sample_) {
    Put(bytes, sampled.hash);
    Put(bytes, sampled.value);
  }
  for (const float value : distinct_) Put(bytes, value);
}

FeatureSketch FeatureSketch::Decode(const char*& at, const char* end) {
  FeatureSketch sketch;
  sketch.count_ = Take<std::uint64_t>(at, end);
  const auto sampled_rows = Take<std::uint64_t>(at, end);
  const auto distinct_values = Take<std::uint64_t>(at, end);
  RequireThere(at, end, sampled_rows, sizeof(std::uint64_t) + sizeof(float));
  RequireThere(at, end, distinct_values, sizeof(float));
  sketch.sample_.resize(sampled_rows);
  sketch.distinct_.resize(distinct_values);
  sketch.least_ = Take<float>(at, end);
  sketch.too_many_ = Take<char>(at, end) != 0;
  for (Sampled& sampled : sketch.sample_) {
    sampled.hash = Take<std::uint64_t>(at, end);
    sampled.value = Take<float>(at, end);
  }
  for (float& value : sketch.distinct_) value = Take<float>(at, end);
  return sketch;
}

std::vector<FeatureSketch> SketchRows(const data::RowView<std::uint32_t>& rows, const SketchOptions& options,
                                      Threads& threads) {
  std::vector<std::vector<FeatureSketch>> parts(static_cast<std::size_t>(threads.count()));
  for (auto& part : parts) part.resize(rows.columns);
  threads.ForRanges(rows.rows(), 1024, [&](std::size_t begin, std::size_t end, int thread) {
    std::vector<FeatureSketch>& part = parts[static_cast<std::size_t>(thread)];
    for (std::size_t row = begin; row < end; ++row) {
      const std::uint64_t hash = HashOfRow(rows, row);
      for (std::uint64_t e = rows.offsets[row]; e < rows.offsets[row + 1]; ++e) {
        float value = rows.values[e];
        if (Usable(value)) part[rows.indices[e]].Add(hash, value, options.sample_size, options.most_distinct);
      }
    }
  });
  threads.ForRanges(rows.columns, 1, [&](std::size_t begin, std::size_t end, int /*thread*/) {
    for (std::size_t feature = begin; feature < end; ++feature) {
      for (std::size_t i = 1; i < parts.size(); ++i) {
        parts[0][feature].Merge(parts[i][feature], options.sample_size, options.most_distinct);
      }
      parts[0][feature].Settle(options.sample_size);
    }
  });
  return std::move(parts[0]);
}

void MergeSketches(std::vector<FeatureSketch>& sketches, const SketchOptions& options) {
  if (rabit::GetWorldSize() == 1) return;
  // A merged sketch takes at most the sum of its parts' sizes, and at most the size of a full sketch.
  const std::size_t most = FeatureSketch::EncodedBytes(options.sample_size, options.most_distinct);
  std::vector<std::uint64_t> bytes;
  bytes.reserve(sketches.size());
  for (const FeatureSketch& sketch : sketches) bytes.push_back(sketch.EncodedBytes());
  rabit::Allreduce<rabit::op::Sum>(bytes.data(), bytes.size());
  for (std::uint64_t& one : bytes) one = std::min<std::uint64_t>(one, most);

  rabit::SerializeReducer<Message> reducer;
  for (std::size_t begin = 0; begin < sketches.size();) {
    std::size_t end = begin;
    std::size_t room = kMessageHeader;
    while (end < sketches.size() && (end == begin || room + bytes[end] <= kMessageBytes))
      room += bytes[end++];
    Message message{options,
                    {std::make_move_iterator(sketches.begin() + static_cast<std::ptrdiff_t>(begin)),
                     std::make_move_iterator(sketches.begin() + static_cast<std::ptrdiff_t>(end))}};
    reducer.Allreduce(&message, room, 1);
    std::move(message.sketches.begin(), message.sketches.end(),
              sketches.begin() + static_cast<std::ptrdiff_t>(begin));
    begin = end;
  }
}

}  // namespace warren::histgbt
