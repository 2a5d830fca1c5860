# SPDX-License-Identifier: ISC
"""Whatever is done to it, in whatever order: what had its 250 arrives, is returned, or was deleted.

CHANCE_SEED=7 plays another history, CHANCE_ROUNDS=20 so many of them.
"""

import datetime
import os

import pytest

from lab.chance import Chance

ROUNDS = int(os.environ.get("CHANCE_ROUNDS", "1"))
FIRST = int(os.environ.get("CHANCE_SEED", datetime.date.today().toordinal()))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + ROUNDS))
def test_what_was_promised_is_kept(lab, seed):
    history = Chance(lab, seed)
    history.play(60)
    history.settle()
    faults = history.faults()
    assert not faults, "\n".join([f"seed {seed}: {len(history.promised)} promised", *faults[:20], *history.told_of(faults[:5]), *history.story])
    assert history.promised
