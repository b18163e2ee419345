"""Effects of factors, and trends: against statsmodels, and against data made of known parts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mqttlab import statistics

LEVELS = {"qos": ["0", "1", "2"], "loss": ["0 %", "5 %"], "delay": ["10 ms", "100 ms"]}


def design(repetitions: int, factors: dict[str, list[str]] = LEVELS) -> tuple[dict[str, list[str]], list[int]]:
    """Every combination in every block."""
    rows = [(*cell, block) for block in range(repetitions) for cell in itertools.product(*factors.values())]
    columns = {name: [str(row[place]) for row in rows] for place, name in enumerate(factors)}
    return columns, [int(row[-1]) for row in rows]


def response(columns: dict[str, list[str]], blocks: list[int], seed: int = 1, noise: float = 1.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    parts = {"0": 0, "1": 3, "2": 9, "0 %": 0, "5 %": 20, "10 ms": 0, "100 ms": 50}
    base = sum(np.array([parts[level] for level in column], dtype=float) for column in columns.values())
    both = np.array([10.0 * (q == "2" and loss == "5 %") for q, loss in zip(
        columns["qos"], columns["loss"], strict=True)])
    return base + both + 0.5 * np.array(blocks) + rng.normal(0, noise, len(blocks))


def anova(
    columns: dict[str, list[str]], blocks: list[int], values: np.ndarray,
) -> dict[str, tuple[float, float, float]]:
    """Sum of squares, F and p by term, as statsmodels has them (type II)."""
    pd = pytest.importorskip("pandas")
    api = pytest.importorskip("statsmodels.formula.api")
    from statsmodels.stats.anova import anova_lm

    frame = pd.DataFrame({**columns, "block": [str(block) for block in blocks], "y": values})
    formula = "y ~ (C(qos, Sum) + C(loss, Sum) + C(delay, Sum)) ** 2 + C(block, Sum)"
    table = anova_lm(api.ols(formula, frame).fit(), typ=2)
    return {name.replace(", Sum", ""): (row["sum_sq"], row["F"], row["PR(>F)"]) for name, row in table.iterrows()}


@pytest.mark.parametrize("dropped", [0, 5])
def test_sums_of_squares_are_those_of_statsmodels(dropped: int) -> None:
    """With every run, and with five that are missing."""
    columns, blocks = design(4)
    values = response(columns, blocks)
    kept = np.delete(np.arange(values.size), np.random.default_rng(3).choice(values.size, dropped, replace=False))
    columns = {name: [column[i] for i in kept] for name, column in columns.items()}
    blocks, values = [blocks[i] for i in kept], values[kept]
    found = statistics.factorial(columns, values, blocks=blocks)
    assert found is not None and found.balanced == (dropped == 0)
    theirs = anova(columns, blocks, values)
    for term in found.terms:
        name = ":".join(f"C({factor})" for factor in term.factors) or "Residual"
        squares, f, p = theirs[name]
        assert term.squares == pytest.approx(squares, rel=1e-6)
        if term.factors:
            assert term.f == pytest.approx(f, rel=1e-6) and term.p == pytest.approx(p, rel=1e-6, abs=1e-300)
    if not dropped:
        assert sum(term.percent for term in found.terms) == pytest.approx(100)


def test_effects_and_their_intervals_are_those_of_statsmodels() -> None:
    pd = pytest.importorskip("pandas")
    api = pytest.importorskip("statsmodels.formula.api")
    columns, blocks = design(3)
    values = response(columns, blocks)
    found = statistics.factorial(columns, values)
    assert found is not None
    frame = pd.DataFrame({**columns, "y": values})
    fit = api.ols("y ~ (C(qos, Sum) + C(loss, Sum) + C(delay, Sum)) ** 2", frame).fit()
    ends = fit.conf_int()
    effects = {(effect.factors, effect.levels): effect.interval for effect in found.effects}
    for name, levels, parameter in (
        (("qos",), ("1",), "C(qos, Sum)[S.1]"), (("loss",), ("0 %",), "C(loss, Sum)[S.0 %]"),
        (("qos", "loss"), ("0", "0 %"), "C(qos, Sum)[S.0]:C(loss, Sum)[S.0 %]"),
    ):
        ours = effects[name, levels]
        assert ours.estimate == pytest.approx(fit.params[parameter], abs=1e-9)
        assert (ours.low, ours.high) == pytest.approx(tuple(ends.loc[parameter]), abs=1e-9)
    assert sum(effects[("qos",), (level,)].estimate for level in "012") == pytest.approx(0, abs=1e-9)
    assert found.r_squared == pytest.approx(fit.rsquared)
    assert found.residuals == pytest.approx(fit.resid.to_numpy())


def test_the_parts_of_made_up_data_are_found() -> None:
    columns, blocks = design(5)
    found = statistics.factorial(columns, response(columns, blocks, noise=0.2), blocks=blocks)
    assert found is not None and found.blocked
    assert found.term("delay").percent > found.term("loss").percent > found.term("qos").percent
    assert found.term("qos", "loss").p < 1e-6 < 0.001 < found.term("qos", "delay").p
    effects = {(effect.factors, effect.levels): effect.interval for effect in found.effects}
    # 100 ms against 10 ms is 50, half of it on each side of the mean.
    assert effects[("delay",), ("100 ms",)].covers(25)


def test_what_a_fraction_cannot_tell_apart_is_confounded() -> None:
    pydoe = pytest.importorskip("pydoe")
    signs = pydoe.fracfact("a b ab")
    columns = {name: [str(int(sign)) for sign in np.tile(signs[:, place], 3)] for place, name in enumerate("abc")}
    values = np.random.default_rng(1).normal(size=12)
    found = statistics.factorial(columns, values)
    assert found is not None
    assert all(found.term(*pair).confounded for pair in itertools.combinations("abc", 2))
    assert not any(found.term(name).confounded for name in "abc")
    assert found.term("c").aliases == ("a × b",) and found.term("a", "b").aliases == ("c",)


def test_no_model_is_made_of_too_little() -> None:
    assert statistics.factorial({"a": ["1", "2"]}, [1.0, 2.0]) is None
    assert statistics.factorial({"a": ["1", "1", "1"]}, [1.0, 2.0, 3.0]) is None
    single = statistics.factorial({"a": ["1", "1", "2", "2"]}, [5.0, 5.0, 5.0, 5.0])
    assert single is not None and single.term("a").p == 1 and single.r_squared == 0
    with pytest.raises(ValueError, match="one length"):
        statistics.factorial({"a": ["1", "2", "1"]}, [1.0, 2.0])


X = np.repeat([1.0, 2.0, 5.0, 10.0, 20.0, 50.0], 4)


@pytest.mark.parametrize(("shape", "line"), [
    ("constant", lambda x: 0 * x + 40), ("linear", lambda x: 10 + 3 * x), ("logarithmic", lambda x: 5 + 8 * np.log(x)),
    ("power", lambda x: 3 * x**1.7), ("segmented", lambda x: 20 + 0.5 * x + 6 * np.maximum(x - 10, 0)),
])
def test_the_shape_that_made_the_data_is_chosen(shape: str, line: object) -> None:
    noise = np.random.default_rng(2).normal(size=X.size)
    true = line(X)  # type: ignore[operator]
    values = true * np.exp(0.03 * noise) if shape == "power" else true + noise
    found = statistics.trend(X, values)
    assert found is not None and found.chosen.shape == shape
    low, high = found.chosen.band(np.unique(X))
    assert (low <= line(np.unique(X))).all() and (line(np.unique(X)) <= high).all()  # type: ignore[operator]
    assert found.why.startswith(shape)
    if shape == "segmented":
        assert found.chosen.knee is not None and found.chosen.knee.covers(10) and found.chosen.knee.half_width < 4


@pytest.mark.parametrize("shape", ["linear", "logarithmic", "power"])
def test_bands_are_those_of_statsmodels(shape: str) -> None:
    api = pytest.importorskip("statsmodels.api")
    values = 4 * X**0.8 * np.exp(0.1 * np.random.default_rng(5).normal(size=X.size))
    found = statistics.trend(X, values)
    assert found is not None
    fit = next(fit for fit in (found.chosen, *found.others) if fit.shape == shape)
    at = X if shape == "linear" else np.log(X)
    wanted = np.log(values) if shape == "power" else values
    theirs = api.OLS(wanted, api.add_constant(at)).fit()
    assert fit.parameters == pytest.approx(tuple(theirs.params), abs=1e-9)
    seen = theirs.get_prediction().summary_frame(alpha=0.05)
    for prediction, names in ((False, ("mean_ci_lower", "mean_ci_upper")), (True, ("obs_ci_lower", "obs_ci_upper"))):
        for ours, name in zip(fit.band(X, prediction=prediction), names, strict=True):
            expected = np.exp(seen[name]) if shape == "power" else seen[name]
            assert ours == pytest.approx(expected.to_numpy(), abs=1e-6)


def test_theil_and_sens_slope_is_scipys() -> None:
    from scipy import stats

    values = 3 * X + np.random.default_rng(5).normal(size=X.size)
    found, theirs = statistics.theil_sen(X, values), stats.theilslopes(values, X)
    assert (found.estimate, found.low, found.high) == pytest.approx(
        (theirs.slope, theirs.low_slope, theirs.high_slope))


def test_no_line_is_drawn_through_three_levels_and_none_beyond_what_was_measured() -> None:
    three = np.repeat([1.0, 2.0, 3.0], 10)
    assert statistics.trend(three, three) is None
    assert statistics.trend([1, 2, 3, 4], [1, 2, 3, 4]) is None
    exact = statistics.trend(X, 2 * X + 1)
    assert exact is not None and exact.chosen.shape == "linear" and "every value" in exact.why
    assert exact.at(30) == pytest.approx(61)
    with pytest.raises(ValueError, match="outside of what was measured, 1 to 50"):
        exact.at(51)


def test_zeros_and_negative_numbers_rule_out_logarithms_only() -> None:
    x = np.repeat([0.0, 1.0, 2.0, 3.0], 3)
    found = statistics.trend(x, x - 1 + np.random.default_rng(1).normal(0, 0.1, x.size))
    assert found is not None
    assert {fit.shape for fit in (found.chosen, *found.others)} == {"constant", "linear"}
