// SPDX-License-Identifier: Apache-2.0
#include "cli/options.h"

#include <CLI/CLI.hpp>
#include <charconv>

#include "base/bytes.h"
#include "base/error.h"
#include "cli/help.h"

namespace hcomm::cli {

namespace {

// The deepest subcommand that was named: whose --help to point at.
const CLI::App& named_app(const CLI::App& app) {
  for (const CLI::App* sub : app.get_subcommands()) return named_app(*sub);
  return app;
}

std::string full_name(const CLI::App& app) {
  if (app.get_parent() == nullptr) return app.get_name();
  return full_name(*app.get_parent()) + " " + app.get_name();
}

// An option that nobody knows, wherever it stands.
std::optional<std::string> unknown_option(const CLI::App& app) {
  for (const std::string& text : app.remaining(true))
    if (text.size() > 1 && text.starts_with('-') && text != "--") return text;
  return std::nullopt;
}

std::string describe_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& where = named_app(app);
  if (const auto unknown = unknown_option(app)) {
    const std::string bare = unknown->substr(0, unknown->find('='));
    std::vector<std::string> known;
    for (const HelpOption& option : options_of(where))
      for (const std::string& name : option.names) known.push_back(name);
    return fmt::format("unknown option {}{}", bare, did_you_mean(bare, known));
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    const std::string text = error.what();  // "--iters: 1 required N missing"
    const size_t start = text.find(": 1 required "), end = text.rfind(" missing");
    if (start != std::string::npos && end != std::string::npos && start + 13 < end)
      return fmt::format("{} needs a value: {}", text.substr(0, start),
                         text.substr(start + 13, end - start - 13));
  }
  const auto rest = app.remaining(true);
  if (dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr || rest.empty()) return error.what();
  std::vector<std::string> known;
  for (const CLI::App* sub : where.get_subcommands([](const CLI::App*) { return true; }))
    known.push_back(sub->get_name());
  if (known.empty()) return fmt::format("unexpected argument '{}'", rest.front());
  return fmt::format("unknown command '{}'{}", rest.front(), did_you_mean(rest.front(), known));
}

}  // namespace

CLI::Option* add_value(CLI::App& app, const OptionSpec& spec,
                       std::function<void(const std::string&)> set) {
  const std::string name = spec.names.substr(spec.names.rfind(',') + 1);
  auto apply = [set = std::move(set), name, value = spec.value, &app](const std::string& text) {
    if (text.starts_with("-") && app.get_option_no_throw(text) != nullptr)
      throw CLI::ValidationError(fmt::format("{} needs a value: {}", name, value));
    try {
      set(text);
    } catch (const CLI::Error&) {
      throw;
    } catch (const std::exception& error) {
      throw CLI::ValidationError(name, error.what());
    }
  };
  return app.add_option_function<std::string>(spec.names, apply, spec.doc)
      ->type_name(spec.value)
      ->group(spec.group)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

CLI::Option* add_choice(CLI::App& app, const OptionSpec& spec, std::string& into) {
  const std::vector<std::string> choices = CLI::detail::split(spec.value, '|');
  return add_value(app, spec, [choices, &into](const std::string& text) {
    for (const std::string& choice : choices)
      if (choice == text) {
        into = text;
        return;
      }
    fail(Code::invalid_argument, "'{}' is not one of {}{}", text, fmt::join(choices, ", "),
         did_you_mean(text, choices));
  });
}

CLI::Option* add_switch(CLI::App& app, const OptionSpec& spec, bool& into) {
  return app.add_flag(spec.names, into, spec.doc)->group(spec.group);
}

void add_formats(CLI::App& app, const OptionSpec& spec, std::string& into) {
  std::vector<CLI::Option*> formats = {add_choice(app, spec, into)};
  for (const std::string& name : CLI::detail::split(spec.value, '|')) {
    if (name == "table") continue;
    CLI::Option* flag = app.add_flag_callback(
        "--" + name, [&into, name] { into = name; }, "short for " + spec.names + " " + name);
    flag->group(spec.group);
    for (CLI::Option* other : formats) flag->excludes(other);
    formats.push_back(flag);
  }
}

void add_common(CLI::App& app, Common& common, const std::string& version) {
  static const std::string kGroup = "General";
  app.set_help_flag("-h,--help", "print this help and exit")->group(kGroup);
  app.set_version_flag("--version", version, "print the version and exit")->group(kGroup);
  add_switch(app, {"-q,--quiet", "", "results and errors only", kGroup}, common.quiet);
  app.add_flag(
         "-v,--verbose", [&common](int64_t count) { common.verbosity = static_cast<int>(count); },
         "say more; may be repeated")
      ->group(kGroup);
  add_value(app, {"--color", "auto|always|never", "colour on a terminal", kGroup},
            [&common](const std::string& text) {
              if (text == "auto")
                common.color = ColorMode::automatic;
              else if (text == "always")
                common.color = ColorMode::always;
              else if (text == "never")
                common.color = ColorMode::never;
              else
                fail(Code::invalid_argument, "'{}' is not one of auto, always, never", text);
            });
}

std::optional<int> parse(CLI::App& app, int argc, const char* const* argv, Voice voice) {
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    return voice == Voice::silent || show(help_text(named_app(app))) ? kDone : kCannotRun;
  } catch (const CLI::CallForVersion& version) {
    const std::string text = version.what();
    return voice == Voice::silent || show(text + "\n") ? kDone : kCannotRun;
  } catch (const CLI::ParseError& error) {
    if (voice == Voice::silent) return kUsage;
    complain(fmt::format("{}: {}", app.get_name(), describe_error(app, error)));
    complain(fmt::format("Try '{} --help'.", full_name(named_app(app))));
    return kUsage;
  }
}

int64_t parse_number(std::string_view text, int64_t least, int64_t most) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    fail(Code::invalid_argument, "'{}' is not a whole number", text);
  if (value < least || value > most)
    fail(Code::invalid_argument, "{} is not within {} to {}", text, least, most);
  return value;
}

double parse_percent(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view rest = text.substr(static_cast<size_t>(end - text.data()));
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  if (error != std::errc{} || (!rest.empty() && rest != "%") || !(value >= 0 && value <= 1e6))
    fail(Code::invalid_argument, "'{}' is not a percentage", text);
  return value / 100;
}

std::string did_you_mean(std::string_view text, const std::vector<std::string>& known) {
  std::vector<std::string_view> views(known.begin(), known.end());
  const std::string near = nearest(text, views.data(), views.size());
  return near.empty() ? std::string() : fmt::format("; did you mean {}?", near);
}

int guarded(std::string_view tool, const std::function<int()>& body) {
  try {
    return body();
  } catch (const Error& error) {
    complain(fmt::format("{}: {}", tool, error.text()));
    if (error.code() == Code::invalid_argument) return kUsage;
    return error.code() == Code::timeout ? kHang : kCannotRun;
  } catch (const std::exception& error) {
    complain(fmt::format("{}: {}", tool, error.what()));
    return kCannotRun;
  }
}

}  // namespace hcomm::cli
