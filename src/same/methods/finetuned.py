"""Fine-tuning: classical training on three tasks, then on the tasks named (the paper's FT, question Q2)."""

from typing import ClassVar

from same.config import Config
from same.errors import InputError
from same.methods.classical import Classical

FIRST_TASKS = ("gc", "nc", "lp")  # Of the first phase.


class Finetuned(Classical):
    """Classical training that starts from a classical model of three tasks."""

    name: ClassVar[str] = "finetuned"

    @classmethod
    def check(cls, config: Config) -> None:
        """Reject fine-tuning on the tasks of the first phase."""
        super().check(config)
        if set(config.tasks) >= set(FIRST_TASKS):
            raise InputError("fine-tuning on all three tasks is classical training; name one or two")

    @classmethod
    def first_phase(cls, config: Config) -> Config:
        """Return the configuration of classical training on three tasks."""
        return config.model_copy(update={"method": Classical.name, "tasks": FIRST_TASKS})
