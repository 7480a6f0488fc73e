"""The figures of a run: as one JSON object, and as a table for people."""

from . import workload


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def job_figures(job, solo, shared, ranks_per_card):
    """`solo`, `shared`: the results of the job's ranks. Bytes are those on one card."""
    return {
        'name': job.name,
        'bytes': max(rank['bytes'] for rank in solo) * ranks_per_card,
        'steps': solo[0]['steps'],
        'solo_s': max(rank['wall_s'] for rank in solo),
        'shared_s': max(rank['wall_s'] for rank in shared),
        'reward_first': shared[0]['reward_first'],
        'reward_last': shared[0]['reward_last'],
        'digest_solo': solo[0]['digest'],
        'digest_shared': shared[0]['digest'],
        'busy_solo_s': mean(rank['busy_s'] for rank in solo),
        'busy_shared_s': mean(rank['busy_s'] for rank in shared),
    }


def figures(device, card_bytes, jobs, fits_together, utilization, shared_wall_s, switches):
    rounded = [{key: round(value, 4) if isinstance(value, float) else value for key, value in job.items()}
               for job in jobs]
    return {
        'device': device,
        'card_bytes': card_bytes,
        'jobs': rounded,
        'identical': all(job['digest_solo'] == job['digest_shared'] for job in jobs),
        'fits_together': fits_together,
        'utilization_alone': round(utilization['alone'], 4),
        'utilization_shared': round(utilization['shared'], 4),
        'speedup': round(sum(job['solo_s'] for job in jobs) / shared_wall_s, 4),
        'switches': switches,
    }


def verdict(result):
    """What the run was to show and did not: sentences, none if it has shown all of it."""
    for job in result['jobs']:
        if job['digest_solo'] != job['digest_shared']:
            yield (f"job {job['name']} has not computed the same: digest {job['digest_solo']} alone, "
                   f"{job['digest_shared']} shared: a switch has changed its memory; --keep DIR keeps the logs")
    if result['fits_together']:
        sizes = ' and '.join(mib(job['bytes']) for job in result['jobs'])
        yield (f"both jobs fit on a card at once ({sizes} of {mib(result['card_bytes'])}): nothing had to take "
               'turns; make the jobs larger (--job-mib) or the card smaller (--card-mib)')


def mib(count):
    return f'{count / 2**20:,.0f} MiB'


ROWS = [
    ('device memory per card', lambda j: mib(j['bytes'])),
    ('steps', lambda j: str(j['steps'])),
    ('alone', lambda j: f"{j['solo_s']:.1f} s"),
    ('shared', lambda j: f"{j['shared_s']:.1f} s"),
    ('card busy alone', lambda j: f"{j['busy_solo_s']:.2f} s"),
    ('card busy shared', lambda j: f"{j['busy_shared_s']:.2f} s"),
    ('score, first tenth', lambda j: f"{j['reward_first']:.3f}"),
    ('score, last tenth', lambda j: f"{j['reward_last']:.3f}"),
    ('digest alone', lambda j: j['digest_solo']),
    ('digest shared', lambda j: j['digest_shared']),
]


def table(result, refusal):
    jobs = result['jobs']
    lines = ['{:24}'.format('') + ''.join(f"{job['name']:>20}" for job in jobs)]
    for title, text in ROWS:
        lines.append(f'{title:24}' + ''.join(f'{text(job):>20}' for job in jobs))
    answer = {True: 'yes', False: 'no'}
    lines += [
        '',
        f"card                    {mib(result['card_bytes'])} ({result['device']})",
        f"both fit at once        {answer[result['fits_together']]}" + (f'  ({refusal})' if refusal else ''),
        f"results identical       {answer[result['identical']]}",
        f"cards busy, alone       {result['utilization_alone']:.1%}",
        f"cards busy, shared      {result['utilization_shared']:.1%}  "
        f"({result['utilization_shared'] / result['utilization_alone']:.2f} x)",
        f"speedup                 {result['speedup']:.2f} x  (both alone, one after the other, "
        'against both at once)',
        f"switches                {result['switches']}",
        f'score: right digits on problems never trained on; chance is {workload.CHANCE}',
    ]
    return lines
