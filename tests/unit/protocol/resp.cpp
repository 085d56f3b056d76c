#include "resp.hpp"

#include <cstdlib>
#include <stdexcept>

namespace millrace::detail {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view wire) : left_{wire} {}

  Reply parse() {
    element(0);
    if (!left_.empty()) throw std::invalid_argument{"bytes behind the reply"};
    return std::move(reply_);
  }

 private:
  std::string_view take(std::size_t size) {
    if (left_.size() < size) throw std::invalid_argument{"the reply ends early"};
    const std::string_view taken = left_.substr(0, size);
    left_.remove_prefix(size);
    return taken;
  }

  std::string_view line() {
    const auto end = left_.find("\r\n");
    if (end == std::string_view::npos) throw std::invalid_argument{"a line without an end"};
    const std::string_view taken = take(end);
    take(2);
    return taken;
  }

  static long long number(std::string_view digits) { return std::stoll(std::string{digits}); }

  void bulk(std::string_view size, Reply::Handle parent) {
    if (size == "-1") {
      reply_.add_nil(parent);
      return;
    }
    const std::string_view text = take(static_cast<std::size_t>(number(size)));
    if (take(2) != "\r\n") throw std::invalid_argument{"a string without an end"};
    reply_.add_text(ReplyKind::kString, text, parent);
  }

  void aggregate(ReplyKind kind, std::string_view size, std::size_t times, Reply::Handle parent) {
    if (size == "-1") {
      reply_.add_nil(parent);
      return;
    }
    const std::size_t elements = static_cast<std::size_t>(number(size)) * times;
    const Reply::Handle handle = reply_.add_aggregate(kind, elements, parent);
    for (std::size_t i = 0; i < elements; ++i) element(handle);
  }

  void element(Reply::Handle parent) {
    const char type = take(1)[0];
    const std::string_view rest = line();
    switch (type) {
      case '+':
        reply_.add_text(ReplyKind::kStatus, rest, parent);
        break;
      case '-':
        reply_.add_text(ReplyKind::kError, rest, parent);
        break;
      case ':':
        reply_.add_integer(ReplyKind::kInteger, number(rest), parent);
        break;
      case '#':
        reply_.add_integer(ReplyKind::kBool, rest == "t" ? 1 : 0, parent);
        break;
      case ',':
        reply_.add_text(ReplyKind::kDouble, rest, parent);
        break;
      case '_':
        reply_.add_nil(parent);
        break;
      case '$':
        bulk(rest, parent);
        break;
      case '*':
      case '~':
        aggregate(ReplyKind::kArray, rest, 1, parent);
        break;
      case '%':
        aggregate(ReplyKind::kMap, rest, 2, parent);
        break;
      case '>':
        aggregate(ReplyKind::kPush, rest, 1, parent);
        break;
      default:
        throw std::invalid_argument{"an unknown type"};
    }
  }

  std::string_view left_;
  Reply reply_;
};

}  // namespace

Reply resp(std::string_view wire) { return Parser{wire}.parse(); }

std::string wire(std::initializer_list<std::string_view> words) {
  std::string bytes = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string_view word : words) {
    bytes.append("$")
        .append(std::to_string(word.size()))
        .append("\r\n")
        .append(word)
        .append("\r\n");
  }
  return bytes;
}

}  // namespace millrace::detail
