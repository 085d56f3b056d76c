#pragma once

#include <millrace/fields.hpp>

#include <cstddef>
#include <istream>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace pipeline {

/// What the input is made of.
enum class Format {
  kAuto,        ///< Paragraphs if its first one looks like it, else lines.
  kLines,       ///< Each line is a record with one field, `line`.
  kParagraphs,  ///< Records are divided by blank lines; see parse_records().
};

/// The input is not what it should be. The message has the line's number.
struct BadInput : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The records of `text`, one a list of fields. Blank lines are no records.
///
/// A paragraph has a field a line, `Name: value`. A line that begins with a space or a tab
/// continues the value above: it is kept as it is, after a newline. So no byte of a value is lost.
std::vector<millrace::OwnedFields> parse_records(std::string_view text, Format format);

}  // namespace pipeline
