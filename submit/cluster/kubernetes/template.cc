#include "submit/cluster/kubernetes/template.h"

#include <fmt/format.h>

#include <stdexcept>

#include "submit/options/options.h"

namespace warren::submit {
namespace {

/// The member `key` of `object`; nullptr if it is missing or null. A null member is removed. Throws
/// UsageError if the member is not an object.
Json* Section(Json& object, const char* key, const std::string& path) {
  const auto found = object.find(key);
  if (found == object.end()) return nullptr;
  if (found->is_null()) {
    object.erase(key);
    return nullptr;
  }
  if (!found->is_object()) throw UsageError(fmt::format("'{}': {} must be an object", path, key));
  return &*found;
}

struct Template {
  Json whole;
  bool is_job = false;
};

/// Reads a template file, and removes the names and the namespace of the object. Throws UsageError if the
/// file cannot be read, if it is not a Job, a Pod or a pod template, or if one of its sections is not an
/// object.
Template ReadTemplate(const std::string& path) {
  Template result;
  try {
    result.whole = ReadYamlFile(path);
  } catch (const std::runtime_error& error) {
    throw UsageError(fmt::format("Kubernetes template: {}", error.what()));
  }
  Json& whole = result.whole;
  const auto found = whole.find("kind");
  const std::string kind = found == whole.end() ? ""
                           : found->is_string() ? found->get<std::string>()
                                                : found->dump();
  if (!kind.empty() && kind != "Job" && kind != "Pod") {
    throw UsageError(fmt::format("'{}' is a {}; expected a Job or a Pod", path, kind));
  }
  Section(whole, "metadata", path);  // first: removing a null member moves the members after it
  Json* const spec = Section(whole, "spec", path);
  Json* pod = &whole;
  if (spec != nullptr && (kind == "Job" || spec->contains("template"))) {
    pod = Section(*spec, "template", path);
    result.is_job = true;
    if (pod != nullptr) Section(*pod, "metadata", path);
  } else if (kind == "Job") {
    result.is_job = true;
    pod = nullptr;
  } else if (spec == nullptr && !whole.contains("metadata")) {
    throw UsageError(
        fmt::format("'{}' is not a template: expected a Job, a Pod, or a pod's metadata and spec", path));
  }
  Json* const pod_spec = pod == nullptr ? nullptr : Section(*pod, "spec", path);
  if (pod_spec != nullptr && pod_spec->contains("containers") && !(*pod_spec)["containers"].is_array()) {
    throw UsageError(fmt::format("'{}': containers must be a list", path));
  }
  // dmlc-submit chooses the names of objects.
  for (const char* const key : {"name", "generateName", "namespace"}) {
    if (whole.contains("metadata")) whole["metadata"].erase(key);
  }
  return result;
}

/// The pod template of a Job; an empty object if it has none.
Json TemplateOf(const Json& job) {
  return job.contains("spec") && job["spec"].contains("template") ? job["spec"]["template"] : Json::object();
}

}  // namespace

void ApplyTemplate(Json& job, const std::string& path, const std::string& container) {
  auto [added, is_job] = ReadTemplate(path);
  Json& pod = is_job ? added["spec"]["template"] : added;
  if (pod.is_object() && pod.contains("spec") && pod["spec"].contains("containers")) {
    for (Json& one : pod["spec"]["containers"]) {
      if (one.is_object() && !one.contains("name")) one["name"] = container;
    }
  }
  if (is_job) {
    if (pod.is_null()) added["spec"].erase("template");
    MergeInto(job, added);
    return;
  }
  added.erase("apiVersion");
  added.erase("kind");
  MergeInto(job["spec"]["template"], added);
}

void ApplyAdmission(Json& job, const std::string& path) {
  auto [added, is_job] = ReadTemplate(path);
  const Json pod = is_job ? TemplateOf(added) : added;
  if (!pod.contains("spec")) return;
  for (const char* const key : {"imagePullSecrets", "serviceAccountName", "securityContext"}) {
    if (pod["spec"].contains(key)) MergeInto(job["spec"]["template"]["spec"], {{key, pod["spec"][key]}});
  }
}

}  // namespace warren::submit
