#include "options.hpp"

#include <unistd.h>

#include <map>

#include "../server_uri.hpp"

namespace pipeline {

const std::string_view kHelp = R"(Usage: pipeline [OPTION...]

Appends the records of a file to a stream, has two consumer groups process them in three worker
processes, kills one of these while it holds entries, and shows that nothing is lost.

  --input FILE      what to read; `-`, or nothing: standard input
  --format FORMAT   lines: each line is a record
                    paragraphs: blank lines divide records of `Name: value` lines
                    auto (the default): what the beginning of the input looks like
  --uri URI         the server: redis://host:port or unix:///path; by default that of the
                    environment variable MILLRACE_URI, or redis://127.0.0.1:6379
  --stream KEY      the stream, which must not be there yet; by default a name of its own
  --keep            do not delete the stream at the end
  --help            this text

It ends with 0 if nothing was lost or damaged, with 1 if something was or went wrong, and with 2
if the command line makes no sense.
)";

namespace {

Format parse_format(const std::string& name) {
  if (name == "auto") return Format::kAuto;
  if (name == "lines") return Format::kLines;
  if (name == "paragraphs") return Format::kParagraphs;
  throw BadOption{"--format is lines, paragraphs or auto, not '" + name + "'"};
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options options{.uri = default_uri(), .stream = "example:pipeline:" + std::to_string(::getpid())};
  const std::map<std::string_view, bool*> switches{{"--keep", &options.keep},
                                                   {"--help", &options.help}};
  std::string format{"auto"};
  const std::map<std::string_view, std::string*> values{
      {"--uri", &options.uri},
      {"--input", &options.input},
      {"--format", &format},
      {"--stream", &options.stream},
      {"--worker-group", &options.worker_group},
      {"--worker-consumer", &options.worker_consumer},
      {"--worker-journal", &options.worker_journal},
  };

  for (int i = 1; i < argc; ++i) {
    const std::string_view name{argv[i]};
    if (const auto found = switches.find(name); found != switches.end()) {
      *found->second = true;
    } else if (const auto value = values.find(name); value == values.end()) {
      throw BadOption{"there is no option '" + std::string{name} + "'"};
    } else if (++i == argc) {
      throw BadOption{std::string{name} + " needs a value"};
    } else {
      *value->second = argv[i];
    }
  }
  options.format = parse_format(format);
  return options;
}

}  // namespace pipeline
