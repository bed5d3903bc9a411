"""Who sees a panel, by what cells and pages say."""

from __future__ import annotations

from aios_nb.notebook.kernel import Cell
from aios_nb.notebook.widgets.audience import Audience


def test_who_was_shown_is_seen_until_each_of_its_cells_is_run_again():
    panel = Audience()
    panel.shown(Cell("one", "run 1"))
    panel.shown(Cell("two", "run 2"))
    assert not panel.cleared(Cell("one", "run 1"))  # another look at the same run
    assert not panel.cleared(Cell("three", "run 3"))
    assert not panel.cleared(Cell("one", "run 4"))  # two has it still
    assert panel.cleared(Cell("two", "run 5"))
    assert not panel.cleared(Cell("two", "run 6"))  # said once


def test_a_page_that_opens_an_old_output_sees_it_until_it_says_goodbye():
    panel = Audience()
    panel.shown(Cell("one", "run 1"))
    panel.came("before")
    assert panel.cleared(Cell("one", "run 2"))
    panel.came("reloaded")
    panel.came("twice")
    assert not panel.cleared(Cell("one", "run 3"))
    assert not panel.left("reloaded")
    assert panel.left("twice")


def test_a_view_that_is_drawn_anew_is_no_reason_to_rest():
    panel = Audience()
    panel.came("first")
    assert not panel.left("first")  # no cell is known, as outside JupyterLab
    panel.shown(Cell("one", "run 1"))
    panel.came("second")
    assert not panel.left("second")
    assert panel.cleared(Cell("one", "run 2"))
    panel.shown(Cell("one", "run 2"))  # the same panel again
    panel.came("third")
    assert not panel.left("third")
