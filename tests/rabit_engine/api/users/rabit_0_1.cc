// A C++11 program that uses the whole API of rabit 0.1, as its users would. It checks its own results, in
// jobs of up to 8 workers, and exits with code 0 if they are right.
#include <rabit/rabit.h>
// Some programs also include these directly.
#include <rabit/base.h>
#include <rabit/internal/engine.h>
#include <rabit/internal/io.h>
#include <rabit/internal/utils.h>
#include <rabit/serializable.h>

using namespace rabit;

static_assert(DMLC_USE_CXX11, "lambdas are there");

// A user-defined operation. The engine must call it even though kType is kSum.
struct KeepLast {
  static const engine::mpi::OpType kType = engine::mpi::kSum;
  template <typename DType>
  inline static void Reduce(DType& dst, const DType& src) {
    dst = src;
  }
};

namespace {

class Model : public rabit::Serializable {
 public:
  std::vector<float> data;
  virtual void Load(rabit::Stream* fi) { fi->Read(&data); }
  virtual void Save(rabit::Stream* fo) const { fo->Write(data); }
};

// 12 bytes: no arithmetic type has this size.
struct Triple {
  float a, b, c;
};
void AddTriple(Triple& dst, const Triple& src) {
  dst.a += src.a;
  dst.b += src.b;
  dst.c += src.c;
}

#pragma pack(push, 1)
struct Packed {
  char tag;
  double value;
};
#pragma pack(pop)
void MaxPacked(Packed& dst, const Packed& src) {
  if (dst.value < src.value) dst = src;
}

struct Words {
  std::string text;
  void Save(rabit::Stream& fs) const { fs.Write(text); }
  void Load(rabit::Stream& fs) { fs.Read(&text); }
  void Reduce(const Words& src, size_t max_nbyte) {
    utils::Check(text.length() + src.text.length() + 8 <= max_nbyte, "no room");
    text += src.text;
  }
};

// A wrapper that passes its caller's file, line and function on to rabit.
template <typename DType>
void SumHere(DType* data, size_t n, const char* _file = _FILE, const int _line = _LINE,
             const char* _caller = _CALLER) {
  rabit::Allreduce<op::Sum>(data, n, NULL, NULL, _file, _line, _caller);
}

int prepared = 0;
void Prepare(void* arg) {
  ++prepared;
  *static_cast<int*>(arg) = rabit::GetRank() + 1;
}

template <typename DType>
void AllOperations(int rank, int world) {
  const DType mine = static_cast<DType>(rank + 1);
  DType value = mine;
  rabit::Allreduce<op::Max>(&value, 1);
  utils::Check(value == static_cast<DType>(world), "max");
  value = mine;
  rabit::Allreduce<op::Min>(&value, 1);
  utils::Check(value == static_cast<DType>(1), "min");
  value = mine;
  rabit::Allreduce<op::Sum>(&value, 1);
  utils::Check(value == static_cast<DType>(world * (world + 1) / 2), "sum");
}

template <typename DType>
void BitOr(int rank, int world) {
  DType value = static_cast<DType>(1 << rank);
  rabit::Allreduce<op::BitOR>(&value, 1);
  utils::Check(value == static_cast<DType>((1 << world) - 1), "or");
}

}  // namespace

