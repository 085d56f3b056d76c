#include <millrace/dead_letters.hpp>

#include "millrace_scripts.hpp"
#include "net/pool.hpp"
#include "worker/config.hpp"
#include "worker/scripts.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <string_view>
#include <utility>

namespace millrace {
namespace {

/// Letters that are looked at in one page.
constexpr std::size_t kPage = 100;

/// Who owns an entry that is brought back, until a worker takes it over.
constexpr std::string_view kRedriver = "millrace-redrive";

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::chrono::system_clock::time_point> time(std::string_view text) {
  const auto milliseconds = number(text);
  if (!milliseconds) return std::nullopt;
  return std::chrono::system_clock::time_point{
      std::chrono::milliseconds{static_cast<std::chrono::milliseconds::rep>(*milliseconds)}};
}

/// nullopt: an entry that is no dead letter.
std::optional<DeadLetter> letter_of(const Entry& entry) {
  const auto names = detail::scripts::letter_names();
  if (entry.size() < names.size()) return std::nullopt;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (entry[i].first != names[i]) return std::nullopt;
  }
  const auto id = StreamId::try_parse(entry[1].second);
  if (!id) return std::nullopt;
  DeadLetter letter{.id = entry.id(),
                    .stream = std::string{entry[0].second},
                    .entry_id = *id,
                    .group = std::string{entry[2].second},
                    .consumer = std::string{entry[3].second},
                    .attempts = number(entry[4].second).value_or(0),
                    .failed_at = time(entry[5].second),
                    .first_failed_at = time(entry[6].second),
                    .reason = std::string{entry[7].second}};
  for (std::size_t i = names.size(); i < entry.size(); ++i) {
    letter.fields.emplace_back(entry[i].first, entry[i].second);
  }
  return letter;
}

}  // namespace

DeadLetters::DeadLetters(const EventStream& source, const std::string& stream)
    : source_{source},
      letters_{source.pool(), stream.empty() ? detail::sibling_key(source.key(), "dlq") : stream} {}

std::vector<DeadLetter> DeadLetters::list(RangeStart start, RangeEnd end, std::size_t count) const {
  std::vector<DeadLetter> letters;
  for (const Entry& entry : letters_.replay(start, end, count)) {
    if (auto letter = letter_of(entry)) letters.push_back(std::move(*letter));
  }
  return letters;
}

std::uint64_t DeadLetters::count() const { return letters_.length(); }

std::optional<DeadLetter> DeadLetters::find(StreamId letter) const {
  for (const Entry& entry : letters_.replay(letter, letter, 1)) return letter_of(entry);
  return std::nullopt;
}

bool DeadLetters::redrive(StreamId letter) const {
  const auto found = find(letter);
  if (!found || found->stream != source_.key() || found->fields.empty()) return false;
  if (found->fields.size() > detail::scripts::kMostFields) {
    source_.add(found->fields);
    return letters_.erase({letter}) == 1;
  }
  const std::array keys{std::string_view{source_.key()}, std::string_view{letters_.key()}};
  const auto id = letter.to_string();
  const auto own_words = fmt::to_string(2 * detail::scripts::letter_names().size());
  const std::array<std::string_view, 2> args{id, own_words};
  const detail::Reply reply =
      detail::Pool::of(source_.pool())
          .eval({.command = "XADD (redrive, by script)", .key = source_.key()},
                detail::kRedriveToStreamScript, keys, args);
  return !reply.root().is_nil();
}

DeadLetters::Redriven DeadLetters::redrive_to_group(StreamId letter) const {
  const auto found = find(letter);
  if (!found || found->stream != source_.key()) return Redriven::kNoLetter;
  const std::array keys{std::string_view{source_.key()}, std::string_view{letters_.key()}};
  const auto id = letter.to_string();
  const auto entry_id = found->entry_id.to_string();
  const auto idle = fmt::to_string(source_.options().claim_min_idle.count());
  const std::array<std::string_view, 5> args{id, found->group, entry_id, kRedriver, idle};
  const detail::Reply reply =
      detail::Pool::of(source_.pool())
          .eval({.command = "XCLAIM (redrive, by script)", .key = source_.key()},
                detail::kRedriveToGroupScript, keys, args);
  if (reply.root().integer() == 1) return Redriven::kDone;
  return reply.root().integer() == 0 ? Redriven::kNoLetter : Redriven::kTrimmed;
}

std::size_t DeadLetters::redrive_all() const {
  const StreamId last = letters_.info().last_generated_id;
  std::size_t redriven = 0;
  for (RangeStart start;;) {
    const auto page = letters_.replay(start, last, kPage);
    if (page.empty()) return redriven;
    for (const Entry& entry : page) {
      if (redrive(entry.id())) ++redriven;
    }
    start = RangeStart::after(page.back().id());
  }
}

bool DeadLetters::discard(StreamId letter) const { return letters_.erase({letter}) == 1; }

}  // namespace millrace
