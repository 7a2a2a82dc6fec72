// Streams and what can be written to them. Both are dmlc-core's (<dmlc/io.h>).
#ifndef RABIT_SERIALIZABLE_H_
#define RABIT_SERIALIZABLE_H_

#include <dmlc/io.h>

#include <string>
#include <vector>

#include "rabit/internal/utils.h"

namespace rabit {

/// Bytes in and out: Read(pointer, bytes), Write(pointer, bytes).
typedef dmlc::Stream Stream;

/// A model that can be checkpointed: Load(Stream*) and Save(Stream*) const, which reads what the other wrote.
typedef dmlc::Serializable Serializable;

}  // namespace rabit
#endif  // RABIT_SERIALIZABLE_H_
