// --log-format json: each line is an object, for programs that gather logs.
#pragma once

#include <memory>

#include "submit/output/line_format.h"

namespace warren::submit {

std::unique_ptr<LineFormat> MakeJsonFormat();

}  // namespace warren::submit
