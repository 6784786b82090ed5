"""Memory planning: no overlap of what lives together, little waste, limits kept, errors that say what is missing."""
from __future__ import annotations

import itertools
import random
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as hs

from anchorleg.relay.backend.memory import ALGORITHMS, BufferInfo, lower_bound, plan_offsets, plan_pools
from anchorleg.relay.backend.memory.buffers import aligned_bound
from anchorleg.relay.backend.memory.picture import draw, ticks
from anchorleg.support.errors import ArgumentError, BuildError

BUFFERS = hs.lists(hs.tuples(hs.integers(1, 500), hs.integers(0, 20), hs.integers(0, 6)), min_size=1, max_size=25).map(
    lambda rows: [BufferInfo(f"b{i}", size, first, first + length) for i, (size, first, length) in enumerate(rows)])


def check_no_overlap(buffers, spans):
    for i, a in enumerate(buffers):
        for j in range(i):
            if a.meets(buffers[j]) and spans[i][0] == spans[j][0]:
                (_, x), (_, y) = spans[i], spans[j]
                assert x + a.size <= y or y + buffers[j].size <= x


@settings(max_examples=60, deadline=None)
@given(BUFFERS, hs.sampled_from(list(ALGORITHMS)), hs.sampled_from([1, 16, 64]))
def test_what_lives_together_does_not_overlap(buffers, algorithm, alignment):
    offsets = plan_offsets(buffers, alignment, algorithm)
    check_no_overlap(buffers, [("p", o) for o in offsets])
    assert all(o % alignment == 0 for o in offsets)
    assert max(o + b.size for o, b in zip(offsets, buffers)) >= lower_bound(buffers)


def test_hill_climb_is_never_worse_and_repeatable():
    r, totals = random.Random(1), {a: 0 for a in ALGORITHMS}
    for _ in range(12):
        buffers = [BufferInfo(f"b{i}", r.randrange(1, 1000), f := r.randrange(30), f + r.randrange(6)) for i in range(40)]
        peaks = {a: max(o + b.size for o, b in zip(plan_offsets(buffers, 1, a), buffers)) for a in ALGORITHMS}
        assert peaks["hill_climb"] <= min(peaks.values())
        assert plan_offsets(buffers, 1, "hill_climb") == plan_offsets(buffers, 1, "hill_climb")
        for a in ALGORITHMS:
            totals[a] += peaks[a] / lower_bound(buffers)
    assert totals["hill_climb"] / 12 < 1.05


def least(buffers):
    """The least peak there is, by trying every order: a plan with the least peak can be pushed down to one that an order gives."""
    def height(order):
        placed = []
        for b in order:
            at = 0
            for start, end, other in sorted(placed, key=lambda p: p[:2]):
                if other.meets(b):
                    if at + b.size <= start:
                        break
                    at = max(at, end)
            placed.append((at, at + b.size, b))
        return max(p[1] for p in placed)
    return min(height(order) for order in itertools.permutations(buffers))


def test_hill_climb_finds_the_least_peak_of_few_buffers():
    r = random.Random(3)
    for _ in range(40):
        buffers = [BufferInfo(f"b{i}", r.randrange(1, 9), f := r.randrange(6), f + r.randrange(4)) for i in range(6)]
        offsets = plan_offsets(buffers, 1)
        assert max(o + b.size for o, b in zip(offsets, buffers)) == least(buffers)
    tight = [BufferInfo("", *row) for row in [(2, 0, 1), (1, 1, 3), (2, 3, 4), (1, 0, 0), (1, 4, 4), (2, 2, 2)]]
    assert max(o + b.size for o, b in zip(plan_offsets(tight, 1), tight)) == least(tight)


# seed → peak of upstream's hill climb for 40 + 4 * seed buffers (see `drawn`); at the lower bound but for seeds 5 and 10
UPSTREAM = {0: 7298, 1: 6341, 2: 8012, 3: 9168, 4: 6820, 5: 6852, 6: 7817, 7: 10653, 8: 7993, 9: 7616, 10: 11370, 11: 9353, 12: 10506, 13: 9820}


def drawn(seed, count, steps=30, longest=8):
    r = random.Random(seed)
    return [BufferInfo(f"b{i}", r.randrange(1, 1000), f := r.randrange(steps), f + r.randrange(longest)) for i in range(count)]


@pytest.mark.parametrize("seed", UPSTREAM)
def test_hill_climb_is_no_worse_than_upstreams(seed):
    buffers = drawn(seed, 40 + 4 * seed)
    assert max(o + b.size for o, b in zip(plan_offsets(buffers, 1), buffers)) <= UPSTREAM[seed]


def test_alignment_does_not_hide_that_a_plan_is_the_best():
    buffers = [BufferInfo("a", 30, 0, 1), BufferInfo("b", 30, 0, 1), BufferInfo("c", 10, 1, 2)]
    assert aligned_bound(buffers, 16) == 32 + 32 + 10 and lower_bound(buffers) == 70
    assert max(o + b.size for o, b in zip(plan_offsets(buffers, 16), buffers)) == 74


