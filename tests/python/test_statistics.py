"""Statistics against answers worked out by hand, against other implementations, and against what they promise."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import special, stats

from mqttlab import statistics
from mqttlab.statistics import Interval, batch_correlation, batch_means_ci95, distributions, quantiles
from mqttlab.statistics.interval import Values

RNG = np.random.default_rng(20260101)
A = np.array([10.2, 11.5, 9.8, 10.9, 12.1, 10.4, 11.8])
B = np.array([12.0, 12.9, 11.1, 13.4, 13.0, 11.2, 14.1])


@pytest.mark.parametrize("freedom", [1, 1.5, 2, 3, 4.7, 9, 19, 100])
@pytest.mark.parametrize("probability", [0.6, 0.9, 0.975, 0.99, 0.99995])
def test_students_quantile_is_scipys(freedom: float, probability: float) -> None:
    assert distributions.t_quantile(probability, freedom) == pytest.approx(
        special.stdtrit(freedom, probability), rel=1e-12)
    assert distributions.t_quantile(1 - probability, freedom) == -distributions.t_quantile(probability, freedom)
    assert distributions.t_tail(probability * 7, freedom) == pytest.approx(
        special.stdtr(freedom, -probability * 7), rel=1e-11)


def test_a_mean_has_students_interval() -> None:
    found = statistics.mean_interval([1, 2, 3, 4, 5])
    half = 2.7764451051977987 * math.sqrt(2.5 / 5)
    assert (found.estimate, found.n, found.method) == (3, 5, "Student's t")
    assert (found.low, found.high) == pytest.approx((3 - half, 3 + half))
    assert found.half_width == pytest.approx(half)


def test_what_has_no_interval_says_so() -> None:
    one = statistics.mean_interval([4.0])
    assert not one.bounded and one.half_width == math.inf and "one run" in one.note
    same = statistics.mean_interval([4.0] * 12)
    assert (same.low, same.high) == (4, 4) and "same value" in same.note
    few = statistics.quantile_interval(list(range(100)), 0.99)
    assert few.high == math.inf and math.isfinite(few.low) and "368 samples" in few.note


@pytest.mark.parametrize("values", [[], [1.0, math.nan], [1.0, math.inf]])
def test_no_statistic_swallows_what_is_no_number(values: list[float]) -> None:
    for statistic in (statistics.mean_interval, statistics.median_interval):
        with pytest.raises(ValueError, match=r"needed|finite"):
            statistic(values)


def test_a_skewed_sample_gets_the_accelerated_bootstrap_of_scipy() -> None:
    values = np.random.default_rng(4).lognormal(sigma=1, size=30)
    found = statistics.mean_interval(values)
    assert found.method == "BCa bootstrap"
    theirs = stats.bootstrap((values,), np.mean, method="BCa", n_resamples=40_000, rng=1).confidence_interval
    width = theirs.high - theirs.low
    # Two sets of resamples; ends wander by a few hundredths of the width.
    assert abs(found.low - theirs.low) < 0.05 * width and abs(found.high - theirs.high) < 0.08 * width
    assert statistics.mean_interval(values) == found


def test_the_skewness_is_scipys() -> None:
    values = RNG.exponential(size=17)
    assert statistics.skewness(values) == pytest.approx(stats.skew(values, bias=False), rel=1e-12)


def test_order_statistics_lie_where_the_binomial_says() -> None:
    # n = 10, median: 1 - 2 P(at most 1 of 10) = 0.9785 between the 2nd and the 9th.
    assert quantiles.ranks(10, 0.5) == (2, 9)
    assert quantiles.ranks(5, 0.5) == (None, None)
    for q in (0.5, 0.9, 0.99, 0.999, 0.9999):
        needed = statistics.samples_needed(q)
        low, high = quantiles.ranks(needed, q)
        assert low is not None and high is not None
        assert None in quantiles.ranks(needed - 1, q)
        inside = special.bdtr(high - 1, needed, q) - special.bdtr(low - 1, needed, q)
        assert inside >= 0.95


@pytest.mark.parametrize("q", [0.001, 0.05, 0.5, 0.9, 0.999, 0.9999])
@pytest.mark.parametrize("n", [1, 2, 19, 400, 6_007, 250_001])
def test_ranks_of_many_are_those_of_the_whole_distribution(n: int, q: float) -> None:
    below = special.bdtr(np.arange(n, dtype=float), n, q)
    lows, highs = np.flatnonzero(below <= 0.025), np.flatnonzero(1 - below <= 0.025)
    assert quantiles.ranks(n, q) == (lows[-1] + 1 if lows.size else None, highs[0] + 1 if highs.size else None)


@pytest.mark.parametrize("share", [0.0, 1e-6, 0.05, 0.5, 0.9999, 1.0])
@pytest.mark.parametrize("n", [1, 7, 400, 250_001])
def test_the_binomial_distribution_is_scipys(n: int, share: float) -> None:
    expected = special.bdtr(np.arange(n + 1, dtype=float), n, share)
    np.testing.assert_allclose(distributions.binomial_below(n, share), expected, rtol=1e-8, atol=1e-15)
    some = range(n // 3, n // 2 + 1)
    found = distributions.binomial_below(n, share, some)
    np.testing.assert_allclose(found, expected[some.start : some.stop], rtol=1e-8, atol=1e-15)


@pytest.mark.parametrize("n", [1, 2, 3, 20, 1_001])
def test_quantiles_of_ordered_samples_are_numpys(n: int) -> None:
    samples = np.random.default_rng(n).exponential(size=n)
    for q in (0.0, 0.05, 0.5, 0.75, 0.9999, 1.0):
        assert quantiles.quantile_of_ordered(np.sort(samples), q) == np.quantile(samples, q)


def test_quantiles_of_one_sample_are_those_of_each_alone() -> None:
    samples, several = np.random.default_rng(7).exponential(size=5_000), (0.05, 0.5, 0.99, 0.9999)
    for correlated in (False, True):
        alone = [statistics.quantile_interval(samples, q, correlated=correlated) for q in several]
        assert statistics.quantile_intervals(samples, several, correlated=correlated) == alone


def test_ranks_of_millions_look_at_thousands(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = []

    def counted(n: int, share: float, successes: range) -> Values:
        looked_at.append(len(successes))
        return distributions.binomial_below(n, share, successes)

    monkeypatch.setattr(quantiles, "binomial_below", counted)
    assert quantiles.ranks(2_500_000, 0.5) == (1_248_451, 1_251_550)
    assert looked_at[0] < 20_000


def test_correlated_samples_are_worth_fewer() -> None:
    noise = RNG.normal(size=4000)
    walk = np.empty_like(noise)
    walk[0] = noise[0]
    for i in range(1, noise.size):
        walk[i] = 0.95 * walk[i - 1] + noise[i]
    independent = statistics.quantile_interval(walk, 0.5)
    honest = statistics.quantile_interval(walk, 0.5, correlated=True)
    assert honest.n < 500
    assert honest.half_width > 2 * independent.half_width


@pytest.mark.parametrize(("count", "of"), [(1, 10), (5, 10), (30, 400), (399, 400)])
def test_proportions_are_those_of_statsmodels(count: int, of: int) -> None:
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    for ours, method in ((statistics.proportion_interval, "wilson"), (statistics.proportion_exact, "beta")):
        found = ours(count, of)
        assert (found.low, found.high) == pytest.approx(
            proportion.proportion_confint(count, of, method=method), abs=1e-9)


def test_none_of_many_is_a_bound() -> None:
    found = statistics.proportion_interval(0, 3000)
    assert found.low == 0 and found.high == pytest.approx(3 / 3000, rel=0.01) and "0 of 3000" in found.note
    assert statistics.proportion_interval(3000, 3000).low == pytest.approx(1 - found.high)
    with pytest.raises(ValueError, match="5 of 4"):
        statistics.proportion_interval(5, 4)


def test_differences_are_those_of_statsmodels() -> None:
    weightstats = pytest.importorskip("statsmodels.stats.weightstats")
    found = statistics.difference(A, B[:5])
    both = weightstats.CompareMeans.from_data(B[:5], A)
    assert (found.interval.low, found.interval.high) == pytest.approx(both.tconfint_diff(usevar="unequal"), abs=1e-9)
    assert found.p == pytest.approx(both.ttest_ind(usevar="unequal")[1], rel=1e-9)
    pairs = statistics.difference(A, B, paired=True)
    theirs = weightstats.DescrStatsW(B - A)
    assert (pairs.interval.low, pairs.interval.high) == pytest.approx(theirs.tconfint_mean(), abs=1e-9)
    assert pairs.p == pytest.approx(theirs.ttest_mean()[1], rel=1e-9)
    assert pairs.p_equivalent(3) == pytest.approx(weightstats.ttost_paired(B, A, -3, 3)[0], rel=1e-9)
    assert pairs.correlation == pytest.approx(float(np.corrcoef(A, B)[0, 1]))


def test_pairs_narrow_the_interval_by_their_correlation() -> None:
    rng = np.random.default_rng(2)
    common = rng.normal(100, 20, 40)
    first, second = common + rng.normal(0, 1, 40), common + 2 + rng.normal(0, 1, 40)
    paired, apart = (statistics.difference(first, second, paired=way) for way in (True, False))
    assert paired.interval.half_width < apart.interval.half_width / 5
    assert paired.p < 0.01 < apart.p
    with pytest.raises(ValueError, match="40 and 39 values"):
        statistics.difference(first, second[:-1], paired=True)


def test_fiellers_interval_holds_the_ratios_that_a_t_test_does_not_refuse() -> None:
    for paired in (True, False):
        found = statistics.ratio_interval(A, B, paired=paired)
        for ratio, inside in ((found.low * 1.0001, True), (found.low * 0.9999, False),
                              (found.high * 0.9999, True), (found.high * 1.0001, False)):
            if paired:
                p = stats.ttest_1samp(B - ratio * A, 0).pvalue
                assert (p > 0.05) == inside
        assert found.covers(B.mean() / A.mean())
    assert statistics.ratio_interval([0.0, 0.0], [1.0, 2.0]).note == "the reference is 0"
    unclear = statistics.ratio_interval([-1.0, 1.2, 0.1], [1.0, 2.0, 3.0])
    assert not unclear.bounded and "cannot be told from 0" in unclear.note


def test_the_hodges_lehmann_interval_inverts_the_rank_tests() -> None:
    found = statistics.hodges_lehmann(A, B)
    assert found.estimate == pytest.approx(np.median([b - a for a, b in itertools.product(A, B)]))
    _inverts(found, lambda shift: float(stats.mannwhitneyu(B - shift, A, method="exact").pvalue))
    paired = statistics.hodges_lehmann(A, B, paired=True)
    walsh = [(x + y) / 2 for x, y in itertools.combinations_with_replacement(B - A, 2)]
    assert paired.estimate == pytest.approx(np.median(walsh))
    _inverts(paired, lambda shift: float(stats.wilcoxon(B - A - shift, method="exact").pvalue))
    assert "too small" in statistics.hodges_lehmann(A[:3], B[:3]).note
    assert "too small" in statistics.hodges_lehmann(A[:5], B[:5], paired=True).note
    assert statistics.hodges_lehmann(A[:6], B[:6], paired=True).bounded


def _inverts(found: Interval, p: Callable[[float], float]) -> None:
    for shift, inside in ((found.low + 1e-6, True), (found.low - 1e-6, False),
                          (found.high - 1e-6, True), (found.high + 1e-6, False)):
        assert (p(shift) > 0.05) == inside


def test_many_runs_have_rank_intervals_without_overflow() -> None:
    # Of its own: what other tests have drawn before depends on which of them ran.
    rng = np.random.default_rng(1)
    first, second = rng.normal(size=60), rng.normal(1, size=60)
    for paired in (False, True):
        assert statistics.hodges_lehmann(first, second, paired=paired).covers(1)


def test_cliffs_delta_is_the_balance_of_all_pairs() -> None:
    rank = pytest.importorskip("statsmodels.stats.nonparametric")
    theirs = rank.rank_compare_2indep(B, A)
    found = statistics.cliffs_delta(A, B)
    assert found.estimate == pytest.approx(2 * theirs.prob1 - 1, abs=1e-12)
    assert found.low < found.estimate < found.high <= 1
    apart = statistics.cliffs_delta(A, A + 100)
    assert (apart.estimate, apart.high, apart.note) == (1, 1, "no overlap")
    assert statistics.cliffs_delta(A + 100, A).low == -1
    assert statistics.cliffs_delta(A, A).covers(0)


def test_holm_is_that_of_statsmodels() -> None:
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    p = [0.01, 0.04, 0.03, 0.005, 0.9]
    assert statistics.holm(p) == pytest.approx(multitest.multipletests(p, method="holm")[1])
    assert statistics.holm([]) == []


def test_verdicts_have_four_words() -> None:
    worse = statistics.difference(A, A + 5, paired=False)
    better = statistics.difference(A, A - 5, paired=False)
    alike = statistics.difference(A, A + 0.01 * RNG.normal(size=7), paired=True)
    unclear = statistics.difference([10.0, 20.0, 30.0], [12.0, 31.0, 22.0])
    found = statistics.judge([worse, better, alike, unclear], [1.0] * 4, ["lower"] * 4)
    assert [verdict.word for verdict in found] == ["worse", "better", "equivalent", "undecided"]
    assert found[3].runs_needed is not None and "more run" in found[3].words()
    [turned] = statistics.judge([worse], [None], ["higher"])
    assert turned.word == "better" and turned.p_equivalent is None
    assert statistics.judge([worse], [None], ["neither"])[0].word == "different"
    nothing = statistics.difference([3.0, 3.0], [3.0, 3.0], paired=True)
    assert statistics.judge([nothing], [None], ["lower"])[0].word == "equivalent"


def test_the_runs_said_to_be_needed_decide() -> None:
    decided = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        first, second = rng.normal(100, 10, 5), rng.normal(108, 10, 5)
        needed = statistics.runs_needed(statistics.difference(first, second), None)
        if needed is None:
            continue
        # With spread and difference as they are: the values so often over.
        scale = (5 + needed) / 5
        error = statistics.difference(first, second).error / math.sqrt(scale)
        t = distributions.t_quantile(0.975, 2 * (5 + needed - 1))
        decided += abs(second.mean() - first.mean()) > 0.97 * t * error
    assert decided >= 30
    assert statistics.runs_needed(statistics.difference([0.0, 1.0], [0.5, 0.5]), None) is None


def test_the_chance_of_a_wrong_word_is_bounded_over_a_family() -> None:
    wrong = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        found = [statistics.difference(rng.normal(size=6), rng.normal(size=6)) for _ in range(8)]
        words = [verdict.word for verdict in statistics.judge(found, [None] * 8, ["lower"] * 8)]
        wrong += any(word != "undecided" for word in words)
    # 5 % at most, and 2.2 standard errors.
    assert wrong <= 0.05 * 400 + 2.2 * math.sqrt(400 * 0.05 * 0.95)


def test_the_smallest_difference_is_that_of_statsmodels() -> None:
    power = pytest.importorskip("statsmodels.stats.power")
    theirs = power.TTestIndPower().solve_power(nobs1=6, alpha=0.05, power=0.8)
    assert statistics.smallest_difference(2.0, 6) == pytest.approx(2 * theirs, rel=1e-4)
    theirs = power.TTestPower().solve_power(nobs=6, alpha=0.05, power=0.8)
    assert statistics.smallest_difference(2.0, 6, paired=True) == pytest.approx(2 * theirs, rel=1e-4)
    assert statistics.smallest_difference(2.0, 1) == math.inf


def test_runs_for_a_half_width_reach_it_and_no_fewer_do() -> None:
    needed = statistics.runs_for_half_width(A, 0.3)
    assert needed is not None

    def half(n: int) -> float:
        return float(stats.t.ppf(0.975, n - 1) * A.std(ddof=1) / math.sqrt(n))

    assert half(needed) <= 0.3 < half(needed - 1)
    assert statistics.runs_for_half_width(A, 1e-9) is None
    with pytest.raises(ValueError, match="above 0"):
        statistics.runs_for_half_width(A, 0)


def test_drift_is_spearmans() -> None:
    for n in (5, 8, 12, 40):
        order, values = np.arange(n, dtype=float), RNG.normal(size=n).round(1)
        found = statistics.drift(order, values)
        assert found is not None
        theirs = stats.spearmanr(order, values)
        assert found.rho == pytest.approx(theirs.statistic, abs=1e-12)
        if n > 8:
            assert found.p == pytest.approx(theirs.pvalue, rel=1e-9)
        else:
            exact = stats.permutation_test(
                (values,), lambda x, order=order: stats.spearmanr(order, x).statistic, permutation_type="pairings",
                n_resamples=math.inf) if n == 5 else None
            assert exact is None or found.p == pytest.approx(exact.pvalue, abs=1e-9)
    assert statistics.drift([1, 2, 3], [1, 2, 3]) is None
    assert statistics.drift([1, 2, 3, 4], [1, 1, 1, 1]) is None
    falling = statistics.drift(range(12), -np.arange(12.0))
    assert falling is not None and "drifted" in falling.words()


def coverage(draw: Callable[[np.random.Generator], Values], truth: float, *, experiments: int) -> float:
    rng = np.random.default_rng(1)
    return sum(statistics.mean_interval(draw(rng)).covers(truth) for _ in range(experiments)) / experiments


@pytest.mark.parametrize("n", [5, 10, 30])
def test_intervals_of_normal_means_cover_what_they_promise(n: int) -> None:
    assert abs(coverage(lambda rng: rng.normal(100, 15, n), 100, experiments=2000) - 0.95) <= 0.01


@pytest.mark.parametrize("q", [0.5, 0.9])
def test_order_statistics_cover_what_they_promise_or_say_that_n_is_too_small(q: float) -> None:
    truth = -math.log(1 - q)
    for n in (5, 30, 200):
        rng = np.random.default_rng(2)
        found = [statistics.quantile_interval(rng.exponential(size=n), q) for _ in range(400)]
        if not found[0].bounded:
            assert all("n too small" in interval.note for interval in found)
            continue
        # At least 95 %, less two standard errors of 400 experiments.
        assert sum(interval.covers(truth) for interval in found) / 400 >= 0.95 - 0.022


def test_reports_are_warned_of_what_few_skewed_runs_cover() -> None:
    assert statistics.mean_coverage(5, 0.0) > 0.94
    assert statistics.mean_coverage(5, 1.0) < statistics.WARN_BELOW < statistics.mean_coverage(40, 1.6)
    assert statistics.mean_coverage(2, 0.0) == statistics.mean_coverage(5, 0.0)
    # The true share is 1 %, and 10 trials mostly see none: the exact bound of none covers it; one of ten does not.
    assert statistics.proportion_coverage(5, 10) == pytest.approx(1 - 22 / 1024)
    assert statistics.proportion_coverage(0, 10) == 1


def test_reports_are_warned_of_runs_that_are_short_against_their_memory() -> None:
    from scipy.signal import lfilter

    rng = np.random.default_rng(5)
    runs = [np.asarray(lfilter([1.0], [1.0, -0.99], rng.normal(size=1400))[1000:]) for _ in range(400)]
    seen = [(batch_correlation(run), abs(run.mean()) <= (batch_means_ci95(run) or 0)) for run in runs]

    def is_warned_of(correlation: float | None) -> bool:
        covered = statistics.batches_coverage(correlation) if correlation is not None else None
        return covered is not None and covered < statistics.WARN_BELOW

    warned = [covers for correlation, covers in seen if is_warned_of(correlation)]
    # Most of such runs can be told, and their intervals deserve it; of others one in twenty is.
    assert len(warned) > 250 and np.mean(warned) < statistics.WARN_BELOW
    fresh = [batch_correlation(rng.normal(size=400)) for _ in range(400)]
    assert np.mean([is_warned_of(found) for found in fresh]) < 0.08
    assert batch_correlation(np.arange(39.0)) is None and batch_correlation(np.ones(400)) is None
    rising = batch_correlation(np.arange(400.0))
    assert rising is not None and 0.8 < rising < 1
    assert statistics.batches_coverage(0.29) is None and (statistics.batches_coverage(1.0) or 1) < 0.8


def test_the_warnings_are_what_a_simulation_finds() -> None:
    for n, sigma in ((5, 1.0), (10, 1.0), (10, 0.5)):
        found = coverage(lambda rng, n=n, sigma=sigma: rng.lognormal(0, sigma, n), math.exp(sigma**2 / 2),
                         experiments=600)
        typical = np.mean([statistics.skewness(np.random.default_rng(i).lognormal(0, sigma, n)) for i in range(400)])
        # Two experiments of this size and skewness: three standard errors.
        assert abs(statistics.mean_coverage(n, float(typical) + 0.1) - found) < 3.5 * math.sqrt(0.2 * 0.8 / 600)


@pytest.mark.parametrize("most", [1, 2, 3, 10, 100, 299])
@pytest.mark.parametrize("kinds", [1, 3, 1_000_000])
def test_a_selection_is_the_same_in_parts_and_has_the_largest(most: int, kinds: int) -> None:
    values = np.random.default_rng(most * kinds).integers(0, kinds, 1000)

    def largest(count: int) -> Values:
        return np.sort(values)[-count:]

    whole = statistics.Selection(values.size, most, largest).places(values)
    in_parts, selection = [], statistics.Selection(values.size, most, largest)
    for begin in range(0, values.size, 7):
        in_parts += [begin + place for place in selection.places(values[begin : begin + 7])]
    assert in_parts == whole.tolist()
    assert len(whole) <= most
    count = min(10, most // 3)
    assert count == 0 or sorted(values[whole])[-count:] == sorted(values)[-count:]


def test_of_no_more_values_than_are_wanted_all_are_taken() -> None:
    def nobody(count: int) -> Values:
        raise AssertionError(count)

    for height in (0, 1, 5):
        assert statistics.Selection(height, 5, nobody).places(np.arange(height)).tolist() == list(range(height))
