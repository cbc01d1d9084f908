"""CPU time of a training step on ENZYMES, and how much of it is building the episode: `python benchmarks/steps.py DIR`.

DIR holds ENZYMES.zip. One thread; the median of some steps, in milliseconds.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import torch

from same.config import Config
from same.episodes import EpisodeSampler
from same.runs import make_method, prepare


def milliseconds(call: Callable[[int], object], repeats: int = 40) -> float:
    """The median CPU time of a call, which is given its number."""
    times = []
    for i in range(repeats):
        start = time.process_time()
        call(i)
        times.append(1000 * (time.process_time() - start))
    return median(times)


def main(folder: Path) -> None:
    """Prints a line for each method and batch size."""
    torch.set_num_threads(1)
    print(f"{'method':<12} {'graphs':>6} {'step':>8} {'episode':>8} {'share':>6}")
    for batch_size in (16, 24, 48):
        for name in ("esame", "isame", "classical", "traditional"):
            config = Config(dataset="ENZYMES", method=name, batch_size=batch_size)
            setting = prepare(config, folder)
            method, build, _ = make_method(config)
            sampler = EpisodeSampler(setting.store, setting.split.train, setting.tasks, batch_size, build)
            optimiser = torch.optim.Adam(setting.model.parameters(), fused=True)

            def draw(i: int, sampler: EpisodeSampler = sampler) -> object:
                return sampler.draw(*divmod(i, sampler.steps))

            def step(i: int, draw=draw, method=method, model=setting.model, optimiser=optimiser) -> None:
                losses = method.losses(model, draw(i))
                optimiser.zero_grad()
                model.weighting.backward(losses, model)
                optimiser.step()

            whole, episode = milliseconds(step), milliseconds(draw)
            print(f"{name:<12} {batch_size:>6} {whole:>8.1f} {episode:>8.2f} {episode / whole:>6.1%}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
