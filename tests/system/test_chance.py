# SPDX-License-Identifier: ISC
"""Whatever is done to it, in whatever order: what had its 250 arrives, is returned, or was deleted.

CHANCE_SEED=7 plays another history, CHANCE_ROUNDS=20 so many of them.
"""

import datetime
import os

import pytest

from lab.chance import Chance
from lab.chance_world import ChanceWorld

ROUNDS = int(os.environ.get("CHANCE_ROUNDS", "1"))
WORLDS = int(os.environ.get("CHANCE_ROUNDS", "0"))  # a minute and a half each
FIRST = int(os.environ.get("CHANCE_SEED", datetime.date.today().toordinal()))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + ROUNDS))
def test_what_was_promised_is_kept(lab, seed):
    _play(Chance(lab, seed), seed, 60)


@pytest.mark.plain_only
@pytest.mark.parametrize("seed", range(FIRST, FIRST + WORLDS))
def test_what_was_promised_is_kept_and_no_demand_is_passed_by_in_a_world_that_changes(lab, seed):
    _play(ChanceWorld(lab, seed), seed, 120)


def _play(history, seed, steps):
    history.play(steps)
    history.settle()
    faults = history.faults()
    assert not faults, "\n".join([f"seed {seed}: {len(history.promised)} promised", *faults[:20], *history.told_of(faults[:5]), *history.story])
    assert history.promised
