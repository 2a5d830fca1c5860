# SPDX-License-Identifier: ISC
"""As test_chance, of a cluster: whatever becomes of its machines, what had its 250 arrives, is returned, or was deleted.

One history takes a minute or two: they are played where CHANCE_ROUNDS says how many.
"""

import datetime
import os

import pytest

from lab.chance_cluster import ChanceCluster

pytestmark = [pytest.mark.plain_only, pytest.mark.seconds(300)]
ROUNDS = int(os.environ.get("CHANCE_ROUNDS", "0"))
FIRST = int(os.environ.get("CHANCE_SEED", datetime.date.today().toordinal()))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + ROUNDS))
def test_what_a_cluster_promised_is_kept(lab, seed):
    history = ChanceCluster(lab, seed)
    history.play(60)
    history.settle()
    faults = history.faults()
    assert not faults, "\n".join([f"seed {seed}: {len(history.promised)} promised", *faults[:20], *history.told_of(faults[:5]), *history.story])
    assert history.promised
