# Idioms of scripts for XGBoost 0.7 to 1.2. Each prints a line if it still works as it did then. This script contains nothing specific to
# Warren or to newer versions. Arguments: a LibSVM file with labels 0 and 1, and a folder to write to.
import importlib.util
import os
import pickle
import sys

import numpy as np

assert importlib.util.find_spec('xgboost')  # a script that also works without XGBoost looks for it first
import xgboost as xgb

path, folder = sys.argv[1], sys.argv[2]
dtrain = xgb.DMatrix(path, silent=True)
dtest = xgb.DMatrix(path)
watchlist = [(dtest, 'eval'), (dtrain, 'train')]
param = {'max_depth': 2, 'eta': 1, 'silent': 1, 'objective': 'binary:logistic'}
labels = dtrain.get_label()


def logregobj(preds, dtrain):
    labels = dtrain.get_label()
    preds = 1.0 / (1.0 + np.exp(-preds))
    return preds - labels, preds * (1.0 - preds)


def evalerror(preds, dtrain):
    return 'my-error', float(sum(dtrain.get_label() != (preds > 0.0))) / len(preds)


def higher_is_better(preds, dtrain):
    return 'fraction', float(np.mean((preds > 0.0) == (dtrain.get_label() > 0.5)))


def margin_seen(preds, dtrain):
    return [('lowest', float(preds.min())), ('highest', float(preds.max()))]


def idiom_objective_and_feval_by_position():
    result = {}
    bst = xgb.train({'max_depth': 2, 'eta': 1}, dtrain, 3, watchlist, logregobj, evalerror, evals_result=result)
    expected = np.mean((bst.predict(dtrain, output_margin=True) > 0) != (labels > 0.5))
    assert abs(result['train']['my-error'][-1] - expected) < 1e-5, result


def idiom_feval_of_a_list_gets_margins():
    result = {}
    bst = xgb.train(param, dtrain, 3, watchlist, feval=margin_seen, evals_result=result, verbose_eval=False)
    margins = bst.predict(dtrain, output_margin=True)
    assert abs(result['train']['lowest'][-1] - margins.min()) < 1e-5 and margins.min() < 0, result
    assert abs(result['train']['highest'][-1] - margins.max()) < 1e-5, result


def idiom_early_stopping_and_maximize():
    bst = xgb.train(param, dtrain, 30, watchlist, feval=higher_is_better, maximize=True, early_stopping_rounds=3,
                    verbose_eval=10)
    assert bst.best_iteration < 29 and bst.best_ntree_limit == bst.best_iteration + 1, bst.best_iteration
    best = higher_is_better(bst.predict(dtest, output_margin=True, ntree_limit=bst.best_ntree_limit), dtest)[1]
    assert abs(bst.best_score - best) < 1e-5, (bst.best_score, best)
    # A higher AUC is better, with any value of `maximize`.
    bst = xgb.train(dict(param, eval_metric='auc'), dtrain, 30, watchlist, maximize=False, early_stopping_rounds=3)
    assert bst.best_score > 0.9


def idiom_ntree_limit():
    bst = xgb.train(dict(param, num_parallel_tree=3, subsample=0.7), dtrain, 4)
    assert bst.best_ntree_limit == 12 and bst.best_iteration == 3
    whole = bst.predict(dtest)
    assert (bst.predict(dtest, ntree_limit=0) == whole).all() and (bst.predict(dtest, False, 99) == whole).all()
    assert (bst.predict(dtest, ntree_limit=bst.best_ntree_limit) == whole).all()
    first = bst.predict(dtest, ntree_limit=3)
    assert not (first == whole).all()
    assert bst.predict(dtest, ntree_limit=6, pred_leaf=True).shape == (len(labels), 6)
    assert bst.predict(dtest, pred_leaf=True).shape == (len(labels), 12)
    assert bst.predict(dtest, pred_contribs=True).shape == (len(labels), dtest.num_col() + 1)


def idiom_functional_callbacks():
    result, seen = {}, []

    def mine(env):
        seen.append((env.iteration, env.end_iteration, env.rank, [name for name, _ in env.evaluation_result_list]))
        if env.iteration == 3:
            raise xgb.core.EarlyStopException(env.iteration)

    rates = [1.0, 0.5, 0.25, 0.1, 0.05]
    xgb.train(param, dtrain, 5, watchlist, verbose_eval=False, callbacks=[
        xgb.callback.print_evaluation(period=2), xgb.callback.record_evaluation(result),
        xgb.callback.reset_learning_rate(rates), mine])
    assert [entry[0] for entry in seen] == [0, 1, 2, 3] and seen[0][1:3] == (5, 0), seen
    assert seen[0][3][0].startswith('eval-') and seen[0][3][-1].startswith('train-'), seen
    assert len(list(result['eval'].values())[0]) == 4, result
    bst = xgb.train(param, dtrain, 30, watchlist, callbacks=[xgb.callback.early_stop(2)])
    assert bst.best_iteration <= 29


