#include "options.hpp"

#include <charconv>
#include <map>
#include <random>

namespace chaos {

const std::string_view kHelp = R"(Usage: chaos [OPTION...]

Four processes with a worker for each of two groups handle what is appended to a stream, while every
second a fault is drawn at random. In the end it says whether an entry was lost, handled twice at
once, out of order, acknowledged too early, or dead-lettered wrongly.

  --seed N       draws the same faults, the same poison and the same failures again; what the
                 machine makes of them is never quite the same. By default a fresh one, printed
  --minutes M    how long entries are appended and faults drawn, 0.1 to 60; by default 3. It ends
                 when everything is handled and stale consumers are gone, up to 4 minutes later
  --entries N    how many; by default as many a second as 200,000 in 3 minutes
  --folder PATH  where histories go, a new folder; by default a temporary one
  --keep         keep that folder although nothing went wrong
  --help         this text

It ends with 0 if all is as it must be, with 1 if it is not or could not be found out (then the
folder is kept), with 2 if the command line makes no sense, and with 130 if it is interrupted.
)";

namespace {

template <typename Number>
Number number(const std::string& name, const std::string& text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || at != end) throw BadOption{name + " is no number: '" + text + "'"};
  return value;
}

std::uint64_t fresh_seed() {
  std::random_device random;
  return (std::uint64_t{random()} << 32) | random();
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options options;
  std::string seed, minutes, entries;
  const std::map<std::string_view, bool*> switches{{"--keep", &options.keep},
                                                   {"--help", &options.help}};
  const std::map<std::string_view, std::string*> values{
      {"--seed", &seed},
      {"--minutes", &minutes},
      {"--entries", &entries},
      {"--folder", &options.folder},
      {"--worker-uri", &options.worker_uri},
      {"--worker-history", &options.worker_history},
      {"--worker-name", &options.worker_name}};
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
  options.seed = seed.empty() ? fresh_seed() : number<std::uint64_t>("--seed", seed);
  if (!minutes.empty()) options.minutes = number<double>("--minutes", minutes);
  if (!(options.minutes >= 0.1 && options.minutes <= 60)) {
    throw BadOption{"--minutes is 0.1 to 60, not " + minutes};
  }
  options.entries = entries.empty() ? static_cast<std::uint64_t>(options.minutes / 3 * 200'000)
                                    : number<std::uint64_t>("--entries", entries);
  if (options.entries < 1'000 || options.entries > 10'000'000) {
    throw BadOption{"--entries is 1,000 to 10,000,000"};
  }
  return options;
}

}  // namespace chaos
