#include "records.hpp"

#include <fmt/core.h>

#include <utility>

namespace pipeline {
namespace {

using millrace::OwnedFields;

/// The lines of a text, one after the other, with their numbers.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_{text} {}

  bool next() {
    if (rest_.empty()) return false;
    const auto end = rest_.find('\n');
    line_ = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    ++number_;
    return true;
  }

  std::string_view line() const { return line_; }
  std::size_t number() const { return number_; }
  bool is_blank() const { return line_.find_first_not_of(" \t\r") == std::string_view::npos; }
  bool is_continuation() const { return line_.starts_with(' ') || line_.starts_with('\t'); }

  bool has_room_after_colon() const {
    const auto after = line_.find(':') + 1;
    return after == line_.size() || line_[after] == ' ';
  }

  /// Name and value of a line that begins a field; nullopt if it does not. A name has no spaces.
  std::optional<millrace::Field> field() const {
    const auto colon = line_.find(':');
    if (colon == 0 || colon == std::string_view::npos) return std::nullopt;
    if (line_.substr(0, colon).find_first_of(" \t") != std::string_view::npos) return std::nullopt;
    auto value = line_.substr(colon + 1);
    if (value.starts_with(' ')) value.remove_prefix(1);
    return millrace::Field{line_.substr(0, colon), value};
  }

 private:
  std::string_view rest_;
  std::string_view line_{};
  std::size_t number_ = 0;
};

/// True if the first paragraph has two lines or more, all of which a paragraph may have. Stricter
/// than the parser, for `error: no such file` and `root:x:0:0` are lines as well.
bool looks_like_paragraphs(std::string_view text) {
  Lines lines{text};
  std::size_t seen = 0;
  while (lines.next()) {
    if (lines.is_blank() && seen == 0) continue;
    if (lines.is_blank()) break;
    const bool fits =
        (lines.field() && lines.has_room_after_colon()) || (seen > 0 && lines.is_continuation());
    if (!fits) return false;
    ++seen;
  }
  return seen >= 2;
}

std::vector<OwnedFields> parse_lines(std::string_view text) {
  std::vector<OwnedFields> records;
  for (Lines lines{text}; lines.next();) {
    if (!lines.is_blank()) records.push_back({{"line", std::string{lines.line()}}});
  }
  return records;
}

std::vector<OwnedFields> parse_paragraphs(std::string_view text) {
  std::vector<OwnedFields> records;
  OwnedFields record;
  const auto finish = [&] {
    if (!record.empty()) records.push_back(std::exchange(record, {}));
  };

  for (Lines lines{text}; lines.next();) {
    if (lines.is_blank()) {
      finish();
    } else if (lines.is_continuation() && !record.empty()) {
      record.back().second.append("\n").append(lines.line());
    } else if (const auto field = lines.field()) {
      record.emplace_back(field->first, field->second);
    } else {
      throw BadInput{fmt::format("line {} is neither 'Name: value', nor the continuation of one",
                                 lines.number())};
    }
  }
  finish();
  return records;
}

}  // namespace

std::vector<OwnedFields> parse_records(std::string_view text, Format format) {
  if (format == Format::kAuto) {
    format = looks_like_paragraphs(text) ? Format::kParagraphs : Format::kLines;
  }
  return format == Format::kParagraphs ? parse_paragraphs(text) : parse_lines(text);
}

}  // namespace pipeline
