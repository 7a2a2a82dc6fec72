// The format of --log-format json: each line is a JSON object, for log collectors.
#pragma once

#include <memory>

#include "submit/output/line_format.h"

namespace warren::submit {

std::unique_ptr<LineFormat> MakeJsonFormat();

}  // namespace warren::submit
