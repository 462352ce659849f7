"""The numbers of the page to play with are those of the laws, and the page is one file."""

import hashlib
import json
import math
import re
from base64 import b64encode
from fractions import Fraction

import pytest

from discreet import DiscreteLaplace, accuracy
from discreet.show import explore


@pytest.fixture(scope="module")
def page():
    return explore.page()


@pytest.fixture(scope="module")
def data(page):
    [text] = re.findall(
        r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL
    )
    return json.loads(text)


def test_chances_and_ratios_are_those_of_the_law(data):
    for row, epsilon in zip(data["laws"], explore.EPSILONS, strict=True):
        for law, delta in zip(row, explore.DELTAS, strict=True):
            exact = DiscreteLaplace(delta / epsilon)
            assert law["chances"] == [exact.pmf(k) for k in range(31)]
            assert law["ratios"] == pytest.approx(
                [math.exp(epsilon * m / delta) for m in range(-delta, delta + 1)], rel=1e-14
            )
            for y in range(-20, 26):
                ratio = law["chances"][abs(y)] / law["chances"][abs(y - delta)]
                assert law["ratios"][abs(y - delta) - abs(y) + delta] == pytest.approx(
                    ratio, rel=1e-12
                )


def test_the_attacker_is_the_best_guess_and_stays_within_the_limit(data):
    for row, told in zip(data["laws"], data["epsilons"], strict=True):
        limit = math.exp(told["value"]) / (1 + math.exp(told["value"]))
        assert told["limit"] == pytest.approx(limit, rel=1e-14)
        # odds e^2ε
        assert told["valueLimit"] == pytest.approx(
            limit**2 / (limit**2 + (1 - limit) ** 2), rel=1e-14
        )
        assert row[0]["attacker"] == pytest.approx(limit, rel=1e-12)  # Δ = 1 reaches it
        for law, delta in zip(row, explore.DELTAS, strict=True):
            exact = DiscreteLaplace(delta / Fraction(told["text"]))
            far = math.ceil(40 * exact.scale)
            best = (
                sum(max(exact.pmf(y), exact.pmf(y - delta)) for y in range(-far, far)) / 2
                if far < 400
                else None
            )
            if best is not None:
                assert law["attacker"] == pytest.approx(best, rel=1e-9)
            assert law["attacker"] <= told["limit"] * (1 + 1e-12)


def test_errors_are_those_of_the_lemma(data):
    for index, epsilon in enumerate(explore.EPSILONS):
        for at, n in enumerate(explore.PEOPLE):
            laplace, response = data["laplace"][index][at], data["response"][index][at]
            assert laplace == accuracy.root_mean_square_error(1 / epsilon, law="discrete") / n
            assert response / laplace == pytest.approx(math.sqrt(n / 2), rel=1e-12)
            for delta, errors in zip(explore.DELTAS, data["mean"][index], strict=True):
                assert errors[at] == pytest.approx(
                    math.log(20) * delta / (n * float(epsilon)), rel=1e-12
                )


def test_figure_one_is_the_density_of_the_texts(data):
    assert data["density"]["scales"] == [1, 2, 4, 7]
    units, heights = data["density"]["units"], data["density"]["heights"]
    assert heights == pytest.approx([math.exp(-unit) / 2 for unit in units], rel=1e-14)
    smallest = min(law["scale"] for row in data["laws"] for law in row)
    # every curve leaves the figure
    assert units[-1] * smallest >= data["density"]["reach"] * (1 - 1e-12)


def test_the_lemma_has_its_bounds_and_exact_values_for_each_t_and_d(data):
    told = data["lemma"]
    assert told["times"][0] == 0
    assert {1, 50, 3143} <= set(told["draws"])
    assert told["bound"] == pytest.approx([math.exp(-t) for t in told["times"]], rel=1e-14)
    for at, d in enumerate(told["draws"]):
        assert told["logs"][at] == math.log(d)
        exact = [
            -math.expm1(d * math.log1p(-math.exp(-t) / d)) if t or d > 1 else 1
            for t in told["times"]
        ]
        assert told["exact"][at] == pytest.approx(exact, rel=1e-9)
        assert told["largestBound"][at] == pytest.approx(math.log(d) + 1, rel=1e-14)
        if d < 10_000:
            assert told["largest"][at] == pytest.approx(
                sum(1 / k for k in range(1, d + 1)), rel=1e-12
            )
        assert told["largest"][at] <= told["largestBound"][at]
        assert all(
            value <= bound * (1 + 1e-12)
            for value, bound in zip(told["exact"][at], told["bound"], strict=True)
        )


def test_formulas_are_typeset_on_the_page(page):
    body = page.partition("<script")[0]
    assert "e<sup>−<i>t</i></sup>" in body
    assert "<i>λ</i> = <i>Δ</i>/<i>ε</i>" in body
    assert not re.search(r"\^|λ(?!</i>)", body.partition("<body>")[2])


def test_the_page_is_one_file_that_runs_its_own_script_alone(page):
    assert "{{" not in page
    assert not re.search(r"(?:src|href|action)\s*=|@import|url\(", page)
    # a name, not an address
    assert set(re.findall(r"https?://[^\"' ]+", page)) == {"http://www.w3.org/2000/svg"}
    [script] = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page
    assert "default-src 'none'" in page
