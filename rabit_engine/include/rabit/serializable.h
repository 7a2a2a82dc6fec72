// Streams and serializable objects, both from dmlc-core (<dmlc/io.h>).
#ifndef RABIT_SERIALIZABLE_H_
#define RABIT_SERIALIZABLE_H_

#include <dmlc/io.h>

#include <string>
#include <vector>

#include "rabit/internal/utils.h"

namespace rabit {

/// Bytes in and out: Read(pointer, bytes), Write(pointer, bytes).
typedef dmlc::Stream Stream;

/// A model that can be checkpointed: has Load(Stream*) and Save(Stream*) const; Load reads what Save wrote.
typedef dmlc::Serializable Serializable;

}  // namespace rabit
#endif  // RABIT_SERIALIZABLE_H_
