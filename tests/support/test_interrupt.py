"""Ctrl-C that is collected, obeyed when it is repeated, and given back afterwards."""

import signal
import threading

import pytest

from tinytf.support.interrupt import deferred_interrupt


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_is_collected_and_the_second_obeyed(number):
    before = signal.getsignal(number)
    with deferred_interrupt() as seen:
        assert not seen
        signal.raise_signal(number)
        assert seen == [number]
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
    assert signal.getsignal(number) is before


def test_a_second_that_comes_too_soon_is_the_same_one():
    with deferred_interrupt(pause=60) as seen:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
    assert seen == [signal.SIGINT]


def test_in_another_thread_signals_are_left_alone():
    found, before = [], signal.getsignal(signal.SIGINT)

    def work():
        with deferred_interrupt() as seen:
            found.append((seen, signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [([], before)]
