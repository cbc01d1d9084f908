from same.config import Config
from same.methods.finetuned import FIRST_TASKS, Finetuned


def test_the_first_phase_is_classical_training_on_three_tasks_with_the_same_settings():
    config = Config(method="finetuned", tasks=("gc",), width=8, seed=3)
    first = Finetuned.first_phase(config)
    assert (first.method, first.tasks) == ("classical", FIRST_TASKS)
    assert first.model_copy(update={"method": "finetuned", "tasks": ("gc",)}) == config
