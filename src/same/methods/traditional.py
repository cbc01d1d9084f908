"""Traditional meta-learning: adapt to all tasks at once, and test all of them on other graphs (Algorithm 3)."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from same.episodes import Batch, embed
from same.methods.adapt import Params, descend, inner_rates
from same.methods.classical import evaluate, perform
from same.nn.model import Model
from same.tasks.task import Task


@dataclass(frozen=True)
class Traditional:
    """MAML, or with `adapt_encoder=False` ANIL, on episodes in which all tasks are performed concurrently.

    Args:
        adapt_encoder: whether ADAPT moves the encoder too, or the heads alone.
        inner_lr: α.
        inner_steps: how many steps of gradient descent ADAPT takes.
        first_order: whether to leave out the second derivatives.
    """

    adapt_encoder: bool = True
    inner_lr: float = 0.1
    inner_steps: int = 1
    first_order: bool = False

    def losses(self, model: Any, episode: tuple[Batch, Batch]) -> dict[str, Tensor]:
        """The losses of all tasks on the target graphs, with parameters adapted to all tasks on the support graphs."""
        support, target = self._prepared(model, episode)
        adapted = self._adapt(model, support, self.first_order)
        return {task.name: task.loss(output, examples) for task, output, examples in perform(model, target, adapted)}

    def evaluate(self, model: Any, episode: tuple[Batch, Batch]) -> dict[str, tuple[float, float]]:
        """Loss and score on the target graphs after adapting to the support graphs; θ is not touched."""
        support, target = episode
        return evaluate(model, target, self._adapt(model, support, first_order=True))

    def adapted(self, model: Any, batch: Batch, task: Task) -> Params:
        """θ′ adapted to all tasks of a batch."""
        return self._adapt(model, batch, first_order=True)

    def _adapt(self, model: Model, support: Batch, first_order: bool) -> Params:
        kinds = ("encoder.", "heads.") if self.adapt_encoder else ("heads.",)

        def i_loss(adapted: Params) -> Tensor:
            outputs = perform(model, support, adapted)
            return model.weighting.weigh({task.name: task.loss(output, examples) for task, output, examples in outputs})

        return descend(
            model,
            i_loss,
            lr=inner_rates(model) or self.inner_lr,
            steps=self.inner_steps,
            adapts=lambda name: name.startswith(kinds),
            first_order=first_order,
        )

    def _prepared(self, model: Model, episode: tuple[Batch, Batch]) -> tuple[Batch, Batch]:
        """Where only heads adapt, all graphs of the episode are encoded once."""
        if self.adapt_encoder:
            return episode
        known = iter(embed(model.encoder, [examples for batch in episode for _, examples in batch]))
        support, target = ([(task, next(known)) for task, _ in batch] for batch in episode)
        return support, target
