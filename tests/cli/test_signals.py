import os
import signal

import pytest
import typer

from same.cli.signals import interruptible


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_command_with_exit_code_130(number, caplog):
    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    with pytest.raises(typer.Exit) as caught, interruptible():
        os.kill(os.getpid(), number)
    assert caught.value.exit_code == 130
    assert "interrupted; run the same command to continue" in caplog.text
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_that_polls_sees_the_first_signal_and_is_interrupted_by_the_second(number):
    polls = []

    def work():
        with interruptible() as stop:
            polls.append(stop())
            os.kill(os.getpid(), number)
            polls.append(stop())
            os.kill(os.getpid(), number)
            polls.append(stop())

    with pytest.raises(typer.Exit):
        work()
    assert polls == [False, True]
