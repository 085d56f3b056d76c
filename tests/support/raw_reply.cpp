#include "support/raw_reply.hpp"

#include <cctype>
#include <cstdio>
#include <ostream>
#include <stdexcept>

namespace millrace::test {

namespace {

constexpr std::string_view kAnyRest = "…";

void append_printable(std::string& out, std::string_view bytes) {
  for (const char byte : bytes) {
    const auto code = static_cast<unsigned char>(byte);
    if (std::isprint(code) != 0) {
      out += byte;
    } else {
      char hex[5];
      std::snprintf(hex, sizeof hex, "\\x%02x", code);
      out += hex;
    }
  }
}

void append(std::string& out, const RawReply& reply);

void append_elements(std::string& out, const RawReply& reply) {
  const bool is_map = reply.type == '%';
  out += reply.type;
  out += std::to_string(is_map ? reply.elements.size() / 2 : reply.elements.size());
  out += is_map ? '{' : '[';
  for (std::size_t i = 0; i < reply.elements.size(); ++i) {
    if (is_map && i % 2 == 1) {
      out += '=';
    } else if (i > 0) {
      out += is_map ? ", " : " ";
    }
    append(out, reply.elements[i]);
  }
  out += is_map ? '}' : ']';
}

void append(std::string& out, const RawReply& reply) {
  switch (reply.type) {
    case '_':
      out += '_';
      break;
    case '$':
      if (reply.null) {
        out += "$-1";
      } else {
        out += '"';
        append_printable(out, reply.text);
        out += '"';
      }
      break;
    case '*':
    case '%':
    case '~':
    case '>':
      if (reply.null) {
        out += "*-1";
      } else {
        append_elements(out, reply);
      }
      break;
    default:
      out += reply.type;
      append_printable(out, reply.text);
  }
}

}  // namespace

std::string RawReply::str() const {
  std::string out;
  append(out, *this);
  return out;
}

const RawReply& RawReply::field(std::string_view name) const {
  for (std::size_t i = 0; i + 1 < elements.size(); i += 2) {
    if (elements[i].text == name) return elements[i + 1];
  }
  throw std::out_of_range("no field " + std::string{name} + " in " + str());
}

bool operator==(const RawReply& reply, std::string_view expected) {
  const std::string text = reply.str();
  if (!expected.ends_with(kAnyRest)) return text == expected;
  return text.starts_with(expected.substr(0, expected.size() - kAnyRest.size()));
}

std::ostream& operator<<(std::ostream& out, const RawReply& reply) { return out << reply.str(); }

}  // namespace millrace::test
