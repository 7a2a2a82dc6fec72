// Makes an archive of spdlog. Compiled with -fkeep-inline-functions, it contains all of spdlog except
// templates; the ones that Warren uses are instantiated here.
#define FMT_HEADER_ONLY
#define SPDLOG_FMT_EXTERNAL
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

template class spdlog::sinks::base_sink<spdlog::details::null_mutex>;
template class spdlog::sinks::basic_file_sink<spdlog::details::null_mutex>;
template std::shared_ptr<spdlog::logger> spdlog::stderr_color_st<spdlog::synchronous_factory>(
    const std::string&, spdlog::color_mode);
