#include "protocol/commands.hpp"

#include <array>
#include <charconv>

namespace millrace::detail::commands {
namespace {

std::uint64_t number(Milliseconds time) { return static_cast<std::uint64_t>(time.count()); }

/// `(id`: the range starts after it, or ends before it.
void exclusive(RequestBuffer& request, StreamId id) {
  constexpr std::size_t kDigits = 20;
  std::array<char, 1 + kDigits + 1 + kDigits> text{'('};
  // The end of the first number, though never reached, shows GCC that there is room for the dash.
  char* end = std::to_chars(text.data() + 1, text.data() + 1 + kDigits, id.ms).ptr;
  *end++ = '-';
  end = std::to_chars(end, text.data() + text.size(), id.seq).ptr;
  request.arg(std::string_view{text.data(), static_cast<std::size_t>(end - text.data())});
}

void range_start(RequestBuffer& request, const RangeStart& start) {
  if (start.exclusive()) {
    exclusive(request, start.id());
  } else if (start.id() == StreamId::min()) {
    request.arg("-");
  } else {
    request.arg(start.id());
  }
}

void range_end(RequestBuffer& request, const RangeEnd& end) {
  if (end.exclusive()) {
    exclusive(request, end.id());
  } else if (end.id() == StreamId::max()) {
    request.arg("+");
  } else {
    request.arg(end.id());
  }
}

void all_ids(RequestBuffer& request, std::span<const StreamId> ids) {
  for (const StreamId id : ids) request.arg(id);
}

std::size_t trim_words(const TrimTerms& terms) { return terms.limit ? 5 : 3; }

void trim_arguments(RequestBuffer& request, const TrimTerms& terms) {
  const char* const precision = terms.exact ? "=" : "~";
  if (const auto* max_len = std::get_if<TrimTerms::MaxLen>(&terms.threshold)) {
    request.arg("MAXLEN").arg(precision).arg(max_len->count);
  } else {
    request.arg("MINID").arg(precision).arg(std::get<TrimTerms::MinId>(terms.threshold).id);
  }
  if (terms.limit) request.arg("LIMIT").arg(*terms.limit);
}

/// `ms-*`.
void at_ms(RequestBuffer& request, std::uint64_t ms) {
  std::array<char, 22> text{};
  char* end = std::to_chars(text.data(), text.data() + text.size(), ms).ptr;
  *end++ = '-';
  *end++ = '*';
  request.arg(std::string_view{text.data(), static_cast<std::size_t>(end - text.data())});
}

void add_id(RequestBuffer& request, const AddId& id) {
  switch (id.kind()) {
    case AddId::Kind::kAutomatic:
      request.arg("*");
      break;
    case AddId::Kind::kExact:
      request.arg(id.id());
      break;
    case AddId::Kind::kAtMs:
      at_ms(request, id.id().ms);
      break;
  }
}

/// An XADD as far as its id; `fields` are to come.
void xadd_without_fields(RequestBuffer& request, std::string_view key, const AddTerms& terms,
                         std::size_t fields) {
  request.command("XADD", xadd_words(terms, fields)).arg(key);
  if (!terms.create_stream) request.arg("NOMKSTREAM");
  if (terms.trim) trim_arguments(request, *terms.trim);
  add_id(request, terms.id);
}

void all_fields(RequestBuffer& request, std::span<const Field> first, const Fields& rest) {
  for (const Field& field : first) request.field(field);
  rest.for_each([&request](const Field& field) { request.field(field); });
}

/// What follows the first of encoded words.
std::string_view without_word(std::string_view words) {
  const auto line_end = words.find('\n');
  std::size_t size = 0;
  std::from_chars(words.data() + 1, words.data() + line_end, size);
  return words.substr(line_end + 1 + size + 2);
}

std::size_t block_words(const ReadOptions& options) { return options.block.count() > 0 ? 2 : 0; }

void block_arguments(RequestBuffer& request, const ReadOptions& options) {
  if (options.block.count() > 0) request.arg("BLOCK").arg(number(options.block));
}

void start_position(RequestBuffer& request, const GroupStart& start) {
  if (const auto id = start.id()) {
    request.arg(*id);
  } else {
    request.arg("$");
  }
}

std::uint64_t since_epoch(std::chrono::system_clock::time_point time) {
  return number(std::chrono::duration_cast<Milliseconds>(time.time_since_epoch()));
}

}  // namespace

TrimTerms trim_terms(const Trim& trim, std::chrono::system_clock::time_point now) {
  TrimTerms terms{
      .threshold = TrimTerms::MaxLen{0}, .exact = trim.is_exact(), .limit = trim.limit()};
  if (const auto* max_len = std::get_if<Trim::MaxLen>(&trim.threshold())) {
    terms.threshold = TrimTerms::MaxLen{max_len->count};
  } else if (const auto* min_id = std::get_if<Trim::MinId>(&trim.threshold())) {
    terms.threshold = TrimTerms::MinId{min_id->id};
  } else {
    const std::uint64_t age = number(std::get<Trim::MaxAge>(trim.threshold()).age);
    const std::uint64_t today = since_epoch(now);
    terms.threshold = TrimTerms::MinId{{today > age ? today - age : 0, 0}};
  }
  return terms;
}

std::size_t xadd_words(const AddTerms& terms, std::size_t fields) {
  return 3 + (terms.create_stream ? 0 : 1) + (terms.trim ? trim_words(*terms.trim) : 0) +
         2 * fields;
}

void xadd(RequestBuffer& request, std::string_view key, const AddTerms& terms,
          std::span<const Field> first, const Fields& rest) {
  xadd_without_fields(request, key, terms, first.size() + rest.size());
  all_fields(request, first, rest);
}

void XaddSeries::add(std::span<const Field> first, const Fields& rest) {
  const std::size_t fields = first.size() + rest.size();
  if (fields == fields_) {
    request_.start_as(start_, size_, 2 * fields);
  } else {
    start_ = request_.bytes().size();
    xadd_without_fields(request_, key_, terms_, fields);
    size_ = request_.bytes().size() - start_;
    fields_ = fields;
  }
  all_fields(request_, first, rest);
}

void xadd_with_trim(RequestBuffer& request, std::string_view key, const TrimTerms& trim,
                    std::string_view plain, std::size_t fields) {
  request.command("XADD", xadd_words({.trim = trim}, fields)).arg(key);
  trim_arguments(request, trim);
  plain.remove_prefix(plain.find('\n') + 1);  // the number of words
  plain = without_word(without_word(plain));  // XADD and the key
  request.encoded(plain, 1 + 2 * fields);
}

void xread(RequestBuffer& request, std::string_view key, StreamId after,
           const ReadOptions& options) {
  request.command("XREAD", 6 + block_words(options))
      .answered_by(ReplyShape::kRead)
      .arg("COUNT")
      .arg(options.count);
  block_arguments(request, options);
  request.arg("STREAMS").arg(key).arg(after);
}

void xreadgroup(RequestBuffer& request, std::string_view key, std::string_view group,
                std::string_view consumer, const ReadOptions& options) {
  request.command("XREADGROUP", 9 + block_words(options) + (options.no_ack ? 1 : 0))
      .answered_by(ReplyShape::kRead)
      .arg("GROUP")
      .arg(group)
      .arg(consumer)
      .arg("COUNT")
      .arg(options.count);
  block_arguments(request, options);
  if (options.no_ack) request.arg("NOACK");
  request.arg("STREAMS").arg(key).arg(">");
}

void xreadgroup_pending(RequestBuffer& request, std::string_view key, std::string_view group,
                        std::string_view consumer, StreamId after, std::size_t count) {
  request.command("XREADGROUP", 9)
      .answered_by(ReplyShape::kRead)
      .arg("GROUP")
      .arg(group)
      .arg(consumer)
      .arg("COUNT")
      .arg(count)
      .arg("STREAMS")
      .arg(key)
      .arg(after);
}

void xack(RequestBuffer& request, std::string_view key, std::string_view group,
          std::span<const StreamId> ids) {
  request.command("XACK", xack_words(ids.size())).arg(key).arg(group);
  all_ids(request, ids);
}

void xpending(RequestBuffer& request, std::string_view key, std::string_view group) {
  request.command("XPENDING", 3).arg(key).arg(group);
}

void xpending_entries(RequestBuffer& request, std::string_view key, std::string_view group,
                      const PendingQuery& query) {
  const bool idle = query.min_idle.count() > 0;
  request.command("XPENDING", 6 + (idle ? 2 : 0) + (query.consumer ? 1 : 0)).arg(key).arg(group);
  if (idle) request.arg("IDLE").arg(number(query.min_idle));
  range_start(request, query.start);
  range_end(request, query.end);
  request.arg(query.count);
  if (query.consumer) request.arg(*query.consumer);
}

std::size_t xclaim_words(std::size_t ids, const ClaimOptions& options, Payload payload) {
  return 5 + ids + (options.idle ? 2 : 0) + (options.time ? 2 : 0) +
         (options.delivery_count ? 2 : 0) + (options.force ? 1 : 0) +
         (payload == Payload::kIdsOnly ? 1 : 0) + (options.last_id ? 2 : 0);
}

void xclaim(RequestBuffer& request, std::string_view key, std::string_view group,
            std::string_view consumer, Milliseconds min_idle, std::span<const StreamId> ids,
            const ClaimOptions& options, Payload payload) {
  request.command("XCLAIM", xclaim_words(ids.size(), options, payload))
      .arg(key)
      .arg(group)
      .arg(consumer)
      .arg(number(min_idle));
  if (payload == Payload::kWhole) request.answered_by(ReplyShape::kEntries);
  all_ids(request, ids);
  if (options.idle) request.arg("IDLE").arg(number(*options.idle));
  if (options.time) request.arg("TIME").arg(since_epoch(*options.time));
  if (options.delivery_count) request.arg("RETRYCOUNT").arg(*options.delivery_count);
  if (options.force) request.arg("FORCE");
  if (payload == Payload::kIdsOnly) request.arg("JUSTID");
  if (options.last_id) request.arg("LASTID").arg(*options.last_id);
}

void xautoclaim(RequestBuffer& request, std::string_view key, std::string_view group,
                std::string_view consumer, Milliseconds min_idle, StreamId start,
                std::size_t count) {
  request.command("XAUTOCLAIM", 8)
      .answered_by(ReplyShape::kAutoclaim)
      .arg(key)
      .arg(group)
      .arg(consumer)
      .arg(number(min_idle))
      .arg(start)
      .arg("COUNT")
      .arg(count);
}

bool is_beyond_all_ids(const RangeStart& start, const RangeEnd& end) {
  return (start.exclusive() && start.id() == StreamId::max()) ||
         (end.exclusive() && end.id() == StreamId::min());
}

void xrange(RequestBuffer& request, std::string_view key, const RangeStart& start,
            const RangeEnd& end, std::size_t count) {
  request.command("XRANGE", 6).answered_by(ReplyShape::kEntries).arg(key);
  range_start(request, start);
  range_end(request, end);
  request.arg("COUNT").arg(count);
}

void xrevrange(RequestBuffer& request, std::string_view key, const RangeEnd& end,
               const RangeStart& start, std::size_t count) {
  request.command("XREVRANGE", 6).answered_by(ReplyShape::kEntries).arg(key);
  range_end(request, end);
  range_start(request, start);
  request.arg("COUNT").arg(count);
}

void xtrim(RequestBuffer& request, std::string_view key, const TrimTerms& terms) {
  request.command("XTRIM", 2 + trim_words(terms)).arg(key);
  trim_arguments(request, terms);
}

void xdel(RequestBuffer& request, std::string_view key, std::span<const StreamId> ids) {
  request.command("XDEL", xdel_words(ids.size())).arg(key);
  all_ids(request, ids);
}

void xlen(RequestBuffer& request, std::string_view key) { request.command("XLEN", 2).arg(key); }

void xsetid(RequestBuffer& request, std::string_view key, StreamId id) {
  request.command("XSETID", 3).arg(key).arg(id);
}

void xinfo_stream(RequestBuffer& request, std::string_view key) {
  request.command("XINFO", 3).arg("STREAM").arg(key);
}

void xinfo_stream_full(RequestBuffer& request, std::string_view key, std::size_t count) {
  request.command("XINFO", 6).arg("STREAM").arg(key).arg("FULL").arg("COUNT").arg(count);
}

void xinfo_groups(RequestBuffer& request, std::string_view key) {
  request.command("XINFO", 3).arg("GROUPS").arg(key);
}

void xinfo_consumers(RequestBuffer& request, std::string_view key, std::string_view group) {
  request.command("XINFO", 4).arg("CONSUMERS").arg(key).arg(group);
}

void xgroup_create(RequestBuffer& request, std::string_view key, std::string_view group,
                   const GroupStart& start) {
  request.command("XGROUP", 6).arg("CREATE").arg(key).arg(group);
  start_position(request, start);
  request.arg("MKSTREAM");
}

void xgroup_setid(RequestBuffer& request, std::string_view key, std::string_view group,
                  const GroupStart& start) {
  request.command("XGROUP", 5).arg("SETID").arg(key).arg(group);
  start_position(request, start);
}

void xgroup_destroy(RequestBuffer& request, std::string_view key, std::string_view group) {
  request.command("XGROUP", 4).arg("DESTROY").arg(key).arg(group);
}

void xgroup_createconsumer(RequestBuffer& request, std::string_view key, std::string_view group,
                           std::string_view consumer) {
  request.command("XGROUP", 5).arg("CREATECONSUMER").arg(key).arg(group).arg(consumer);
}

}  // namespace millrace::detail::commands
