#include <millrace/connection.hpp>
#include <millrace/error.hpp>

#include "core/printable.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

// Messages name a part of the URI and say what is wrong with it, but show its text only where it
// cannot be a piece of a password that was cut up by a reserved character: names of options, and
// values of options that were recognised.

namespace millrace {
namespace {

using detail::printable;
using std::chrono::milliseconds;

[[noreturn]] void refuse(std::string_view what) {
  throw InvalidArgument{fmt::format("bad URI: {}", what)};
}

/// Splits `text` at the first `separator`, which it drops; what comes after it is empty if there is
/// none.
std::pair<std::string_view, std::string_view> cut(std::string_view text, char separator) {
  const auto at = text.find(separator);
  if (at == std::string_view::npos) return {text, {}};
  return {text.substr(0, at), text.substr(at + 1)};
}

std::optional<unsigned char> hex_byte(std::string_view digits) {
  unsigned char byte = 0;
  const auto* const last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, byte, 16);
  if (digits.size() != 2 || error != std::errc{} || end != last) return std::nullopt;
  return byte;
}

std::string decode(std::string_view text, std::string_view part) {
  std::string decoded;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      decoded.push_back(text[at]);
      continue;
    }
    const auto byte = hex_byte(text.substr(at + 1, 2));
    if (!byte) {
      refuse(fmt::format("the {} has a '%' that two hex digits do not follow; '%' itself is %25",
                         part));
    }
    decoded.push_back(static_cast<char>(*byte));
    at += 2;
  }
  return decoded;
}

template <std::integral Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number = 0;
  const auto* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (error != std::errc{} || end != last || text.starts_with('-')) return std::nullopt;
  return number;
}

/// What stands where in the text; nothing is decoded.
struct Parts {
  std::string_view userinfo{};
  bool has_userinfo = false;
  std::string_view place{};  ///< Host and port.
  std::string_view path{};   ///< With its slash.
  std::string_view query{};
};

Parts split(std::string_view text) {
  if (text.find('#') != std::string_view::npos) {
    refuse("it has a '#', which has to be percent-encoded (%23)");
  }
  const auto authority_end = std::min(text.find_first_of("/?"), text.size());
  const auto authority = text.substr(0, authority_end);
  const auto rest = text.substr(authority_end);
  if (rest.find('@') != std::string_view::npos) {
    refuse(
        "it has an '@' after the host; in a user or password '/' has to be percent-encoded (%2F) "
        "and '?' too (%3F), and elsewhere '@' (%40)");
  }
  Parts parts;
  const auto at = authority.rfind('@');
  parts.has_userinfo = at != std::string_view::npos;
  if (parts.has_userinfo) parts.userinfo = authority.substr(0, at);
  parts.place = parts.has_userinfo ? authority.substr(at + 1) : authority;
  std::tie(parts.path, parts.query) = cut(rest, '?');
  return parts;
}

void read_userinfo(const Parts& parts, ConnectionOptions& options) {
  if (!parts.has_userinfo) return;
  const auto [user, password] = cut(parts.userinfo, ':');
  if (user.size() == parts.userinfo.size()) {
    refuse("what comes before '@' has no ':'; it has to be user:password@ or :password@");
  }
  options.username = decode(user, "user");
  options.password = decode(password, "password");
  if (options.password.empty()) refuse("the password before '@' is empty");
}

void read_host(std::string_view place, ConnectionOptions& options) {
  std::string_view host;
  std::string_view after_host;
  if (place.starts_with('[')) {
    const auto close = place.find(']');
    if (close == std::string_view::npos) refuse("the host has '[' without ']'");
    host = place.substr(1, close - 1);
    after_host = place.substr(close + 1);
  } else {
    if (std::count(place.begin(), place.end(), ':') > 1) {
      refuse("the host and port have too many ':'; an IPv6 address goes in brackets");
    }
    const auto colon = std::min(place.find(':'), place.size());
    host = place.substr(0, colon);
    after_host = place.substr(colon);
  }
  options.host = decode(host, "host");
  if (options.host.empty()) refuse("the host is empty");
  if (after_host.empty()) return;
  if (!after_host.starts_with(':')) refuse("something other than a port follows the host");
  const auto port = parse_number<std::uint16_t>(after_host.substr(1));
  if (!port || *port == 0) refuse("the port is not a number from 1 to 65535");
  options.port = *port;
}

/// One `name=value` of the query, decoded.
struct Option {
  std::string name;
  std::string value;

  template <typename Value>
  const Value& need(const std::optional<Value>& parsed, std::string_view rule) const {
    if (parsed) return *parsed;
    refuse(fmt::format("option {} is '{}': it has to be {}", name, printable(value), rule));
  }
};

std::uint32_t read_database(const Option& option) {
  return option.need(parse_number<std::uint32_t>(option.value), "the number of a database");
}

milliseconds read_duration(const Option& option) {
  std::string_view digits = option.value;
  milliseconds::rep unit = 1;
  if (digits.ends_with("ms")) {
    digits.remove_suffix(2);
  } else if (digits.ends_with('s')) {
    digits.remove_suffix(1);
    unit = 1'000;
  }
  auto count = parse_number<milliseconds::rep>(digits);
  if (count && *count > milliseconds::max().count() / unit) count.reset();
  return milliseconds{option.need(count, "a time such as 500ms, 2s or 500 (milliseconds)") * unit};
}