def idiom_learning_rates():
    same = xgb.train(param, dtrain, 3, callbacks=[xgb.callback.reset_learning_rate(lambda i, n: 1.0 / (n - i))])
    listed = xgb.train(param, dtrain, 3, callbacks=[xgb.callback.reset_learning_rate([1.0 / 3, 1.0 / 2, 1.0])])
    assert (same.predict(dtest) == listed.predict(dtest)).all()
    assert not (listed.predict(dtest) == xgb.train(param, dtrain, 3).predict(dtest)).all()
    named = xgb.train(param, dtrain, 3, learning_rates=[1.0 / 3, 1.0 / 2, 1.0])
    assert (named.predict(dtest) == listed.predict(dtest)).all()


def idiom_parameters_of_then():
    bst = xgb.train([('objective', 'reg:linear'), ('silent', 1), ('eval_metric', 'rmse'), ('eval_metric', 'mae')],
                    dtrain, 2, [(dtrain, 'train')])
    assert len(bst.get_dump()) == 2
    linear = xgb.train({'booster': 'gblinear', 'objective': 'binary:logistic', 'alpha': 0.0001}, dtrain, 2)
    assert len(linear.predict(dtest)) == len(labels)


def idiom_model_files():
    bst = xgb.train(param, dtrain, 2)
    expected = bst.predict(dtest)
    bst.save_model(os.path.join(folder, '0001.model'))
    again = xgb.Booster({'nthread': 1})
    again.load_model(os.path.join(folder, '0001.model'))
    named = xgb.Booster(model_file=os.path.join(folder, '0001.model'))
    pickled = pickle.loads(pickle.dumps(bst))
    for model in (again, named, pickled, bst.copy()):
        assert (model.predict(dtest) == expected).all()
    dtest.save_binary(os.path.join(folder, 'dtest.buffer'))
    assert (bst.predict(xgb.DMatrix(os.path.join(folder, 'dtest.buffer'))) == expected).all()
    further = xgb.train(param, dtrain, 2, xgb_model=os.path.join(folder, '0001.model'))
    assert len(further.get_dump()) == 4


def idiom_dumps_with_a_feature_map():
    bst = xgb.train(param, dtrain, 2)
    raw, nice = os.path.join(folder, 'dump.raw.txt'), os.path.join(folder, 'dump.nice.txt')
    fmap = os.path.join(folder, 'featmap.txt')
    with open(fmap, 'w') as file:  # without the last feature
        file.writelines('%d feature=%d i\n' % (number, number) for number in range(dtrain.num_col() - 1))
    bst.dump_model(raw)
    bst.dump_model(nice, fmap, with_stats=True)
    with open(raw) as file:
        assert 'booster[1]:' in file.read()
    with open(nice) as file:
        assert 'cover=' in file.read()
    scores = bst.get_fscore()
    assert scores and all(name.startswith('f') for name in scores)
    assert sum(bst.get_fscore(fmap).values()) == sum(scores.values())
    assert bst.get_score(importance_type='gain')


def idiom_base_margin():
    bst = xgb.train(param, dtrain, 1)
    further, ahead = xgb.DMatrix(path), bst.predict(dtrain, output_margin=True)
    further.set_base_margin(ahead)
    bst = xgb.train(param, further, 1, [(further, 'train')])
    assert not (bst.predict(further, output_margin=True) == ahead).all()


def idiom_own_loop():
    bst = xgb.Booster(param, [dtrain, dtest])
    for i in range(2):
        bst.update(dtrain, i)
        assert bst.eval_set(watchlist, i, evalerror).startswith('[%d]' % i)
        assert bst.eval(dtest).startswith('[0]')
        bst.save_rabit_checkpoint()
    bst.update(dtrain, 2, logregobj)
    grad, hess = logregobj(bst.predict(dtrain, output_margin=True), dtrain)
    bst.boost(dtrain, list(grad), list(hess))
    assert len(bst.get_dump()) == 4
    assert xgb.Booster(param, [dtrain]).load_rabit_checkpoint() == 0


def idiom_missing_and_weights():
    rows = np.array([[1, -999.0], [-999.0, 2], [3, 4], [5, -999.0]])
    matrix = xgb.DMatrix(rows, label=[0, 1, 0, 1], missing=-999.0, weight=[1, 2, 1, 2])
    assert matrix.num_row() == 4 and matrix.get_weight().tolist() == [1, 2, 1, 2]
    assert matrix.slice([0, 2]).num_row() == 2
    matrix = xgb.DMatrix(rows, [0, 1, 0, 1], missing=-999.0)
    matrix.set_group([2, 2])
    xgb.train({'objective': 'rank:ndcg', 'eta': 0.1, 'gamma': 1.0}, matrix, 2, [(matrix, 'validation')])


