"""Do both jobs fit on the cards at once? Tried, not computed."""
from . import jobs
from .processes import Failed


def try_together(runner, first, second):
    """The second job takes its memory while the first has its own, without turns. Returns whether all
    of it fits, and what the driver said if not."""
    holders = runner.hold('fit', first)
    if not all([jobs.holds(rank) for rank in holders]):
        raise Failed(f'{first.name} does not fit even alone: {holders[0].describe_end()}')
    seconds = runner.hold('fit', second)
    fits = all([jobs.holds(rank) for rank in seconds])
    said = [rank.lines[-1] for rank in seconds if rank.code not in (None, 0) and rank.lines]
    for rank in [rank for rank in seconds if rank.code is None] + holders:
        jobs.let_go(rank)
    _expect_room_again(runner, second)
    return fits, said[0] if said else ''


def _expect_room_again(runner, second):
    """It was the first job that was in the way, and nothing else."""
    ranks = runner.hold('fit-alone', second)
    if not all([jobs.holds(rank) for rank in ranks]):
        raise Failed(f'{second.name} does not fit although nobody else is there: '
                     f'{ranks[0].describe_end()}')
    for rank in ranks:
        jobs.let_go(rank)
