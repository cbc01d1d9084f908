import pytest
from parabola import Parabola, descend


def test_the_running_mean_is_validated_and_kept():
    """θ̄ ← d θ̄ + (1 − d) θ, written out over the parameters of the training."""
    model, mean, seen = Parabola(), 3.0, []

    def report(step, steps, record):
        nonlocal mean
        if "losses" in record:
            decay = min(0.9, step / (step + 9))
            mean = decay * mean + (1 - decay) * model.w.item()
        else:
            seen.append((record["objective"], mean))

    descend(model, epochs=6, average=0.9, report=report)
    for objective, value in seen:
        assert objective == pytest.approx(value**2, rel=1e-5)
    assert model.w.item() == pytest.approx(min(seen)[1], rel=1e-6)
