#include "examples/histgbt/model.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace warren::histgbt {
namespace {

using Json = nlohmann::ordered_json;

/// XGBoost's value for the parent of the root.
constexpr std::int32_t kNoParent = std::numeric_limits<std::int32_t>::max();

Json TreeToJson(const Tree& tree, std::size_t id, std::size_t num_features) {
  Json json;
  for (const Node& node : tree.nodes) {
    json["base_weights"].push_back(node.weight);
    json["default_left"].push_back(node.default_left);
    json["left_children"].push_back(node.left);
    json["right_children"].push_back(node.right);
    json["parents"].push_back(node.parent < 0 ? kNoParent : node.parent);
    json["loss_changes"].push_back(node.gain);
    json["sum_hessian"].push_back(node.hessian);
    json["split_conditions"].push_back(node.is_leaf() ? node.weight : node.threshold);
    json["split_indices"].push_back(node.feature);
    json["split_type"].push_back(0);
  }
  for (const char* const name :
       {"categories", "categories_nodes", "categories_segments", "categories_sizes"}) {
    json[name] = Json::array();
  }
  json["id"] = id;
  json["tree_param"] = {{"num_deleted", "0"},
                        {"num_feature", std::to_string(num_features)},
                        {"num_nodes", std::to_string(tree.nodes.size())},
                        {"size_leaf_vector", "0"}};
  return json;
}

Json ObjectiveToJson(const Model& model) {
  Json json = {{"name", model.objective}};
  if (model.num_class > 0) {
    json["softmax_multiclass_param"] = {{"num_class", std::to_string(model.num_class)}};
  } else {
    json["reg_loss_param"] = {{"scale_pos_weight", "1"}};
  }
  return json;
}

}  // namespace

std::string ToXgboostJson(const Model& model, const Attributes& attributes) {
  Json trees = Json::array();
  Json classes = Json::array();
  for (std::size_t id = 0; id < model.trees.size(); ++id) {
    trees.push_back(TreeToJson(model.trees[id], id, model.num_features));
    classes.push_back(static_cast<int>(id % static_cast<std::size_t>(model.trees_per_round())));
  }
  Json booster;
  booster["name"] = "gbtree";
  booster["model"]["gbtree_model_param"] = {{"num_parallel_tree", "1"},
                                            {"num_trees", std::to_string(model.trees.size())},
                                            {"size_leaf_vector", "0"}};
  booster["model"]["tree_info"] = std::move(classes);
  booster["model"]["trees"] = std::move(trees);

  Json learner;
  learner["attributes"] = Json::object();
  for (const auto& [name, value] : attributes) learner["attributes"][name] = value;
  learner["feature_names"] = Json::array();
  learner["feature_types"] = Json::array();
  learner["gradient_booster"] = std::move(booster);
  learner["learner_model_param"] = {{"base_score", fmt::format("{}", model.base_score)},
                                    {"num_class", std::to_string(model.num_class)},
                                    {"num_feature", std::to_string(model.num_features)},
                                    {"num_target", "1"}};
  learner["objective"] = ObjectiveToJson(model);
  Json json;
  json["learner"] = std::move(learner);
  json["version"] = {1, 7, 4};
  return json.dump();
}

}  // namespace warren::histgbt