int read_resp_version(const Option& option) {
  return option.need(parse_number<int>(option.value), "2 or 3");
}

struct Known {
  std::string_view name;
  void (*read)(const Option& option, ConnectionOptions& options);
};

constexpr std::array kKnown{
    Known{"db",
          [](const Option& from, ConnectionOptions& to) { to.database = read_database(from); }},
    Known{"client_name",
          [](const Option& from, ConnectionOptions& to) { to.client_name = from.value; }},
    Known{"connect_timeout",
          [](const Option& from, ConnectionOptions& to) {
            to.connect_timeout = read_duration(from);
          }},
    Known{"command_timeout",
          [](const Option& from, ConnectionOptions& to) {
            to.command_timeout = read_duration(from);
          }},
    Known{"tcp_keepalive", [](const Option& from,
                              ConnectionOptions& to) { to.tcp_keepalive = read_duration(from); }},
    Known{"resp_version", [](const Option& from,
                             ConnectionOptions& to) { to.resp_version = read_resp_version(from); }},
};

std::string known_names() {
  std::string names;
  for (const auto& known : kKnown) {
    if (!names.empty()) names += ", ";
    names += known.name;
  }
  return names;
}

/// Reads all options; the names that were given, once each.
std::vector<std::string> read_query(std::string_view query, ConnectionOptions& options) {
  std::vector<std::string> given;
  while (!query.empty()) {
    const auto [text, rest] = cut(query, '&');
    const auto [raw_name, raw_value] = cut(text, '=');
    const Option option{.name = decode(raw_name, "name of an option"),
                        .value = decode(raw_value, "value of an option")};
    const auto known = std::find_if(kKnown.begin(), kKnown.end(),
                                    [&](const Known& each) { return each.name == option.name; });
    if (known == kKnown.end()) {
      refuse(fmt::format("there is no option '{}'; there are {}", printable(option.name),
                         known_names()));
    }
    if (option.value.empty()) refuse(fmt::format("option {} has no value", option.name));
    if (std::find(given.begin(), given.end(), option.name) != given.end()) {
      refuse(fmt::format("option {} is given twice", option.name));
    }
    known->read(option, options);
    given.push_back(option.name);
    query = rest;
  }
  return given;
}

ConnectionOptions read_redis(const Parts& parts) {
  ConnectionOptions options;
  read_userinfo(parts, options);
  read_host(parts.place, options);
  const auto given = read_query(parts.query, options);
  const auto database = parts.path.substr(std::min<std::size_t>(1, parts.path.size()));
  if (!database.empty()) {
    if (std::find(given.begin(), given.end(), "db") != given.end()) {
      refuse("the database is given twice: as the path, and as option db");
    }
    const auto number = parse_number<std::uint32_t>(database);
    if (!number) refuse("the path is not the number of a database");
    options.database = *number;
  }
  return options;
}

ConnectionOptions read_unix(const Parts& parts) {
  ConnectionOptions options;
  read_userinfo(parts, options);
  if (!parts.place.empty())
    refuse("unix:// has a host: the path has to follow, as in unix:///path");
  options.unix_socket = decode(parts.path, "path");
  if (options.unix_socket.size() < 2) refuse("unix:// has no path to a socket");
  read_query(parts.query, options);
  return options;
}

struct Scheme {
  std::string_view name;
  ConnectionOptions (*read)(const Parts& parts);
  std::string_view lacking;  ///< What this build does not have for it.
};

constexpr std::array kSchemes{
    Scheme{"redis", read_redis, {}},
    Scheme{"unix", read_unix, {}},
    Scheme{"rediss", nullptr, "TLS"},
    Scheme{"redis+sentinel", nullptr, "Sentinel"},
    Scheme{"rediss+sentinel", nullptr, "Sentinel"},
    Scheme{"redis+cluster", nullptr, "Cluster"},
    Scheme{"rediss+cluster", nullptr, "Cluster"},
};

bool is_same_ignoring_case(std::string_view left, std::string_view right) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [&](char a, char b) { return lower(a) == lower(b); });
}

}  // namespace

ConnectionOptions ConnectionOptions::from_uri(std::string_view uri) {
  constexpr std::string_view kMark = "://";
  const auto mark = uri.find(kMark);
  const auto scheme = std::find_if(kSchemes.begin(), kSchemes.end(), [&](const Scheme& each) {
    return mark != std::string_view::npos && is_same_ignoring_case(each.name, uri.substr(0, mark));
  });
  if (scheme == kSchemes.end()) {
    refuse("its scheme is missing or unknown: it has to begin with redis:// or unix://");
  }
  if (scheme->read == nullptr) {
    throw UnsupportedError{fmt::format("{}:// needs {}, which this build of millrace does not have",
                                       scheme->name, scheme->lacking)};
  }
  return scheme->read(split(uri.substr(mark + kMark.size())));
}

}  // namespace millrace
