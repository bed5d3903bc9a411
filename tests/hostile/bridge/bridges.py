"""Bridges as processes beside a node, and what they told of themselves."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from aios_nb.bridges.bot import Bot, Card
from aios_nb.home import Home
from tests.hostile.nodes import WAIT_S, environment
from tests.telegram.botapi import BotApi

HERE = Path(__file__).parent
AGENTS = HERE / "agents_for_bridge.py"
AS_PEOPLE_START_IT = ""
"""The stage of a bridge that is no test's: it keeps Telegram's pace."""


class BridgeProcess:
    """A bridge in a process of its own, which may be one that kills itself."""

    def __init__(self, home: Path, api: BotApi, stage: str = "never", nth: int = 0) -> None:
        program = ("-m", "aios_nb", "telegram")
        if stage != AS_PEOPLE_START_IT:
            program = (str(HERE / "mortal_bridge.py"), stage, str(nth))
        self.bot = Bot(Home(home), str(api.bot.id))
        self.log_path = home.with_name("bridges.log")
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, *program, "--json", "--api-url", api.base_url],
                env=environment(home, TELEGRAM_BOT_TOKEN=api.bot.token),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
            )

    def ready(self) -> None:
        """Wait until it works; one that kills itself may be dead by then."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.died()
        else:
            assert json.loads(line)["account"] == self.bot.account

    def kill(self) -> None:
        self.process.kill()
        self.died()

    def died(self) -> None:
        """Wait until it is dead, by SIGKILL and nothing else."""
        code = self.process.wait(WAIT_S)
        self._close()
        if code != -signal.SIGKILL:
            pytest.fail(f"the bridge ended with {code}: {self.log()[-2000:]}")

    def stop(self) -> Card:
        """End it in good order; how it was doing at last."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(WAIT_S)
        self._close()
        assert code == 0, self.log()[-2000:]
        card = self.bot.card()
        assert card is not None
        return card

    def put_away(self) -> None:
        """Leave nothing behind, whatever happened."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(WAIT_S)
        self._close()

    def _close(self) -> None:
        if self.process.stdout is not None:
            self.process.stdout.close()

    def log(self) -> str:
        """Of all bridges in this home."""
        return self.log_path.read_text(errors="replace")
