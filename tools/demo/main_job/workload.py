"""The workload that is replayed, as measured by others, and the factor that shrinks it."""

# A step of PPO on GSM8K with a 0.5B model (veRL, one H100), seconds on the GPU; the same numbers stand
# in tools/demo/workload.h, where the kernels take them from.
GPU_S = {'generate': 17.9, 'reference': 5.4, 'values': 5.7, 'critic': 16.5, 'actor': 20.8}
# 64 code samples judged in sandboxes: no GPU.
REWARD_S = 77.0
# The driver's checkpoint of a trainer on an H100.
SWITCH_OUT_S = 6.8
SWITCH_IN_S = 2.5

CHANCE = 0.1


def gpu_s():
    return sum(GPU_S.values())


def step_s():
    return gpu_s() + REWARD_S


def describe(scale, real_card):
    phases = ' + '.join(f'{name} {seconds:g}' for name, seconds in GPU_S.items())
    lines = [
        f'One factor for all times: 1/{round(1 / scale, 2):g} of a measured workload.',
        f'  GPU     {gpu_s():.1f} s a step: {phases}',
        '          (PPO on GSM8K, 0.5B model, veRL on one H100)',
        f'  reward  {REWARD_S:.0f} s a step: 64 code samples in sandboxes; the GPU is not used',
    ]
    if real_card:
        lines.append("  switch  what this card's driver takes: not modelled, not scaled")
    else:
        lines.append(f'  switch  {SWITCH_OUT_S} s out, {SWITCH_IN_S} s in: the checkpoint of a trainer '
                     'by the driver, H100')
    lines.append(f'  so a job alone can use a card {gpu_s() / step_s():.0%} of the time at best')
    return lines