def idiom_cross_validation():
    def fpreproc(dtrain, dtest, param):
        label = dtrain.get_label()
        param['scale_pos_weight'] = float(np.sum(label == 0)) / np.sum(label == 1)
        return dtrain, dtest, param

    found = xgb.cv(param, dtrain, 4, nfold=3, metrics={'error'}, seed=0, as_pandas=False,
                   callbacks=[xgb.callback.print_evaluation(show_stdv=False), xgb.callback.early_stop(3)])
    assert 'test-error-mean' in found and 'train-error-std' in found, found
    found = xgb.cv(param, dtrain, 20, 3, False, None, {'auc'}, early_stopping_rounds=2, fpreproc=fpreproc, seed=0,
                   as_pandas=False, show_stdv=False, verbose_eval=True)
    assert len(found['test-auc-mean']) < 20, found
    found = xgb.cv({'max_depth': 2, 'eta': 1}, dtrain, 2, nfold=3, seed=0, obj=logregobj, feval=evalerror, as_pandas=False)
    assert found['test-my-error-mean'][-1] <= 0.5, found
    seen = []
    xgb.cv(param, dtrain, 2, nfold=3, metrics='error', as_pandas=False,
           callbacks=[lambda env: seen.append((len(env.cvfolds), len(env.evaluation_result_list[0])))])
    assert seen == [(3, 3), (3, 3)], seen


def idiom_parameters_as_items():
    plst = param.items()
    alike = xgb.train(param, dtrain, 2).get_dump()
    assert xgb.train(plst, dtrain, 2).get_dump() == alike
    assert xgb.train(list(plst) + [('eval_metric', 'auc'), ('eval_metric', 'error')], dtrain, 2, watchlist).get_dump() == alike
    found = xgb.cv(plst, dtrain, 2, nfold=3, metrics='error', as_pandas=False)
    assert len(found['test-error-mean']) == 2, found


def idiom_objective_of_lists():
    def obj(preds, dtrain):
        grad, hess = logregobj(preds, dtrain)
        return list(grad), list(hess)
    assert xgb.train({'max_depth': 2}, dtrain, 2, obj=obj).get_dump() == xgb.train({'max_depth': 2}, dtrain, 2, obj=logregobj).get_dump()


def idiom_a_missing_file():
    try:
        xgb.DMatrix('there/is/no/such/file.svm')
    except xgb.core.XGBoostError:
        pass
    else:
        raise AssertionError('no error')


def idiom_rabit():
    xgb.rabit.init()
    bits = np.array([1, 2, 4], dtype=np.int32)
    assert xgb.rabit.allreduce(bits.copy(), xgb.rabit.Op.OR).tolist() == [1, 2, 4]

    def prepare(data):
        data[:] = 7
    assert xgb.rabit.allreduce(np.zeros(3), xgb.rabit.Op.SUM, prepare).tolist() == [7, 7, 7]
    assert (xgb.rabit.get_rank(), xgb.rabit.get_world_size()) == (0, 1)
    assert xgb.rabit.broadcast({'a': 1}, 0) == {'a': 1}
    xgb.rabit.finalize()


def idiom_scikit_learn():
    rows = np.array([[row % 7, row % 5, row % 3] for row in range(210)], dtype=float)
    y = np.array([int(row % 7 > 2) ^ int(row % 11 == 0) for row in range(210)])
    clf = xgb.XGBClassifier(max_depth=3, n_estimators=40, silent=True, nthread=1, seed=7, objective='binary:logistic')
    clf.fit(rows[:150], y[:150], eval_set=[(rows[:150], y[:150]), (rows[150:], y[150:])], eval_metric='logloss',
            early_stopping_rounds=3, verbose=False)
    best = clf.best_iteration
    assert clf.best_ntree_limit == best + 1 < 40
    assert len(clf.evals_result()['validation_1']['logloss']) == best + 4
    whole = clf.predict_proba(rows, ntree_limit=0)
    assert whole.shape == (210, 2) and not (whole == clf.predict_proba(rows)).all()
    assert (clf.predict_proba(rows, ntree_limit=clf.best_ntree_limit) == clf.predict_proba(rows)).all()
    assert (clf.predict(data=rows, ntree_limit=2) == clf.predict(rows, False, 2)).all()
    assert clf.apply(rows, ntree_limit=2).shape == (210, 2)
    clf.fit(rows, y)  # the arguments of the earlier fit applied to that call only
    assert len(clf.get_booster().get_dump()) == 40
    error = xgb.XGBClassifier(n_estimators=3)
    error.fit(rows, y, eval_set=[(rows, y)], eval_metric=lambda preds, matrix: (
        'mine', float(np.mean((preds > 0.5) != matrix.get_label()))), verbose=False)
    assert abs(error.evals_result()['validation_0']['mine'][-1] - np.mean(error.predict(rows) != y)) < 1e-5
    again = pickle.loads(pickle.dumps(clf))
    assert (again.predict(rows) == clf.predict(rows)).all() and clf.feature_importances_.shape == (3,)
    xgb.XGBRegressor(n_estimators=3).fit(rows, y).predict(rows)
    ranker = xgb.XGBRanker(n_estimators=3, objective='rank:pairwise')
    ranker.fit(rows, y, group=[105, 105], eval_set=[(rows, y)], eval_group=[[105, 105]], eval_metric='ndcg')
    assert ranker.predict(rows).shape == (210,)


for name, idiom in list(globals().items()):
    if name.startswith('idiom_'):
        idiom()
        print('done:', name[len('idiom_'):])