def test_what_finds_no_place_is_put_in_front():
    """The large buffer fits the second pool only while the small ones are in the first, which the algorithm would not see."""
    buffers = [BufferInfo("small0", 60, 0, 1), BufferInfo("small1", 60, 0, 1), BufferInfo("large", 100, 0, 1, pools=("first",))]
    layout = plan_pools(buffers, [("first", 100), ("second", 120)], 1, "greedy_by_conflicts")
    assert [p.pool for p in layout.places] == ["second", "second", "first"]


def fits(buffers, limit):
    """Whether some order places the buffers below a limit."""
    return not buffers or least(buffers) <= limit


def test_two_tight_pools_are_filled_whenever_they_can_be():
    r, feasible = random.Random(5), 0
    while feasible < 25:
        buffers = [BufferInfo(f"b{i}", r.randrange(1, 10), f := r.randrange(4), f + r.randrange(4)) for i in range(5)]
        first = r.randrange(1, lower_bound(buffers) + 1)
        limits = [first, lower_bound(buffers) - first + r.choice([0, 0, 1, 2])]
        splits = itertools.product((0, 1), repeat=len(buffers))
        if not any(all(fits([b for b, side in zip(buffers, split) if side == k], limits[k]) for k in (0, 1)) for split in splits):
            continue
        feasible += 1
        layout = plan_pools(buffers, [("a", limits[0]), ("b", limits[1])], 1)
        check_no_overlap(buffers, layout.places)
        assert all(p.used <= p.limit for p in layout.pools)


def test_pools_are_filled_in_order_and_limits_kept():
    buffers = [BufferInfo("a", 100, 0, 3), BufferInfo("b", 60, 1, 2), BufferInfo("c", 200, 2, 3)]
    layout = plan_pools(buffers, [("fast", 128), ("slow", None)], 1)
    assert {b.name: p.pool for b, p in zip(buffers, layout.places)}["c"] == "slow"
    assert layout.pools[0].used <= 128 and layout.total == sum(p.used for p in layout.pools)
    check_no_overlap(buffers, layout.places)


def test_a_pool_too_small_says_how_much_is_missing_and_where():
    buffers = [BufferInfo("a", 100, 0, 1, "fused_conv2d"), BufferInfo("b", 60, 1, 2, "fused_dense")]
    with pytest.raises(BuildError, match=r"sram: 120 bytes.*b of fused_dense needs 60 bytes.*lacks 40 of them.*at least 160 bytes"):
        plan_pools(buffers, [("sram", 120)], 1)
    assert plan_pools(buffers, [("sram", 160)], 1).total == 160


def test_a_buffer_bound_to_a_pool():
    buffers = [BufferInfo("a", 10, 0, 1, pools=("second",))]
    assert plan_pools(buffers, [("first", None), ("second", None)]).places[0].pool == "second"
    with pytest.raises(BuildError, match="none of them was declared"):
        plan_pools(buffers, [("first", None)])


def test_unknown_algorithm():
    with pytest.raises(ArgumentError, match="greedy_by_size"):
        plan_pools([BufferInfo("a", 1, 0, 0)], [("p", None)], algorithm="magic")


def test_the_picture_is_xml_with_a_rectangle_for_each_buffer():
    buffers = [BufferInfo("a<b>", 100, 0, 3, "k & l"), BufferInfo("b", 60, 1, 2)]
    root = ET.fromstring(draw(plan_pools(buffers, [("p", 4096)]), "x & y"))
    titles = [t.text for t in root.iter("{http://www.w3.org/2000/svg}title")]
    assert len(titles) == 2 and titles[0].startswith("a<b>: 100 bytes at")


def test_the_picture_has_scales_and_names_where_there_is_room():
    buffers = [BufferInfo("tvmgen_m_fused_nn_dense_add_out", 3000, 0, 3), BufferInfo("tvmgen_m_fused_nn_softmax_out", 40, 0, 0)]
    texts = [t.text for t in ET.fromstring(draw(plan_pools(buffers, [("p", None)]))).iter("{http://www.w3.org/2000/svg}text")]
    assert {"dense_add", "3000 bytes", "2 kB", "0", "3", "step"} <= set(texts) and "softmax" not in texts  # 40 of 3040 bytes: too low for a line


@pytest.mark.parametrize("end, whole, found", [(4, True, [0, 1, 2, 3]), (333776, False, [0, 50000, 100000, 150000, 200000, 250000, 300000]),
                                               (0, False, [0]), (75, True, list(range(0, 75, 5)))])
def test_scales_have_round_numbers(end, whole, found):
    assert ticks(end, 20 if whole else 8, whole) == found


def test_many_buffers_are_planned_quickly():
    buffers = [BufferInfo(f"b{i}", 1 + i % 97, i, i + 2) for i in range(20_000)]
    assert max(o + b.size for o, b in zip(plan_offsets(buffers, 1), buffers)) <= lower_bound(buffers) * 1.2