int main(int argc, char* argv[]) {
  rabit::Init(argc, argv);
  const int rank = rabit::GetRank();
  const int world = rabit::GetWorldSize();
  const std::string name = rabit::GetProcessorName();
  utils::Check(name.length() != 0, "a host has a name");
  utils::Check(rabit::GetRingPrevRank() == (rank + world - 1) % world, "ring");
  utils::Assert(rabit::IsDistributed() == (world > 1) || world == 1, "distributed");

  Model model, local;
  int iter = rabit::LoadCheckPoint(&model, &local);
  utils::Check(iter == 0 && rabit::VersionNumber() == 0, "a fresh start");
  model.data.resize(100, 0.5f);
  local.data.resize(3, static_cast<float>(rank));

  AllOperations<char>(rank, world);
  AllOperations<unsigned char>(rank, world);
  AllOperations<int>(rank, world);
  AllOperations<unsigned>(rank, world);
  AllOperations<long>(rank, world);           // NOLINT(*)
  AllOperations<unsigned long>(rank, world);  // NOLINT(*)
  AllOperations<float>(rank, world);
  AllOperations<double>(rank, world);
  AllOperations<long long>(rank, world);           // NOLINT(*)
  AllOperations<unsigned long long>(rank, world);  // NOLINT(*)
  AllOperations<short>(rank, world);               // NOLINT(*)
  BitOr<int>(rank, world);
  BitOr<size_t>(rank, world);
  BitOr<signed char>(rank, world);

  int value = 0;
  rabit::Allreduce<op::Sum>(&value, 1, Prepare, &value);
  utils::Check(prepared == 1 && value == world * (world + 1) / 2, "prepare function");
  value = 0;
  Allreduce<op::Sum>(&value, 1, [&]() { value = 1; });
  utils::Check(value == world, "prepare lambda");
  rabit::Allreduce<op::Max>(&value, 1, nullptr, nullptr, "a key");
  SumHere(&value, 1);
  utils::Check(value == world * world, "wrapper");
  rabit::Allreduce<op::Sum>(static_cast<double*>(NULL), 0);
  value = rank;
  rabit::Allreduce<KeepLast>(&value, 1);
  utils::Check(value == world - 1, "own operation: %d", value);

  for (int root = 0; root < world; ++root) {
    std::string s;
    std::vector<double> v;
    int seed = 0;
    if (rank == root) {
      s = "hello";
      v.assign(1000, 2.5);
      seed = 7;
    } else {
      v.assign(3000, 1);
    }
    rabit::Broadcast(&s, root);
    rabit::Broadcast(&v, root);
    rabit::Broadcast(&seed, sizeof(seed), root, "seed");
    utils::Check(s == "hello" && v.size() == 1000 && v[999] == 2.5 && seed == 7, "broadcast");
  }

  // The fourth argument is a size in rabit's code and an end in its documentation; both must work.
  for (int is_end = 0; is_end < 2; ++is_end) {
    std::vector<float> all(5 * world, -1.0f);
    const size_t begin = 5 * rank;
    for (int i = 0; i < 5; ++i) all[begin + i] = static_cast<float>(10 * rank + i);
    Allgather(&all[0], all.size(), begin, is_end ? begin + 5 : 5, 5);
    for (int i = 0; i < 5 * world; ++i) utils::Check(all[i] == 10 * (i / 5) + i % 5, "allgather %d", i);
  }
  {
    std::vector<int> all(world, -1);
    all[rank] = rank;
    engine::Allgather(BeginPtr(all), world * sizeof(int), rank * sizeof(int), (rank + 1) * sizeof(int),
                      sizeof(int));
    for (int i = 0; i < world; ++i) utils::Check(all[i] == i, "engine allgather");
  }

  {
    rabit::Reducer<Triple, AddTriple> add;
    std::vector<Triple> triples(1001);
    add.Allreduce(BeginPtr(triples), triples.size(), [&]() {
      for (size_t i = 0; i < triples.size(); ++i) triples[i] = Triple{1.0f, static_cast<float>(i), 0.5f};
    });
    utils::Check(triples[1000].a == world && triples[1000].b == 1000.0f * world, "reducer");

    rabit::Reducer<Packed, MaxPacked> max_packed;
    Packed packed = {static_cast<char>('a' + rank), 1.5 * rank};
    max_packed.Allreduce(&packed, 1);
    utils::Check(packed.tag == 'a' + world - 1, "packed reducer");

    rabit::SerializeReducer<Words> join;
    Words words[2];
    words[0].text = std::string(1, static_cast<char>('a' + rank));
    join.Allreduce(words, 64, 2, [&]() { words[1].text.assign(1, 'x'); });
    utils::Check(words[0].text == std::string("abcdefgh", world), "order of ranks: %s",
                 words[0].text.c_str());
    utils::Check(words[1].text == std::string(world, 'x'), "serialized");
  }

  rabit::CheckPoint(&model, &local);
  utils::Check(rabit::VersionNumber() == 1, "version 1");
  Model model_again, local_again;
  utils::Check(rabit::LoadCheckPoint(&model_again, &local_again) == 1, "load 1");
  utils::Check(model_again.data == model.data && local_again.data == local.data, "same models");
  if (rank == 0) {
    rabit::TrackerPrint("printed\n");
    rabit::TrackerPrintf("printed %d of %s\n", 2, std::string(3000, 'x').c_str());
  }
  engine::IEngine* e = engine::GetEngine();
  utils::Check(e->GetHost() == name && e->GetWorldSize() == world, "engine");
  utils::Printf("[%d] done\n", rank);
  rabit::Finalize();
  return 0;
}
