// Generates the JSON Schema of job files from the option table.
#include "submit/options/help.h"
#include "submit/options/value_hint.h"
#include "submit/options/yaml_text.h"

namespace warren::submit {
namespace {

/// The type of values that are read as text, exactly as written.
Json TextType() {
  return {{"type", {"string", "number"}}};
}

Json ChoiceType(const ValueHint& hint) {
  Json choices = hint.choices;
  // YAML 1.1 reads the words on and off as true and false.
  if (hint.choices == std::vector<std::string>{"on", "off"}) choices.insert(choices.end(), {true, false});
  Json type = {{"enum", choices}};
  if (hint.is_open) return {{"anyOf", {type, TextType()}}};
  return type;
}

/// The type of one value of the option.
Json TypeOf(const Option& option) {
  const ValueHint hint = HintFor(option);
  switch (hint.kind) {
    case ValueKind::kFlag:
      if (option.value_is_optional) return {{"type", {"boolean", "integer", "string"}}};
      return {{"type", "boolean"}};
    case ValueKind::kInteger:
      if (option.other_form.empty()) return {{"type", "integer"}};
      return {{"anyOf", {{{"type", "integer"}}, {{"type", "string"}, {"pattern", option.other_form}}}}};
    case ValueKind::kNumber:
      return {{"type", "number"}};
    case ValueKind::kChoice:
      return ChoiceType(hint);
    case ValueKind::kFile:
    case ValueKind::kDirectory:
    case ValueKind::kProgram:
    case ValueKind::kAny:
      break;
  }
  return TextType();
}

/// The type of the option in a job file: one value or, for repeatable options, also a list or (TakesMap) a
/// map of values.
Json TypeInJobFile(const Option& option) {
  if (!option.repeatable) return TypeOf(option);
  Json forms = {TypeOf(option), {{"type", "array"}, {"items", TypeOf(option)}}};
  if (TakesMap(option)) {
    forms.push_back(
        {{"type", "object"}, {"additionalProperties", {{"type", {"string", "number", "boolean"}}}}});
  }
  return {{"anyOf", forms}};
}

}  // namespace

std::string HelpSchema(const OptionTable& table) {
  Json properties = Json::object();
  for (const Option& option : table.rows()) {
    if (option.only_on_command_line) continue;
    Json& property = properties[std::string(option.name.substr(2))];
    property = {{"description", HelpWithDefault(option)}};
    property.update(TypeInJobFile(option));
  }
  properties["command"] = {
      {"description",
       "The command: a list of words, or one text that is split into words as a shell does, with quotes and \\ but without expansions."},
      {"anyOf",
       {{{"type", "string"}},
        {{"type", "array"}, {"items", {{"type", {"string", "number", "boolean"}}}}, {"minItems", 1}}}}};
  const Json schema = {
      {"$schema", "https://json-schema.org/draft/2020-12/schema"},
      {"title", "Job file of dmlc-submit"},
      {"description",
       "Written by dmlc-submit --help-schema. dmlc-submit also accepts other_names, with underscores, and the options' other long names."},
      {"type", "object"},
      {"additionalProperties", false},
      {"properties", properties}};
  return schema.dump(2) + '\n';
}

}  // namespace warren::submit
