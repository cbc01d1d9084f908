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
